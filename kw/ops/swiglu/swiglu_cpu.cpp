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

struct View {  // a tensor as rows
  char* data;
  int64_t stride;  // bytes
  template <class T>
  T* row(int64_t r) const {
    return reinterpret_cast<T*>(data + r * stride);
  }
};

// Splits a call into spans of contiguous elements, wherever the rows lie: body(row, first, length).
template <class F>
void each_span(const Call& c, std::initializer_list<const char*> tensors, F&& body) {
  int64_t rows = c.dim("B"), length = c.dim("N");
  if (rows <= 0 || length <= 0) return;
  bool contiguous = true;
  for (const char* t : tensors) contiguous = contiguous && (rows == 1 || c.row_stride(t) == length);
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

View view(const Call& c, const char* name, size_t size) {
  return {static_cast<char*>(c.data(name)), c.row_stride(name) * static_cast<int64_t>(size)};
}

}  // namespace

void forward_cpu(const Call& c) {
  for_type<bf16, float>("swiglu", c.dtype("T"), [&]<class T>() {
    auto kernel = KW_FOR_ISA(swiglu::forward<T>);
    View gate = view(c, "gate", sizeof(T)), up = view(c, "up", sizeof(T)), y = view(c, "y", sizeof(T));
    each_span(c, {"gate", "up", "y"},
              [&](int64_t row, int64_t i, int64_t length) { kernel(gate.row<T>(row) + i, up.row<T>(row) + i, y.row<T>(row) + i, length); });
  });
}

void backward_cpu(const Call& c) {
  for_type<bf16, float>("swiglu_backward", c.dtype("T"), [&]<class T>() {
    auto kernel = KW_FOR_ISA(swiglu::backward<T>);
    View dy = view(c, "dy", sizeof(T)), gate = view(c, "gate", sizeof(T)), up = view(c, "up", sizeof(T));
    View dgate = view(c, "dgate", sizeof(T)), dup = view(c, "dup", sizeof(T));
    each_span(c, {"dy", "gate", "up", "dgate", "dup"}, [&](int64_t row, int64_t i, int64_t length) {
      kernel(dy.row<T>(row) + i, gate.row<T>(row) + i, up.row<T>(row) + i, dgate.row<T>(row) + i, dup.row<T>(row) + i, length);
    });
  });
}

}  // namespace kw::ops::swiglu
