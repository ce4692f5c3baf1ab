// The room of SwiGLU: contracts, the tile, and how it is launched.
#include <algorithm>
#include <initializer_list>

#include "kw/core/row_tile.h"
#include "kw/ops/swiglu/swiglu_bench.h"
#include "kw/ops/swiglu/swiglu_params.cuh"
#include "kw/ops/swiglu/swiglu_reference.h"

namespace kw::ops::swiglu {

void forward_cpu(const Call& c);  // swiglu_cpu.cpp
void backward_cpu(const Call& c);

namespace {

constexpr char forward_contract[] = R"(
  swiglu(gate: T[*B, N], up: T[*B, N]) -> y: T[*B, N]
    where T: f32 bf16
    gradient dgate, dup = swiglu_backward(dy, gate, up))";

constexpr char backward_contract[] = R"(
  swiglu_backward(dy: T[*B, N], gate: T[*B, N], up: T[*B, N]) -> (dgate: T[*B, N], dup: T[*B, N])
    where T: f32 bf16)";

// One vector per thread and many small blocks reach 102 % of the copy rate (measured, README.md): nothing is shared, so nothing is tuned.
void choose(const Problem& p, Choice& out, const char* kernel) {
  const DType type = p.dtype("T");
  const RowTile tile{128, 1, 1, vector_elements(type), access_bytes(p, type, p.dim("N")), 0};
  out.kernel("kw/ops/swiglu/swiglu.cuh", format("kw::ops::swiglu::%s<%s, %s>", kernel, p.type("T"), tile.name().c_str()));
  out.tile(tile);
}
void choose_forward(const Problem& p, const kw_device_facts&, Choice& out) { choose(p, out, "forward"); }
void choose_backward(const Problem& p, const kw_device_facts&, Choice& out) { choose(p, out, "backward"); }

struct Work {
  int64_t count, length, pieces;
};
// The rows to work on: a single long one when every tensor's rows follow each other in memory.
Work work_of(const Call& c, const RowTile& tile, std::initializer_list<const char*> tensors) {
  Work rows{c.dim("B"), c.dim("N"), 0};
  const bool flat = std::ranges::all_of(tensors, [&](const char* t) {
    const auto at = c.rows(t);
    return at.size[0] == 0 && at.stride[0] == rows.length;
  });
  if (flat) rows = {1, rows.count * rows.length, 0};
  rows.pieces = (rows.length + tile.length() - 1) / tile.length();
  return rows;
}

void fill_forward(const Call& c, const kw_device_facts&, const kw_choice& choice, Launches& out) {
  const RowTile tile = tile_of<RowTile>(choice);
  const Work rows = work_of(c, tile, {"gate", "up", "y"});
  if (rows.count == 0 || rows.length == 0) return;
  out.add(0, grid_for(rows.count * rows.pieces, 1), tile.block(),
          ForwardParams{c.rows("gate"), c.rows("up"), c.rows("y"), rows.length, static_cast<uint32_t>(rows.pieces)});
}

void fill_backward(const Call& c, const kw_device_facts&, const kw_choice& choice, Launches& out) {
  const RowTile tile = tile_of<RowTile>(choice);
  const Work rows = work_of(c, tile, {"dy", "gate", "up", "dgate", "dup"});
  if (rows.count == 0 || rows.length == 0) return;
  out.add(0, grid_for(rows.count * rows.pieces, 1), tile.block(),
          BackwardParams{c.rows("dy"), c.rows("gate"), c.rows("up"), c.rows("dgate"), c.rows("dup"), rows.length,
                         static_cast<uint32_t>(rows.pieces)});
}

constexpr kw_op_def forward_op = make_op<choose_forward, fill_forward, forward_cpu, forward_reference>(forward_contract, forward_bench);
constexpr kw_op_def backward_op =
    make_op<choose_backward, fill_backward, backward_cpu, backward_reference>(backward_contract, backward_bench);

}  // namespace
}  // namespace kw::ops::swiglu

KW_ROOM(swiglu, &kw::ops::swiglu::forward_op, &kw::ops::swiglu::backward_op);
