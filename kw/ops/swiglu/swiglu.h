// SwiGLU and GeGLU: y = a(gate) * up, where a is silu, or gelu in its tanh form.
#pragma once
#include "faces/c/typed.h"

namespace kw {

// silu(g) = g / (1 + exp(-g));  gelu_tanh(g) = g / 2 (1 + tanh(sqrt(2 / pi) (g + 0.044715 g^3))).
enum class GateActivation : int64_t { silu = 0, gelu_tanh = 1 };

// gate, up, y: [*B, N], f16, bf16, f32 or f64, all of one type. Computed in f32 (f64 for f64) and rounded once, to y's type; an element's
// result depends on nothing but its two inputs. The activation is its limit at infinities: a(inf) = inf, a(-inf) = -0 (PyTorch: NaN). NaN
// gives NaN. y must not overlap the inputs. `stream` is the CUstream of gate's device, null for its default stream; ignored on the CPU.
// Asynchronous on CUDA; allocates nothing. Throws kw::Error with a sentence when dtype, shape, device or layout do not fit; y is untouched
// then.
inline void swiglu(void* stream, const kw_tensor& gate, const kw_tensor& up, const kw_tensor& y,
                   GateActivation activation = GateActivation::silu) {
  static const TypedOp op("swiglu");
  op(stream, {&gate, &up}, {&y}, {{.i = static_cast<int64_t>(activation)}});
}

// The gradient of swiglu: dgate = dy up a'(gate), dup = dy a(gate); the limits of a' at infinities are 1 and 0. All tensors [*B, N] of one
// type. The results must not overlap each other or the inputs.
inline void swiglu_backward(void* stream, const kw_tensor& dy, const kw_tensor& gate, const kw_tensor& up, const kw_tensor& dgate,
                            const kw_tensor& dup, GateActivation activation = GateActivation::silu) {
  static const TypedOp op("swiglu_backward");
  op(stream, {&dy, &gate, &up}, {&dgate, &dup}, {{.i = static_cast<int64_t>(activation)}});
}

// The same with gate and up in one tensor, as one matrix product makes them. x: [*B, 2 N], a row is gate, then up; y: [*B, N].
inline void swiglu_packed(void* stream, const kw_tensor& x, const kw_tensor& y, GateActivation activation = GateActivation::silu) {
  static const TypedOp op("swiglu_packed");
  op(stream, {&x}, {&y}, {{.i = static_cast<int64_t>(activation)}});
}

// Its gradient. dy: [*B, N]; x, dx: [*B, 2 N], a row of dx is dgate, then dup. dx must not overlap the inputs.
inline void swiglu_packed_backward(void* stream, const kw_tensor& dy, const kw_tensor& x, const kw_tensor& dx,
                                   GateActivation activation = GateActivation::silu) {
  static const TypedOp op("swiglu_packed_backward");
  op(stream, {&dy, &x}, {&dx}, {{.i = static_cast<int64_t>(activation)}});
}

}  // namespace kw
