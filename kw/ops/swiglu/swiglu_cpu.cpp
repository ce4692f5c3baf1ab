// SwiGLU on the CPU: arguments and threads. The kernels are in swiglu_cpu.inc.
#include <algorithm>
#include <initializer_list>

#include "kw/core/room.h"
#include "kw/cpu/parallel.h"

namespace kw::cpu {
enum class Activation { silu, gelu_tanh };  // in the contract's order
}

#define KW_ISA_FILE "kw/ops/swiglu/swiglu_cpu.inc"
#include "kw/cpu/each_isa.inc"

namespace kw::ops::swiglu {
namespace {

using namespace cpu;  // for KW_FOR_ISA

// Splits a call into spans of contiguous elements, wherever the rows lie: body(row, first, length).
template <class F>
void each_span(const Call& c, std::initializer_list<Rows> tensors, F&& body) {
  int64_t rows = c.dim("B"), length = c.dim("N");
  if (rows <= 0 || length <= 0) return;
  const auto dense = [&](const Rows& t) { return t.size[0] == 0 && t.stride[0] == length; };
  if (rows > 1 && std::ranges::all_of(tensors, dense)) length *= rows, rows = 1;
  constexpr int64_t span = 16384;  // about the least that is worth a thread
  int64_t spans = (length + span - 1) / span;
  int64_t grain = std::max<int64_t>(1, span / length);
  parallel_for(rows * spans, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      int64_t begin = i % spans * span;
      body(i / spans, begin, std::min(span, length - begin));
    }
  });
}

template <class T>
void forward_rows(const Call& c, const Rows& gate, const Rows& up) {
  const bool silu = c.choice("activation") == 0;
  auto kernel = silu ? KW_FOR_ISA(swiglu::forward<T, Activation::silu>) : KW_FOR_ISA(swiglu::forward<T, Activation::gelu_tanh>);
  const Rows y = c.rows("y");
  each_span(c, {gate, up, y},
            [&](int64_t r, int64_t i, int64_t length) { kernel(as<T>(gate, r) + i, as<T>(up, r) + i, as<T>(y, r) + i, length); });
}

template <class T>
void backward_rows(const Call& c, const Rows& gate, const Rows& up, const Rows& dgate, const Rows& dup) {
  const bool silu = c.choice("activation") == 0;
  auto kernel = silu ? KW_FOR_ISA(swiglu::backward<T, Activation::silu>) : KW_FOR_ISA(swiglu::backward<T, Activation::gelu_tanh>);
  const Rows dy = c.rows("dy");
  each_span(c, {dy, gate, up, dgate, dup}, [&](int64_t r, int64_t i, int64_t length) {
    kernel(as<T>(dy, r) + i, as<T>(gate, r) + i, as<T>(up, r) + i, as<T>(dgate, r) + i, as<T>(dup, r) + i, length);
  });
}

template <class T>
Rows second_half(const Call& c, const char* tensor) {  // of each row of a packed tensor
  Rows rows = c.rows(tensor);
  rows.data = static_cast<T*>(rows.data) + c.dim("N");
  return rows;
}

}  // namespace

void forward_cpu(const Call& c) {
  for_type("swiglu", c.dtype("T"), [&]<class T>() { forward_rows<T>(c, c.rows("gate"), c.rows("up")); });
}
void packed_forward_cpu(const Call& c) {
  for_type("swiglu_packed", c.dtype("T"), [&]<class T>() { forward_rows<T>(c, c.rows("x"), second_half<T>(c, "x")); });
}
void backward_cpu(const Call& c) {
  for_type("swiglu_backward", c.dtype("T"),
           [&]<class T>() { backward_rows<T>(c, c.rows("gate"), c.rows("up"), c.rows("dgate"), c.rows("dup")); });
}
void packed_backward_cpu(const Call& c) {
  for_type("swiglu_packed_backward", c.dtype("T"),
           [&]<class T>() { backward_rows<T>(c, c.rows("x"), second_half<T>(c, "x"), c.rows("dx"), second_half<T>(c, "dx")); });
}

}  // namespace kw::ops::swiglu
