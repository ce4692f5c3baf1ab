// The room of SwiGLU and its kin: contracts, the tile, and how it is launched.
#include <algorithm>
#include <bit>
#include <initializer_list>

#include "kw/core/row_tile.h"
#include "kw/ops/swiglu/swiglu_bench.h"
#include "kw/ops/swiglu/swiglu_params.cuh"
#include "kw/ops/swiglu/swiglu_reference.h"

namespace kw::ops::swiglu {

void forward_cpu(const Call& c);  // swiglu_cpu.cpp
void backward_cpu(const Call& c);
void packed_forward_cpu(const Call& c);
void packed_backward_cpu(const Call& c);

namespace {

constexpr char forward_contract[] = R"(
  swiglu(gate: T[*B, N], up: T[*B, N], *, activation: silu|gelu_tanh = silu) -> y: T[*B, N]
    where T: f16 bf16 f32 f64
    gradient dgate, dup = swiglu_backward(dy, gate, up, activation))";

constexpr char backward_contract[] = R"(
  swiglu_backward(dy: T[*B, N], gate: T[*B, N], up: T[*B, N], *, activation: silu|gelu_tanh = silu) -> (dgate: T[*B, N], dup: T[*B, N])
    where T: f16 bf16 f32 f64)";

// One row of x is gate, then up.
constexpr char packed_forward_contract[] = R"(
  swiglu_packed(x: T[*B, 2*N], *, activation: silu|gelu_tanh = silu) -> y: T[*B, N]
    where T: f16 bf16 f32 f64
    gradient dx = swiglu_packed_backward(dy, x, activation))";

constexpr char packed_backward_contract[] = R"(
  swiglu_packed_backward(dy: T[*B, N], x: T[*B, 2*N], *, activation: silu|gelu_tanh = silu) -> dx: T[*B, 2*N]
    where T: f16 bf16 f32 f64)";

// One vector per thread and many small blocks reach 102 % of the copy rate (measured, README.md): nothing is shared, so nothing is tuned.
// Short rows share a block.
void choose(const Problem& p, Choice& out, const char* kernel) {
  const DType type = p.dtype("T");
  const int32_t vec = vector_elements(type);
  const auto threads =
      static_cast<int32_t>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>((p.dim("N") + vec - 1) / vec, 1, 128))));
  const RowTile tile{threads, 128 / threads, 1, vec, access_bytes(p, type, p.dim("N")), 0};
  const char* activation = p.choice("activation") == 0 ? "Silu" : "GeluTanh";
  out.kernel("kw/ops/swiglu/swiglu.cuh",
             format("kw::ops::swiglu::%s<%s, kw::ops::swiglu::%s, %s>", kernel, p.type("T"), activation, tile.name().c_str()));
  out.tile(tile);
}
void choose_forward(const Problem& p, const kw_device_facts&, Choice& out) { choose(p, out, "forward"); }
void choose_backward(const Problem& p, const kw_device_facts&, Choice& out) { choose(p, out, "backward"); }

// The second half of each row of a packed tensor.
Rows second_half(const Call& c, const char* tensor) {
  Rows rows = c.rows(tensor);
  rows.data = static_cast<char*>(rows.data) + c.dim("N") * dtype_bytes(c.dtype("T"));
  return rows;
}

// Launches a kernel over `rows` rows: over a single long one when every tensor's rows follow each other in memory.
template <class Params>
void launch(Launches& out, const RowTile& tile, int64_t rows, Params params, std::initializer_list<Rows> tensors) {
  if (rows == 0 || params.length == 0) return;
  const auto dense = [&](const Rows& t) { return t.size[0] == 0 && t.stride[0] == params.length; };
  if (rows > 1 && std::ranges::all_of(tensors, dense)) params.length *= rows, rows = 1;
  const int64_t pieces = (params.length + tile.length() - 1) / tile.length();
  if (pieces > UINT32_MAX || rows * pieces > UINT32_MAX)
    throw Error(KW_ERROR_UNSUPPORTED, format("%lld rows of %lld are more pieces than one launch counts", static_cast<long long>(rows),
                                             static_cast<long long>(params.length)));
  params.rows = rows, params.pieces = static_cast<uint32_t>(pieces);
  out.add(0, grid_for(rows * pieces, tile.rows), tile.block(), params);
}

template <bool packed>
void fill_forward(const Call& c, const kw_device_facts&, const kw_choice& choice, Launches& out) {
  const Rows gate = c.rows(packed ? "x" : "gate"), up = packed ? second_half(c, "x") : c.rows("up"), y = c.rows("y");
  launch(out, tile_of<RowTile>(choice), c.dim("B"), ForwardParams{gate, up, y, 0, c.dim("N"), 0}, {gate, up, y});
}

template <bool packed>
void fill_backward(const Call& c, const kw_device_facts&, const kw_choice& choice, Launches& out) {
  const Rows dy = c.rows("dy"), gate = c.rows(packed ? "x" : "gate"), up = packed ? second_half(c, "x") : c.rows("up");
  const Rows dgate = c.rows(packed ? "dx" : "dgate"), dup = packed ? second_half(c, "dx") : c.rows("dup");
  launch(out, tile_of<RowTile>(choice), c.dim("B"), BackwardParams{dy, gate, up, dgate, dup, 0, c.dim("N"), 0}, {dy, gate, up, dgate, dup});
}

constexpr kw_op_def forward_op =
    make_op<choose_forward, fill_forward<false>, forward_cpu, forward_reference>(forward_contract, forward_bench);
constexpr kw_op_def backward_op =
    make_op<choose_backward, fill_backward<false>, backward_cpu, backward_reference>(backward_contract, backward_bench);
constexpr kw_op_def packed_forward_op = make_op<choose_forward, fill_forward<true>, packed_forward_cpu, packed_forward_reference>(
    packed_forward_contract, packed_forward_bench);
constexpr kw_op_def packed_backward_op = make_op<choose_backward, fill_backward<true>, packed_backward_cpu, packed_backward_reference>(
    packed_backward_contract, packed_backward_bench);

}  // namespace
}  // namespace kw::ops::swiglu

KW_ROOM(swiglu, &kw::ops::swiglu::forward_op, &kw::ops::swiglu::backward_op, &kw::ops::swiglu::packed_forward_op,
        &kw::ops::swiglu::packed_backward_op);
