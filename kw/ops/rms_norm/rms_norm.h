// RMSNorm over the last dimension: y = x / sqrt(mean(x^2) + eps) * weight.
#pragma once
#include "faces/c/typed.h"

namespace kw {

// x: [*B, N], f32 or bf16. weight: [N] of x's type or f32, or null (all ones). y: as x.
// Sums are kept in f32 and the result is rounded once, to y's type. Bitwise equal from run to run; a row's result does not depend on the
// other rows, nor on where the row lies in memory. A NaN in a row makes that row NaN; so does an infinity at its own place, and the rest of
// that row zero, as every finite row is whose mean square overflows f32. The inputs are not written; y must not overlap them.
// `stream` is the CUstream of x's device, null for its default stream; ignored on the CPU. Asynchronous on CUDA; allocates nothing.
// Throws kw::Error with a sentence when dtype, shape, device or layout do not fit; y is untouched then.
inline void rms_norm(void* stream, const kw_tensor& x, const kw_tensor* weight, const kw_tensor& y, double eps = 1e-6) {
  static const TypedOp op("rms_norm");
  op(stream, {&x, weight}, {&y}, {{.f = eps}});
}

// The gradient of rms_norm: dx = r (dy weight) - x r^3 mean(x dy weight) with r = 1 / sqrt(mean(x^2) + eps); dweight = the sum over rows of
// dy x r. dy, x, dx: [*B, N]; weight, dweight: [N] or both null; part: f32[min(B, 1024), N] where B counts rows, or null without a weight.
// As above; dweight's bits depend on the number of rows and, on CUDA, on the GPU's number of multiprocessors.
inline void rms_norm_backward(void* stream, const kw_tensor& dy, const kw_tensor& x, const kw_tensor* weight, double eps,
                              const kw_tensor& dx, const kw_tensor* dweight, const kw_tensor* part) {
  static const TypedOp op("rms_norm_backward");
  op(stream, {&dy, &x, weight}, {&dx, dweight, part}, {{.f = eps}});
}

}  // namespace kw
