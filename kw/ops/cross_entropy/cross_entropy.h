// Cross-entropy of logits against target classes, with its gradient from the same pass.
#pragma once
#include "faces/c/typed.h"

namespace kw {

// The options of a loss. With l = softcap tanh(logits / softcap) (softcap 0: l = logits), w the class weights, t a row's target,
// s = label_smoothing, lse = log(sum of e^l), a row's loss is
//   (1 - s) w_t (lse - l_t) + s / V * sum over classes of w_c (lse - l_c) + z_loss w_t lse^2
struct CrossEntropyOptions {
  int64_t ignore_index = -100;  // rows with this target have loss 0 and gradient 0
  double label_smoothing = 0;   // 0 to 1
  double z_loss = 0;            // at least 0
  double softcap = 0;           // at least 0; 0: none
};
enum class Reduction { mean, sum };

// logits: [*B, V], f16, bf16, f32 or f64. target: [*B], i64 or i32. weight: [V] or null (ones). divisor: [] or null. weight, divisor, loss,
// losses, parts: f32, or f64 for f64 logits.
// loss: [], the sum over rows; divided by divisor where that is given, else for the mean by the sum of w_t over the rows that count: NaN
// when there is none. dlogits: as logits, or null: the gradient of loss, by cross_entropy_backward to be scaled. losses: [rows], parts:
// [256], memory to work in. A target outside of [0, V) that is not ignore_index makes the row's loss and its gradient NaN, and so `loss`;
// the row counts for nothing else, other rows are as they would be, and no memory outside is touched. Sums are kept in f32 (f64); dlogits
// is rounded once. Bitwise equal from run to run. The inputs are not written; results must not overlap them. `stream` is the CUstream of
// logits' device, null for its default stream; ignored on the CPU. Asynchronous on CUDA; allocates nothing. Throws kw::Error with a
// sentence when dtype, shape, device or layout do not fit; nothing is written then.
inline void cross_entropy(void* stream, const kw_tensor& logits, const kw_tensor& target, const kw_tensor* weight, const kw_tensor* divisor,
                          const CrossEntropyOptions& o, Reduction reduction, const kw_tensor& loss, const kw_tensor* dlogits,
                          const kw_tensor& losses, const kw_tensor& parts) {
  static const TypedOp op("cross_entropy");
  op(stream, {&logits, &target, weight, divisor}, {&loss, dlogits, &losses, &parts},
     {{.i = o.ignore_index}, {.f = o.label_smoothing}, {.f = o.z_loss}, {.f = o.softcap}, {.i = reduction == Reduction::sum}});
}

// dlogits *= dloss, in place: the gradient of the logits once that of the loss is known. A zero stays zero, so that ignored rows stay
// without gradient whatever dloss is. dloss: [], f32, or f64 for f64 logits. On CUDA, where dloss is one, nothing is moved.
inline void cross_entropy_backward(void* stream, const kw_tensor& dloss, const kw_tensor& dlogits) {
  static const TypedOp op("cross_entropy_backward");
  op(stream, {&dloss, &dlogits}, {}, {});
}

// The loss of every row: loss: [*B], f32, or f64 for f64 logits; dlogits: the gradient of each row's loss, or null. As above; a row's bits
// do not depend on the other rows, nor on where the row lies in memory.
inline void cross_entropy_unreduced(void* stream, const kw_tensor& logits, const kw_tensor& target, const kw_tensor* weight,
                                    const CrossEntropyOptions& o, const kw_tensor& loss, const kw_tensor* dlogits) {
  static const TypedOp op("cross_entropy_unreduced");
  op(stream, {&logits, &target, weight}, {&loss, dlogits},
     {{.i = o.ignore_index}, {.f = o.label_smoothing}, {.f = o.z_loss}, {.f = o.softcap}});
}

// Row r of dlogits *= dloss[r], in place. dloss: [*B].
inline void cross_entropy_unreduced_backward(void* stream, const kw_tensor& dloss, const kw_tensor& dlogits) {
  static const TypedOp op("cross_entropy_unreduced_backward");
  op(stream, {&dloss, &dlogits}, {}, {});
}

}  // namespace kw
