// SwiGLU: y = silu(gate) * up, where silu(g) = g / (1 + exp(-g)).
#pragma once
#include "faces/c/typed.h"

namespace kw {

// gate, up, y: [*B, N], f32 or bf16, all of one type. Computed in f32 and rounded once, to y's type; an element's result depends on nothing
// but its two inputs. silu is its limit at infinities: silu(inf) = inf, silu(-inf) = -0 (PyTorch: NaN). NaN gives NaN. y must not overlap
// the inputs. `stream` is the CUstream of gate's device, null for its default stream; ignored on the CPU. Asynchronous on CUDA; allocates
// nothing. Throws kw::Error with a sentence when dtype, shape, device or layout do not fit; y is untouched then.
inline void swiglu(void* stream, const kw_tensor& gate, const kw_tensor& up, const kw_tensor& y) {
  static const TypedOp op("swiglu");
  op(stream, {&gate, &up}, {&y}, {});
}

// The gradient of swiglu: dgate = dy up silu'(gate), dup = dy silu(gate), with silu'(g) = s + g s (1 - s), s = 1 / (1 + exp(-g)); the
// limits 1 and 0 at infinities. All tensors [*B, N] of one type. The results must not overlap each other or the inputs.
inline void swiglu_backward(void* stream, const kw_tensor& dy, const kw_tensor& gate, const kw_tensor& up, const kw_tensor& dgate,
                            const kw_tensor& dup) {
  static const TypedOp op("swiglu_backward");
  op(stream, {&dy, &gate, &up}, {&dgate, &dup}, {});
}

}  // namespace kw
