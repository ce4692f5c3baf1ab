// RMSNorm over the last dimension: y = x / sqrt(mean(x^2) + eps) * (weight + offset), with and without a residual that is added first.
//
// Common to all: `stream` is the CUstream of x's device, null for its default stream; ignored on the CPU. Asynchronous on CUDA; allocates
// nothing. Bitwise equal from run to run; what a row gives does not depend on the other rows, nor on where it lies in memory. Sums are kept
// in f32, of f64 in f64. The inputs are not written; a result must not overlap another tensor. Throws kw::Error with a sentence when dtype,
// shape, device, layout or an attribute do not fit; nothing has been written then.
#pragma once
#include "faces/c/typed.h"

namespace kw {

// Where y is rounded to its own type: once, at the end (Gemma, Olmo 2, torch.nn.RMSNorm), or x / sqrt(...) before it is multiplied by
// (weight + offset) and the product again (Llama, Qwen, Mistral, Phi). The same for f32 and f64.
enum class RmsNormRounding { once, before_weight };

// x: [*B, N], f16, bf16, f32 or f64. weight: [N] of x's type or f32, or null (all ones). y: as x. offset is added to the weight (Gemma: 1).
// A NaN in a row makes that row NaN; so does an infinity at its own place, and the rest of that row zero, as every finite row is whose mean
// square overflows f32 (f64).
inline void rms_norm(void* stream, const kw_tensor& x, const kw_tensor* weight, const kw_tensor& y, double eps = 1e-6, double offset = 0,
                     RmsNormRounding rounding = RmsNormRounding::once) {
  static const TypedOp op("rms_norm");
  op(stream, {&x, weight}, {&y}, {{.f = eps}, {.f = offset}, {.i = static_cast<int64_t>(rounding)}});
}

// The gradient of rms_norm: dx = r g - x r^3 mean(x g) with g = dy (weight + offset) and r = 1 / sqrt(mean(x^2) + eps); dweight = the sum
// over rows of dy x r. It is the gradient of the formula, whatever the rounding was.
// dy, x, dx: [*B, N]; weight, dweight: [N] or both null; part: f32[min(B, 1024), N] where B counts rows (f64 for f64), or null without a
// weight. dweight's bits depend on the number of rows too and, on CUDA, on the GPU's number of multiprocessors.
inline void rms_norm_backward(void* stream, const kw_tensor& dy, const kw_tensor& x, const kw_tensor* weight, double eps, double offset,
                              const kw_tensor& dx, const kw_tensor* dweight, const kw_tensor* part) {
  static const TypedOp op("rms_norm_backward");
  op(stream, {&dy, &x, weight}, {&dx, dweight, part}, {{.f = eps}, {.f = offset}});
}

// total = x + residual, rounded to their type, and y = rms_norm(total), to the bit. x, residual, y, total: [*B, N].
inline void add_rms_norm(void* stream, const kw_tensor& x, const kw_tensor& residual, const kw_tensor* weight, const kw_tensor& y,
                         const kw_tensor& total, double eps = 1e-6, double offset = 0, RmsNormRounding rounding = RmsNormRounding::once) {
  static const TypedOp op("add_rms_norm");
  op(stream, {&x, &residual, weight}, {&y, &total}, {{.f = eps}, {.f = offset}, {.i = static_cast<int64_t>(rounding)}});
}

// The gradient of add_rms_norm: dx, which is dresidual too, is rms_norm_backward's for x = total, plus dtotal; dweight and part as there.
inline void add_rms_norm_backward(void* stream, const kw_tensor& dy, const kw_tensor& dtotal, const kw_tensor& total,
                                  const kw_tensor* weight, double eps, double offset, const kw_tensor& dx, const kw_tensor* dweight,
                                  const kw_tensor* part) {
  static const TypedOp op("add_rms_norm_backward");
  op(stream, {&dy, &dtotal, &total, weight}, {&dx, dweight, part}, {{.f = eps}, {.f = offset}});
}

}  // namespace kw
