// The room of RMSNorm: contracts, which kernel with which tile, and how it is launched.
#include "kw/ops/rms_norm/rms_norm.h"

#include "kw/core/row_tile.h"
#include "kw/ops/rms_norm/rms_norm_bench.h"
#include "kw/ops/rms_norm/rms_norm_params.cuh"
#include "kw/ops/rms_norm/rms_norm_reference.h"

namespace kw::ops::rms_norm {

void forward_cpu(const Call& c);  // rms_norm_cpu.cpp
void backward_cpu(const Call& c);

namespace {

// The weight's type in device code; kw::One when there is no weight.
const char* weight_type(const Problem& p) { return p.has("weight") ? p.type("W") : "kw::One"; }

// ---- forward -----------------------------------------------------------------------------------------------------------------

// Fastest of about 20 000 candidates on one H200 at 256 MiB (97-99 % of the copy rate); see README.md. Launched without a loop over rows,
// so `blocks` is not used.
constexpr TunedTile forward_tiles[] = {
    {KW_BF16, 128, 1, 1, 0},  //  1024
    {KW_BF16, 64, 4, 8, 0},   //  4096
    {KW_BF16, 128, 1, 5, 0},  //  5120
    {KW_BF16, 128, 2, 8, 0},  //  8192
    {KW_BF16, 256, 1, 7, 0},  // 14336
    {KW_BF16, 512, 1, 4, 0},  // 16384
    {KW_F32, 64, 2, 1, 0},    //   256
    {KW_F32, 128, 1, 2, 0},   //  1024
    {KW_F32, 512, 1, 2, 0},   //  4096
    {KW_F32, 1024, 1, 2, 0},  //  8192
    {KW_F32, 1024, 1, 4, 0},  // 16384
};

void choose_forward(const Problem& p, const kw_device_facts&, Choice& out) {
  const DType type = p.dtype("T");
  const bool wide =
      p.has("weight") && p.dtype("W") != type;  // an f32 weight beside 16-bit rows: the tuned tiles would be short of registers
  const auto kernel = [&](const char* file, const char* name, const RowTile& tile) {
    out.kernel(file, format("kw::ops::rms_norm::%s<%s, %s, %s>", name, p.type("T"), weight_type(p), tile.name().c_str()));
    out.tile(tile);
  };
  if (const auto tile = choose_row_tile(wide ? std::span<const TunedTile>{} : forward_tiles, p, type, p.dim("N"), wide ? 12 : 8))
    kernel("kw/ops/rms_norm/rms_norm.cuh", "forward", *tile);
  else
    kernel("kw/ops/rms_norm/rms_norm_long.cuh", "forward_long", long_row_tile(p, type, p.dim("N"), 4, 2));
}

void fill_forward(const Call& c, const kw_device_facts&, const kw_choice& choice, Launches& out) {
  const RowTile tile = tile_of<RowTile>(choice);
  const int64_t rows = c.dim("B"), length = c.dim("N");
  if (rows == 0 || length == 0) return;
  out.add(0, grid_for(rows, tile.rows), tile.block(),
          ForwardParams{c.data("x"), c.data("weight"), c.data("y"), rows, length, c.row_stride("x"), c.row_stride("y"),
                        1.0 / static_cast<double>(length), c.attr("eps")});
}

// ---- backward ----------------------------------------------------------------------------------------------------------------

// After the prototype's winners where those held rows in registers (256, 1024; 98 % of the copy rate), by registers for the rest, whose
// winners went through a ring in shared memory.
constexpr TunedTile backward_tiles[] = {
    {KW_BF16, 16, 8, 2, 5},   //   256
    {KW_BF16, 64, 4, 2, 2},   //  1024
    {KW_BF16, 256, 1, 2, 2},  //  4096
    {KW_BF16, 512, 1, 2, 1},  //  8192
    {KW_F32, 64, 4, 1, 5},    //   256
    {KW_F32, 256, 1, 1, 5},   //  1024
    {KW_F32, 512, 1, 2, 2},   //  4096
    {KW_F32, 1024, 1, 2, 1},  //  8192
};
constexpr TunedTile backward_tiles_full[] = {
    // too long to have the next row on its way as well
    {KW_BF16, 512, 1, 4, 1},  // 16384
    {KW_F32, 512, 1, 6, 1},   // 12288
    {KW_F32, 512, 1, 7, 1},   // 14336
    {KW_F32, 512, 1, 8, 1},   // 16384
};

void choose_backward(const Problem& p, const kw_device_facts&, Choice& out) {
  const DType type = p.dtype("T");
  const int32_t sums = type == KW_F32 ? 4 : 8;  // registers of a vector's f32 sums for dweight
  const auto kernel = [&](const char* file, const char* name, const RowTile& tile, const char* ahead) {
    out.kernel(file, format("kw::ops::rms_norm::%s<%s, %s, %s, %d%s>", name, p.type("T"), weight_type(p), tile.name().c_str(), tile.blocks,
                            ahead));
    out.tile(tile);
  };
  if (const auto tile = choose_row_tile(backward_tiles, p, type, p.dim("N"), 16 + sums))
    kernel("kw/ops/rms_norm/rms_norm_backward.cuh", "backward", *tile, ", true");
  else if (const auto full = choose_row_tile(backward_tiles_full, p, type, p.dim("N"), 8 + sums))
    kernel("kw/ops/rms_norm/rms_norm_backward.cuh", "backward", *full, ", false");
  else
    kernel("kw/ops/rms_norm/rms_norm_backward_long.cuh", "backward_long", long_row_tile(p, type, p.dim("N"), 2, 1), "");
  if (p.has("weight")) out.kernel("kw/ops/rms_norm/rms_norm_columns.cuh", format("kw::ops::rms_norm::sum_parts<float, %s>", p.type("W")));
}

void fill_backward(const Call& c, const kw_device_facts& gpu, const kw_choice& choice, Launches& out) {
  const RowTile tile = tile_of<RowTile>(choice);
  const int64_t rows = c.dim("B"), length = c.dim("N");
  if (length == 0) return;
  // No more blocks than run at once, nor than `part` has rows; each takes every gridDim.x-th of the row groups.
  const int64_t groups = (rows + tile.rows - 1) / tile.rows;
  const int64_t blocks = std::min<int64_t>({groups, int64_t{gpu.sm_count} * tile.blocks, 1024});
  if (rows > 0)
    out.add(0, grid_for(blocks, 1), tile.block(),
            BackwardParams{c.data("dy"), c.data("x"), c.data("weight"), c.data("dx"), c.data("part"), rows, length, c.row_stride("dy"),
                           c.row_stride("x"), c.row_stride("dx"), 1.0 / static_cast<double>(length), c.attr("eps")});
  if (!c.has("weight")) return;
  // One thread per column reads few parts as fast as memory gives them; with many, up to 32 slices of about 8 parts keep as much in flight.
  const auto slices =
      static_cast<int32_t>(std::clamp<int64_t>(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(blocks / 8))), 1, 32));
  const int32_t columns = std::max(32, 128 / slices);
  out.add(1, grid_for(length, columns), static_cast<uint32_t>(columns * slices),
          ColumnParams{c.data("part"), c.data("dweight"), blocks, length, columns});
}

// ---- the ops -----------------------------------------------------------------------------------------------------------------

constexpr kw_op_def forward_op = make_op<choose_forward, fill_forward, forward_cpu, forward_reference>(R"(
  rms_norm(x: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6) -> y: T[*B, N]
    where T: f32 bf16, W: T f32
    gradient dx, dweight = rms_norm_backward(dy, x, weight, eps)
)",
                                                                                                       forward_bench);

constexpr kw_op_def backward_op = make_op<choose_backward, fill_backward, backward_cpu, backward_reference>(R"(
  rms_norm_backward(dy: T[*B, N], x: T[*B, N], weight: W[N]?, *, eps: float >= 0) -> (dx: T[*B, N], dweight: sum W[N]?)
    where T: f32 bf16, W: T f32
    scratch part: acc(T)[min(B, 1024), N]?
)",
                                                                                                            backward_bench);

}  // namespace
}  // namespace kw::ops::rms_norm

KW_ROOM(rms_norm, &kw::ops::rms_norm::forward_op, &kw::ops::rms_norm::backward_op);
