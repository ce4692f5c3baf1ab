// The room of RMSNorm: contracts, which kernel with which tile, and how it is launched.
#include "kw/core/row_tile.h"
#include "kw/ops/rms_norm/rms_norm_bench.h"
#include "kw/ops/rms_norm/rms_norm_params.cuh"
#include "kw/ops/rms_norm/rms_norm_reference.h"

namespace kw::ops::rms_norm {

// rms_norm_cpu.cpp
template <bool adds>
void forward_cpu(const Call& c);
template <bool adds>
void backward_cpu(const Call& c);

namespace {

constexpr char forward_contract[] = R"(
  rms_norm(x: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6, offset: float = 0, rounding: once|before_weight = once) -> y: T[*B, N]
    where T: f16 bf16 f32 f64, W: T f32
    gradient dx, dweight = rms_norm_backward(dy, x, weight, eps, offset))";

constexpr char backward_contract[] = R"(
  rms_norm_backward(dy: T[*B, N], x: T[*B, N], weight: W[N]?, *, eps: float >= 0, offset: float = 0)
    -> (dx: T[*B, N], dweight: sum W[N]?)
    where T: f16 bf16 f32 f64, W: T f32
    scratch part: acc(T)[min(B, 1024), N]?)";

constexpr char add_contract[] = R"(
  add_rms_norm(x: T[*B, N], residual: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6, offset: float = 0,
               rounding: once|before_weight = once) -> (y: T[*B, N], total: T[*B, N])
    where T: f16 bf16 f32 f64, W: T f32
    gradient dx and dresidual, dweight = add_rms_norm_backward(dy, dtotal, total, weight, eps, offset))";

constexpr char add_backward_contract[] = R"(
  add_rms_norm_backward(dy: T[*B, N], dtotal: T[*B, N], total: T[*B, N], weight: W[N]?, *, eps: float >= 0, offset: float = 0)
    -> (dx: T[*B, N], dweight: sum W[N]?)
    where T: f16 bf16 f32 f64, W: T f32
    scratch part: acc(T)[min(B, 1024), N]?)";

// Roundings on the way to y: of y, of the normalised x if asked for, and of total, which moves y directly and through the mean.
template <bool adds>
int32_t forward_roundings(const kw_attribute* attributes, int32_t result) {
  return result == 0 ? 1 + static_cast<int32_t>(attributes[2].i) + (adds ? 2 : 0) : 1;
}

// The weight's type in device code; kw::One when there is no weight.
const char* weight_type(const Problem& p) { return p.has("weight") ? p.type("W") : "kw::One"; }
// That of residual or dtotal, which the ops with `adds` have.
const char* term_type(const Problem& p, bool adds) { return adds ? p.type("T") : "kw::Zero"; }

// ---- rows on their way through shared memory ------------------------------------------------------------------------------------

struct NormTile {
  RowTile row;
  int32_t slots;  // of the ring; 0 without one

  // A slot is 16 bytes of each of `tensors` tensors for each thread.
  uint32_t shared_bytes(uint32_t tensors) const { return static_cast<uint32_t>(slots) * row.block() * tensors * 16; }
};

// Whether this GPU and these rows allow a ring.
bool ring_is_possible(const Problem& p, const kw_device_facts& gpu) {
  return gpu.arch >= 80 && access_bytes(p, p.dtype("T"), p.dim("N")) == 16;
}

// The tile with so many slots, or as many as fit into shared memory; nothing when the `tensors` of a row do not.
std::optional<NormTile> with_slots(const Problem& p, const kw_device_facts& gpu, const RowTile& row, int32_t slots, int32_t tensors) {
  if (row.cluster > 1 && gpu.arch < 90) return std::nullopt;
  const int32_t most = ring_slots(row, gpu, p.dtype("T"), tensors);
  if (most < row.vectors) return std::nullopt;
  return NormTile{row, std::min(slots, most)};
}

// For rows that no block holds, spread over a cluster of blocks: 8 vectors in each of 128 to 512 threads of a block, 256 threads or more on
// a multiprocessor, three rows in the ring, as far as they fit. `held`: registers of a vector of what a thread keeps from row to row;
// nothing when they are too many.
std::optional<NormTile> spread_ring(const Problem& p, const kw_device_facts& gpu, int32_t tensors, int32_t held) {
  if (!ring_is_possible(p, gpu)) return std::nullopt;
  const int64_t need = row_vectors(p.dtype("T"), p.dim("N"));
  const int32_t tree = gpu.arch < 90 ? 1024 : row_tree(need);
  int32_t threads = std::clamp<int32_t>(static_cast<int32_t>(std::bit_ceil(static_cast<uint64_t>((need + 7) / 8))), 512, tree);
  int32_t cluster = threads > 2048 ? 16 : 8, blocks = std::max(1, 256 * cluster / threads);
  if (gpu.arch < 90) threads = 1024, cluster = blocks = 1;
  const auto vectors = static_cast<int32_t>((need + threads - 1) / threads);
  if (vectors * held > 128) return std::nullopt;
  return with_slots(p, gpu, {threads, 1, vectors, vector_elements(p.dtype("T")), 16, blocks, cluster, row_tree(need)}, 3 * vectors,
                    tensors);
}

// ---- forward -----------------------------------------------------------------------------------------------------------------

// Fastest of about 20 000 candidates on one H200 at 256 MiB (97-99 % of the copy rate); see README.md. Launched without a loop over rows,
// so `blocks` is not used.
constexpr TunedTile forward_tiles[] = {
    {KW_BF16, 64, 2, 2, 0},   //  1024
    {KW_BF16, 64, 4, 8, 0},   //  4096
    {KW_BF16, 128, 1, 5, 0},  //  5120
    {KW_BF16, 128, 2, 8, 0},  //  8192
    {KW_BF16, 256, 1, 7, 0},  // 14336
    {KW_BF16, 512, 1, 4, 0},  // 16384
    {KW_F32, 64, 2, 1, 0},    //   256
    {KW_F32, 128, 1, 2, 0},   //  1024
    {KW_F32, 512, 1, 2, 0},   //  4096
    {KW_F32, 1024, 1, 2, 0},  //  8192
    {KW_F32, 512, 1, 8, 0},   // 16384
};

template <bool adds>
void choose_forward(const Problem& p, const kw_device_facts& gpu, Choice& out) {
  const DType type = p.dtype("T");
  const auto kernel = [&](const char* file, const char* name, const NormTile& tile, const std::string& last = "") {
    out.kernel(file, format("kw::ops::rms_norm::%s<%s, %s, %s, %s, %s%s>", name, p.type("T"), weight_type(p), term_type(p, adds),
                            tile.row.name().c_str(), p.choice("rounding") ? "true" : "false", last.c_str()));
    out.tile(tile);
  };
  // Registers of a vector: 4 for x, 4 for the weight, 4 for the residual.
  if (const auto tile = adds ? choose_row_tile({}, p, type, p.dim("N"), 12) : choose_row_tile(forward_tiles, p, type, p.dim("N"), 8))
    kernel("kw/ops/rms_norm/rms_norm.cuh", "forward", {*tile, 0});
  else if (const auto ring = spread_ring(p, gpu, adds ? 2 : 1, 4))
    kernel("kw/ops/rms_norm/rms_norm_ring.cuh", "forward_ring", *ring, format(", %d, %d", ring->row.blocks, ring->slots));
  else
    kernel("kw/ops/rms_norm/rms_norm_long.cuh", "forward_long", {long_row_tile(p, type, p.dim("N"), 4, 2), 0});
}

template <bool adds>
void fill_forward(const Call& c, const kw_device_facts& gpu, const kw_choice& choice, Launches& out) {
  const auto forward = tile_of<NormTile>(choice);
  const RowTile& tile = forward.row;
  const int64_t rows = c.dim("B"), length = c.dim("N");
  if (rows == 0 || length == 0) return;
  const int64_t teams = (rows + tile.rows - 1) / tile.rows;
  const int64_t at_once = forward.slots ? std::min(teams, teams_at_once(tile, gpu)) : teams;
  out.add(0, grid_for(at_once * tile.cluster, 1), tile.block(),
          ForwardParams{c.rows("x"), adds ? c.rows("residual") : Rows{}, c.data("weight"), c.rows("y"), adds ? c.rows("total") : Rows{},
                        rows, length, 1.0 / static_cast<double>(length), c.attr("eps"), c.attr("offset")},
          forward.shared_bytes(adds ? 2 : 1), static_cast<uint32_t>(tile.cluster));
}

// ---- backward ----------------------------------------------------------------------------------------------------------------

struct RingTile {
  TunedTile tile;
  int32_t slots, cluster = 1;
};

// Fastest of about 1000 candidates on one H200, 2026-11-30, at 512 MiB a tensor, one tensor behind the other; microseconds beside them,
// where 3 times 512 MiB take 379 at the copy rate. What counts is how much is on its way while a row is worked on: (slots - vectors) * 32
// bytes per thread. 16 KB per multiprocessor are too few (1.2 times the time), 32 to 48 KB best, 64 KB and more cost 1-5 %: reads then
// disturb the writes.
constexpr RingTile ring_tiles[] = {
    {{KW_BF16, 128, 6, 1, 1}, 3},       //  1024: 386
    {{KW_BF16, 128, 1, 2, 3}, 4},       //  2048: 391
    {{KW_BF16, 256, 1, 2, 1}, 8},       //  4096: 388 (2026-12-01; 512 x 2 x 1 vector and 2 slots: 391, and 26 in place of 25 at 2048 rows)
    {{KW_BF16, 128, 1, 5, 1}, 20},      //  5120: 385 (2026-12-01; 256 x 3 vectors and 10 slots: 386)
    {{KW_BF16, 1024, 1, 1, 1}, 2},      //  8192: 389
    {{KW_BF16, 512, 1, 4, 1}, 6},       // 14336: 397 (2026-12-01; 256 x 7 vectors and 12 slots too, and half again as long to compile)
    {{KW_BF16, 256, 1, 8, 1}, 12},      // 16384: 395
    {{KW_BF16, 1024, 1, 4, 2}, 12, 8},  // 32768: 396 (2026-12-01)
    {{KW_F32, 256, 1, 1, 2}, 3},        //  1024: 388
    {{KW_F32, 256, 2, 4, 1}, 5},        //  4096: 390
    {{KW_F32, 256, 1, 8, 1}, 9},        //  8192: 391
    {{KW_F32, 1024, 1, 4, 2}, 12, 8},   // 16384: 396 (2026-12-01)
    {{KW_F32, 512, 1, 8, 1}, 9},        // 16384 where there are no clusters: 400
};

// The tile for a ring, or nothing when this GPU has none, rows are not aligned, or the `tensors` (x, dy and perhaps dtotal) of a row do not
// fit into shared memory.
std::optional<NormTile> choose_ring(const Problem& p, const kw_device_facts& gpu, int32_t tensors) {
  const DType type = p.dtype("T");
  const int32_t vec = vector_elements(type);
  const int64_t need = row_vectors(p.dtype("T"), p.dim("N"));
  if (!ring_is_possible(p, gpu)) return std::nullopt;
  for (const auto& [t, slots, cluster] : ring_tiles)
    if (dtype_bytes(t.dtype) == dtype_bytes(type) && covers(t, need))
      if (const auto tile = with_slots(p, gpu, {t.threads, t.rows, t.vectors, vec, 16, t.blocks, cluster}, slots, tensors)) return tile;
  if (need < 128) return std::nullopt;  // registers do as well there: 98 % of the copy rate
  // The rule, within 4 % of the best: one block of 512 threads with 3 or 4 vectors each, 2 or 3 more on their way.
  for (int32_t threads = 32; threads <= 512; threads *= 2)
    if (const auto vectors = static_cast<int32_t>((need + threads - 1) / threads); vectors <= 4)
      return with_slots(p, gpu, {threads, 512 / threads, vectors, vec, 16, 1}, vectors + (vectors == 3 ? 3 : 2), tensors);
  return std::nullopt;
}

// For rows that no ring takes: before sm_80, not aligned, short. After the prototype's winners where those held rows in registers (256,
// 1024; 98 % of the copy rate), by registers for the rest.
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
// Too long to have the next row on its way as well.
constexpr TunedTile backward_tiles_full[] = {
    {KW_BF16, 512, 1, 4, 1},  // 16384
    {KW_F32, 512, 1, 6, 1},   // 12288
    {KW_F32, 512, 1, 7, 1},   // 14336
    {KW_F32, 512, 1, 8, 1},   // 16384
};

template <bool adds>
void choose_backward(const Problem& p, const kw_device_facts& gpu, Choice& out) {
  const DType type = p.dtype("T");
  const int32_t tensors = adds ? 3 : 2;
  const int32_t sums = dtype_bytes(type) == 2 ? 8 : 4;  // registers of a vector's sums for dweight
  const int32_t more = adds ? 4 : 0;                    // and of dtotal
  const auto kernel = [&](const char* file, const char* name, RowTile tile, const std::string& last, int32_t slots = 0) {
    tile.blocks = std::clamp(gpu.threads_per_sm / static_cast<int32_t>(tile.block()), 1, tile.blocks);
    out.kernel(file, format("kw::ops::rms_norm::%s<%s, %s, %s, %s, %d%s>", name, p.type("T"), weight_type(p), term_type(p, adds),
                            tile.name().c_str(), tile.blocks, last.c_str()));
    out.tile(NormTile{tile, slots});
  };
  if (const auto ring = choose_ring(p, gpu, tensors))
    kernel("kw/ops/rms_norm/rms_norm_backward_ring.cuh", "backward_ring", ring->row, format(", %d", ring->slots), ring->slots);
  else if (const auto tile = choose_row_tile(backward_tiles, p, type, p.dim("N"), 16 + sums + more))
    kernel("kw/ops/rms_norm/rms_norm_backward.cuh", "backward", *tile, ", true");
  else if (const auto full = choose_row_tile(backward_tiles_full, p, type, p.dim("N"), 8 + sums + more))
    kernel("kw/ops/rms_norm/rms_norm_backward.cuh", "backward", *full, ", false");
  else if (const auto spread = spread_ring(p, gpu, tensors, p.has("weight") ? sums + 4 : 0))
    kernel("kw/ops/rms_norm/rms_norm_backward_ring.cuh", "backward_ring", spread->row, format(", %d", spread->slots), spread->slots);
  else
    kernel("kw/ops/rms_norm/rms_norm_backward_long.cuh", "backward_long", long_row_tile(p, type, p.dim("N"), 2, 1), "");
  if (p.has("weight"))
    out.kernel("kw/ops/rms_norm/rms_norm_backward.cuh",
               format("kw::ops::rms_norm::sum_parts<%s, %s>", type == KW_F64 ? "double" : "float", p.type("W")));
}

template <bool adds>
void fill_backward(const Call& c, const kw_device_facts& gpu, const kw_choice& choice, Launches& out) {
  const auto backward = tile_of<NormTile>(choice);
  const RowTile& tile = backward.row;
  const char* x = adds ? "total" : "x";
  const int64_t rows = c.dim("B"), length = c.dim("N");
  if (length == 0) return;
  // No more teams of blocks than run at once, nor than `part` has rows; of b teams, each takes every b-th of the row groups.
  const int64_t groups = (rows + tile.rows - 1) / tile.rows;
  const int64_t blocks = std::min<int64_t>({groups, teams_at_once(tile, gpu), 1024});
  if (rows > 0)
    out.add(0, grid_for(blocks * tile.cluster, 1), tile.block(),
            BackwardParams{c.rows("dy"), adds ? c.rows("dtotal") : Rows{}, c.rows(x), c.data("weight"), c.rows("dx"), c.data("part"), rows,
                           length, 1.0 / static_cast<double>(length), c.attr("eps"), c.attr("offset")},
            backward.shared_bytes(adds ? 3 : 2), static_cast<uint32_t>(tile.cluster));
  if (!c.has("weight")) return;
  // One thread per column reads few parts as fast as memory gives them; with many, up to 32 slices of 8 parts or more keep as much in
  // flight.
  const int32_t slices = std::clamp<int32_t>(static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(blocks / 8))), 1, 32);
  const int32_t columns = std::max(32, 128 / slices);
  out.add(1, grid_for(length, columns), static_cast<uint32_t>(columns * slices),
          ColumnParams{c.data("part"), c.data("dweight"), blocks, length, columns});
}

// ---- the ops -----------------------------------------------------------------------------------------------------------------

template <bool adds, int32_t count>
constexpr kw_op_def forward_op(const char* contract, const kw_bench_case (&bench)[count]) {
  kw_op_def op = make_op<choose_forward<adds>, fill_forward<adds>, forward_cpu<adds>, forward_reference<adds>>(contract, bench);
  op.roundings = forward_roundings<adds>;
  return op;
}
template <bool adds, int32_t count>
constexpr kw_op_def backward_op(const char* contract, const kw_bench_case (&bench)[count]) {
  return make_op<choose_backward<adds>, fill_backward<adds>, backward_cpu<adds>, backward_reference<adds>>(contract, bench);
}
constexpr kw_op_def plain = forward_op<false>(forward_contract, forward_bench);
constexpr kw_op_def plain_backward = backward_op<false>(backward_contract, backward_bench);
constexpr kw_op_def add = forward_op<true>(add_contract, add_bench);
constexpr kw_op_def add_backward = backward_op<true>(add_backward_contract, add_backward_bench);

}  // namespace
}  // namespace kw::ops::rms_norm

KW_ROOM(rms_norm, &kw::ops::rms_norm::plain, &kw::ops::rms_norm::plain_backward, &kw::ops::rms_norm::add, &kw::ops::rms_norm::add_backward);
