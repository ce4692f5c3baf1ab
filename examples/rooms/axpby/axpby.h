// z = a x + b y, element by element: the smallest room there is, to copy.
#pragma once
#include "faces/c/typed.h"

namespace kw {

// x, y, z: [*B, N], f32 or f64, all alike. Computed in the tensors' own type, a and b rounded to it first; the sum is rounded once after
// b y is. z may be x or y. `stream`: the CUstream of x's device, null for its default stream; ignored on the CPU.
// Throws kw::Error with a sentence when dtype, shape, device or layout do not fit; z is untouched then.
inline void axpby(void* stream, const kw_tensor& x, const kw_tensor& y, const kw_tensor& z, double a = 1, double b = 1) {
  static const TypedOp op("axpby");
  op(stream, {&x, &y}, {&z}, {{.f = a}, {.f = b}});
}

}  // namespace kw
