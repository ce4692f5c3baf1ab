// RMSNorm over the last dimension: y = x / sqrt(mean(x^2) + eps) * weight.
#pragma once
#include "faces/c/typed.h"

namespace kw {

// x: [*B, N], f16 / bf16 / f32 / f64. weight: [N] of x's type or f32, or null. y: as x.
// Sums are kept in f32 (f64 for f64) and rounded once, to y's type. Bitwise equal from run to run; a row's result does not depend on
// the other rows. A NaN or infinity in a row makes that row NaN (or zero where x is finite and the mean square overflows to infinity).
// `stream` is the CUstream of x's device, null for its default stream; ignored on the CPU. Asynchronous on CUDA; allocates nothing.
// Throws kw::Error with a sentence when dtype, shape, device or layout do not fit; y is untouched then.
inline void rms_norm(void* stream, const kw_tensor& x, const kw_tensor* weight, const kw_tensor& y, double eps = 1e-6) {
  static const TypedOp op("rms_norm");
  op(stream, {&x, weight}, {&y}, {{.f = eps}});
}

// dy, x, dx: [*B, N]; weight, dweight: [N] or both null; part: scratch of acc(T)[min(B, 1024), N], where B counts rows.
inline void rms_norm_backward(void* stream, const kw_tensor& dy, const kw_tensor& x, const kw_tensor* weight, double eps,
                              const kw_tensor& dx, const kw_tensor* dweight, const kw_tensor* part) {
  static const TypedOp op("rms_norm_backward");
  op(stream, {&dy, &x, weight}, {&dx, dweight, part}, {{.f = eps}});
}

}  // namespace kw
