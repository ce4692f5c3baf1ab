// Contracts that the language was made for: parser tests read them, fuzz tests break them.
#pragma once

namespace kw::test {

inline constexpr const char* dozen[] = {
    R"(rms_norm(x: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6) -> y: T[*B, N]
  where T: f32 bf16, W: T f32
  gradient dx, dweight = rms_norm_backward(dy, x, weight, eps))",

    R"(rms_norm_backward(dy: T[*B, N], x: T[*B, N], weight: W[N]?, *, eps: float >= 0) -> (dx: T[*B, N], dweight: sum W[N]?)
  where T: f32 bf16, W: T f32
  scratch part: acc(T)[min(B, 1024), N]?)",

    R"(add_rms_norm(x: T[*B, N], residual: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6, offset: float = 0)
    -> (y: T[*B, N], h: T[*B, N])
  where T: f16 bf16 f32 f64, W: T f32
  gradient dx, dresidual, dweight = add_rms_norm_backward(dy, dh, h, weight, eps, offset))",

    R"(swiglu(gate: T[*B, N], up: T[*B, N]) -> y: T[*B, N]
  where T: f32 bf16
  gradient dgate, dup = swiglu_backward(dy, gate, up))",

    R"(swiglu_backward(dy: T[*B, N], gate: T[*B, N], up: T[*B, N]) -> (dgate: T[*B, N], dup: T[*B, N])
  where T: f32 bf16)",

    R"(swiglu_packed(x: T[*B, 2*N]) -> y: T[*B, N]
  where T: f16 bf16 f32 f64
  gradient dx = swiglu_packed_backward(dy, x))",

    R"(swiglu_halves(x: T[*B, N]) -> y: T[*B, N/2]
  where T: f16 bf16 f32)",

    R"(cross_entropy(logits: T[R, V], target: i64[R], *, ignore_index: int = -100, smoothing: float >= 0 <= 1 = 0,
              reduction: mean|sum = mean) -> loss: f32[]
  where T: f16 bf16 f32
  saved dlogits: T[R, V]
  scratch part: f32[min(R, 1024), 2]
  gradient dlogits = cross_entropy_backward(dloss, dlogits))",

    R"(cross_entropy_backward(dloss: f32[], dlogits: T[R, V]!) -> ()
  where T: f16 bf16 f32)",

    R"(adamw(param: T[*D]!..., grad: G[*D]..., average: M[*D]!..., square: M[*D]!..., largest: M[*D]!...?, step: i64[], *,
      rate: float >= 0, beta1: float >= 0 < 1 = 0.9, beta2: float >= 0 < 1 = 0.999, eps: float >= 0 = 1e-8,
      weight_decay: float >= 0 = 0.01, maximize: bool = false) -> ()
  where T: f32 bf16, G: T f32, M: f32 T)",

    R"(quantize_blocks(x: T[*B, N]) -> (q: fp8e4m3[*B, N], scale: f32[*B, N/128])
  where T: bf16 f16 f32)",

    R"(jagged_softmax(values: T[L, H], offsets: O[R+1], *, scale: float > 0 = 1) -> y: T[L, H]
  where T: f16 bf16 f32, O: i64 i32
  gradient dvalues = jagged_softmax_backward(dy, y, offsets, scale))",

    R"(sample(logits: T[*B, V], seed: i64[2], *, temperature: float > 0 = 1, top_p: float > 0 <= 1 = 1, top_k: int >= 0 = 0) -> token: i64[*B]
  where T: f16 bf16 f32
  scratch order: i32[min(B, 132), V]
  not capturable)",

    R"(rope(x: T[*B, S, H, D], cos: C[S, D/2], sin: C[S, D/2], *, layout: halves|pairs = halves) -> y: T[*B, S, H, D]
  where T: f16 bf16 f32, C: T f32
  gradient dx = rope_backward(dy, cos, sin, layout))",

    R"(clip_grad_norm(grad: T[*D]!..., *, max_norm: float > 0, eps: float >= 0 = 1e-6) -> norm: f32[]
  where T: f16 bf16 f32
  scratch part: f32[min(D/1 + 1024, 4096)])",

    R"(softmax(x: T[*B, N], mask: bool[*B, N]?, *, label: str = "") -> y: T[*B, N]
  where T: f16 bf16 f32 f64
  gradient dx = softmax_backward(dy, y))",

    R"(nll(logits: T[*B, V], target: I[*B] < V, *, reduction: mean|sum = mean) -> loss: all acc(T)[]
  where T: f16 bf16 f32 f64, I: i64 i32)",

    R"(row_max(x: T[*B, N], bias: T[N]?, gain: T[N]?) -> (y: max T[N], centred: T[*B, N]? with bias)
  where T: f32 f64)",
};

}  // namespace kw::test
