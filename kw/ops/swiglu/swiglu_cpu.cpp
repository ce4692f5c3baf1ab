// SwiGLU on the CPU: arguments and threads. The kernels are in swiglu_cpu.inc.
#include <algorithm>
#include <initializer_list>

#include "kw/core/room.h"
#include "kw/cpu/parallel.h"

#define KW_ISA_FILE "kw/ops/swiglu/swiglu_cpu.inc"
#include "kw/cpu/each_isa.inc"

namespace kw::ops::swiglu {
namespace {

using namespace cpu;  // for KW_FOR_ISA

// Splits a call into spans of contiguous elements, wherever the rows lie: body(row, first, length).
template <class F>
void each_span(const Call& c, std::initializer_list<const char*> tensors, F&& body) {
  int64_t rows = c.dim("B"), length = c.dim("N");
  if (rows <= 0 || length <= 0) return;
  bool contiguous = true;
  for (const char* t : tensors) {
    const Rows at = c.rows(t);
    contiguous = contiguous && (rows == 1 || (at.size[0] == 0 && at.stride[0] == length));
  }
  if (contiguous) length *= rows, rows = 1;
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

}  // namespace

void forward_cpu(const Call& c) {
  for_type<bf16, float>("swiglu", c.dtype("T"), [&]<class T>() {
    auto kernel = KW_FOR_ISA(swiglu::forward<T>);
    const Rows gate = c.rows("gate"), up = c.rows("up"), y = c.rows("y");
    each_span(c, {"gate", "up", "y"},
              [&](int64_t r, int64_t i, int64_t length) { kernel(as<T>(gate, r) + i, as<T>(up, r) + i, as<T>(y, r) + i, length); });
  });
}

void backward_cpu(const Call& c) {
  for_type<bf16, float>("swiglu_backward", c.dtype("T"), [&]<class T>() {
    auto kernel = KW_FOR_ISA(swiglu::backward<T>);
    const Rows dy = c.rows("dy"), gate = c.rows("gate"), up = c.rows("up"), dgate = c.rows("dgate"), dup = c.rows("dup");
    each_span(c, {"dy", "gate", "up", "dgate", "dup"}, [&](int64_t r, int64_t i, int64_t length) {
      kernel(as<T>(dy, r) + i, as<T>(gate, r) + i, as<T>(up, r) + i, as<T>(dgate, r) + i, as<T>(dup, r) + i, length);
    });
  });
}

}  // namespace kw::ops::swiglu
