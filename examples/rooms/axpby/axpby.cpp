// The room itself: contract, the two planning functions, the CPU kernel and the truth.
#include "kw/ops/axpby/axpby.h"

#include <algorithm>

#include "kw/core/room.h"
#include "kw/ops/axpby/axpby_params.cuh"

namespace kw::ops::axpby {
namespace {

void choose(const Problem& p, const kw_device_facts&, Choice& choice) {
  choice.kernel("kw/ops/axpby/axpby.cuh", format("kw::ops::axpby::forward<%s>", p.type("T")));
}

void fill(const Call& c, const kw_device_facts& gpu, const kw_choice&, Launches& launches) {
  Params p{c.rows("x"), c.rows("y"), c.rows("z"), c.dim("B"), c.dim("N"), c.attr("a"), c.attr("b")};
  auto blocks = static_cast<uint32_t>(std::min<int64_t>(p.rows, 32 * int64_t{gpu.sm_count}));
  launches.add(0, {blocks}, 256, p);
}

template <class T>
void rows(const Call& c) {
  T a = static_cast<T>(c.attr("a")), b = static_cast<T>(c.attr("b"));
  const Rows x_rows = c.rows("x"), y_rows = c.rows("y"), z_rows = c.rows("z");
  for (int64_t row = 0; row < c.dim("B"); row++) {
    const T* x = static_cast<const T*>(x_rows.data) + x_rows.at(row);
    const T* y = static_cast<const T*>(y_rows.data) + y_rows.at(row);
    T* z = static_cast<T*>(z_rows.data) + z_rows.at(row);
    for (int64_t i = 0; i < c.dim("N"); i++) z[i] = a * x[i] + b * y[i];
  }
}

void cpu(const Call& c) { c.dtype("T") == KW_F64 ? rows<double>(c) : rows<float>(c); }
void reference(const Call& c) { rows<double>(c); }

constexpr kw_bench_case bench[] = {{"x=f32[8192,4096] y=f32[8192,4096]"}};

constexpr kw_op_def op = make_op<choose, fill, cpu, reference>(R"(
  axpby(x: T[*B, N], y: T[*B, N], *, a: float = 1, b: float = 1) -> z: T[*B, N]
    where T: f32 f64
)",
                                                               bench);

}  // namespace
}  // namespace kw::ops::axpby

KW_ROOM(axpby, &kw::ops::axpby::op);
