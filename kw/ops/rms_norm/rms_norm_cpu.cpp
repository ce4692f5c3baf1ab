// RMSNorm on the CPU: arguments and threads. The kernels are in rms_norm_cpu.inc.
#include <algorithm>

#include "kw/core/room.h"
#include "kw/cpu/parallel.h"

namespace kw::cpu {
namespace {

struct Forward {
  Rows x;
  Rows residual;  // null: none, and no total
  const void* weight;
  Rows y, total;
  int64_t rows, length;
  double eps, offset;
  bool twice;  // round the normalised x before it is multiplied
};

struct Backward {
  Rows dy;
  Rows dtotal;  // null: none
  Rows x;
  const void* weight;
  Rows dx;
  void* dweight;
  void* part;  // acc(T)[chunks, length]
  int64_t rows, length;
  int64_t chunk;  // rows whose shares of dweight are added up one after the other
  double eps, offset;
};

// Fewer elements than this are not worth a second thread: waking one costs 2-5 us, and they take about as long.
constexpr int64_t worth_a_thread = 32768;

}  // namespace
}  // namespace kw::cpu

#define KW_ISA_FILE "kw/ops/rms_norm/rms_norm_cpu.inc"
#include "kw/cpu/each_isa.inc"

namespace kw::ops::rms_norm {
namespace {

// Calls f<T, W>(); W is void without a weight.
template <class F>
void for_types(const Call& c, const char* op, F&& f) {
  cpu::for_type(op, c.dtype("T"), [&]<class T>() {
    if (!c.has("weight")) return f.template operator()<T, void>();
    if (c.dtype("W") == c.dtype("T")) return f.template operator()<T, T>();
    f.template operator()<T, float>();
  });
}

}  // namespace

using namespace cpu;  // for KW_FOR_ISA

template <bool adds>
void forward_cpu(const Call& c) {
  Forward p{};
  p.x = c.rows("x"), p.weight = c.data("weight"), p.y = c.rows("y"), p.rows = c.dim("B"), p.length = c.dim("N");
  p.eps = c.attr("eps"), p.offset = c.attr("offset"), p.twice = c.choice("rounding") != 0;
  if constexpr (adds) p.residual = c.rows("residual"), p.total = c.rows("total");
  for_types(c, adds ? "add_rms_norm" : "rms_norm", [&]<class T, class W>() {
    auto kernel = KW_FOR_ISA(rms_norm::forward<T, W>);
    parallel_for(p.rows, worth_a_thread / std::max<int64_t>(p.length, 1), [&](int64_t first, int64_t last) { kernel(p, first, last); });
  });
}
template void forward_cpu<false>(const Call& c);
template void forward_cpu<true>(const Call& c);

template <bool adds>
void backward_cpu(const Call& c) {
  const char* x = adds ? "total" : "x";
  Backward p{};
  p.dy = c.rows("dy"), p.x = c.rows(x), p.weight = c.data("weight");
  p.dx = c.rows("dx"), p.dweight = c.data("dweight"), p.part = c.data("part");
  p.rows = c.dim("B"), p.length = c.dim("N"), p.eps = c.attr("eps"), p.offset = c.attr("offset");
  if constexpr (adds) p.dtotal = c.rows("dtotal");
  // The same for any number of threads, and at most 1024 chunks: `part` has no more rows. Below 16 rows its traffic shows (2-6 % at 8).
  p.chunk = std::max<int64_t>(16, (p.rows + 1023) / 1024);
  int64_t chunks = (p.rows + p.chunk - 1) / p.chunk;
  for_types(c, adds ? "add_rms_norm_backward" : "rms_norm_backward", [&]<class T, class W>() {
    auto rows = KW_FOR_ISA(rms_norm::backward<T, W>);
    parallel_for(chunks, worth_a_thread / std::max<int64_t>(p.length * p.chunk, 1),
                 [&](int64_t first, int64_t last) { rows(p, first, last); });
    if constexpr (!std::is_void_v<W>) {
      auto columns = KW_FOR_ISA(rms_norm::column_sums<acc_t<T>, W>);
      parallel_for(p.length, std::max<int64_t>(256, worth_a_thread / std::max<int64_t>(chunks, 1)),
                   [&](int64_t first, int64_t last) { columns(p, first, last); });
    }
  });
}
template void backward_cpu<false>(const Call& c);
template void backward_cpu<true>(const Call& c);

}  // namespace kw::ops::rms_norm
