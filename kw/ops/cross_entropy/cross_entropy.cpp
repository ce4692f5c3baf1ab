// The room of cross-entropy: contracts, which kernel with which tile, and how it is launched.
#include "kw/core/row_tile.h"
#include "kw/ops/cross_entropy/cross_entropy_bench.h"
#include "kw/ops/cross_entropy/cross_entropy_params.cuh"
#include "kw/ops/cross_entropy/cross_entropy_reference.h"

namespace kw::ops::cross_entropy {

void forward_cpu(const Call& c);  // cross_entropy_cpu.cpp
void unreduced_cpu(const Call& c);
void backward_cpu(const Call& c);

namespace {

constexpr char forward_contract[] = R"(
  cross_entropy(logits: T[*B, V], target: I[*B] < V, weight: acc(T)[V]?, divisor: acc(T)[]?, *, ignore_index: int = -100,
                label_smoothing: float >= 0 <= 1 = 0, z_loss: float >= 0 = 0, softcap: float >= 0 = 0, reduction: mean|sum = mean)
      -> loss: all acc(T)[]
    where T: f16 bf16 f32 f64, I: i64 i32
    saved dlogits: T[*B, V]
    scratch losses: acc(T)[B], parts: acc(T)[256]
    gradient dlogits = cross_entropy_backward(dloss, dlogits))";

constexpr char backward_contract[] = R"(
  cross_entropy_backward(dloss: acc(T)[], dlogits: T[*B, V]!) -> ()
    where T: f16 bf16 f32 f64)";

constexpr char unreduced_contract[] = R"(
  cross_entropy_unreduced(logits: T[*B, V], target: I[*B] < V, weight: acc(T)[V]?, *, ignore_index: int = -100,
                          label_smoothing: float >= 0 <= 1 = 0, z_loss: float >= 0 = 0, softcap: float >= 0 = 0) -> loss: acc(T)[*B]
    where T: f16 bf16 f32 f64, I: i64 i32
    saved dlogits: T[*B, V]
    gradient dlogits = cross_entropy_unreduced_backward(dloss, dlogits))";

constexpr char unreduced_backward_contract[] = R"(
  cross_entropy_unreduced_backward(dloss: acc(T)[*B], dlogits: T[*B, V]!) -> ()
    where T: f16 bf16 f32 f64)";

// ---- rows --------------------------------------------------------------------------------------------------------------------

// Fastest of the prototype's candidates on one H200, or the nearest that has a power of two of threads; see README.md. Launched without a
// loop over rows, so `blocks` is not used.
constexpr TunedTile gradient_tiles[] = {
    {KW_BF16, 16, 8, 2, 0},   //   256
    {KW_BF16, 32, 4, 4, 0},   //  1024
    {KW_BF16, 128, 1, 4, 0},  //  4096
    {KW_BF16, 128, 1, 5, 0},  //  5120
    {KW_BF16, 256, 1, 4, 0},  //  8192
    {KW_BF16, 512, 1, 4, 0},  // 16384
    {KW_F32, 32, 4, 2, 0},    //   256
    {KW_F32, 128, 1, 2, 0},   //  1024
    {KW_F32, 512, 1, 2, 0},   //  4096
    {KW_F32, 1024, 1, 2, 0},  //  8192
    {KW_F32, 1024, 1, 4, 0},  // 16384
};
constexpr TunedTile loss_tiles[] = {
    {KW_BF16, 16, 8, 2, 0},   //   256
    {KW_BF16, 32, 4, 4, 0},   //  1024
    {KW_BF16, 128, 1, 4, 0},  //  4096
    {KW_BF16, 128, 1, 5, 0},  //  5120
    {KW_BF16, 256, 1, 4, 0},  //  8192
    {KW_BF16, 512, 1, 4, 0},  // 16384
    {KW_F32, 16, 8, 4, 0},    //   256
    {KW_F32, 128, 1, 2, 0},   //  1024
    {KW_F32, 512, 1, 2, 0},   //  4096
    {KW_F32, 512, 1, 4, 0},   //  8192
    {KW_F32, 512, 1, 8, 0},   // 16384
};

const char* accumulator_type(const Problem& p) { return dtype_facts[accumulator(p.dtype("T"))].device; }
const char* boolean(bool b) { return b ? "true" : "false"; }

struct ForwardTile {
  RowTile row;
  uint32_t shared_bytes;  // dynamic, of a block
  int32_t teams;          // at most, each of which then works on several rows; 0: one for each row
};

// Shared memory for a row's windows: where rows are not aligned, one more for each eight in a cluster, or for all in a block.
uint32_t window_bytes(const RowTile& tile) {
  const uint32_t places = static_cast<uint32_t>(tile.vectors) * tile.block();
  return 16 * (places + (tile.align == 16 ? 0 : tile.cluster > 1 ? places / 8 : 1));
}

// The tile for a row in shared memory. As few threads as keep up with it, so that several rows are at work on a multiprocessor: one H200,
// 2026-12-01, `kw bench`, share of the copy rate of 4240 GB/s, bf16 16384: 93 % with 128 threads, 74 with 512; 32000: 92 with 256, 87 with
// 128, 62 in a cluster with 1024; f32 32000: 88 with 512 in a cluster of two, 85 with 1024; bf16 65536: 83 against 78.
constexpr int64_t in_shared = 136 << 10;  // bytes of a row beyond which a cluster of two holds too few at once
std::optional<RowTile> shared_tile(const Problem& p, const kw_device_facts& gpu, DType type, int64_t length) {
  const int64_t bytes = length * dtype_bytes(type);
  const int32_t threads = bytes <= 40 << 10   ? 128
                          : bytes <= 72 << 10 ? 256
                                              : 512,
                cluster = threads == 512 ? 2 : 1, vec = vector_elements(type);
  if (bytes > in_shared || gpu.arch < 80 || access_bytes(p, type, length) != 16 || (cluster > 1 && gpu.arch < 90))
    return spread_row_tile(p, gpu, type, length, 1, 1);
  const auto vectors = static_cast<int32_t>((length + int64_t{threads} * vec - 1) / (int64_t{threads} * vec));
  const int64_t own = int64_t{vectors} * threads * 16 / cluster + sums_bytes(threads / cluster);
  if (own > gpu.shared_per_block) return std::nullopt;
  const int64_t blocks = std::min<int64_t>(gpu.shared_per_sm / own, 1024 / (threads / cluster));  // 64 registers each
  return RowTile{threads, 1, vectors, vec, 16, static_cast<int32_t>(std::max<int64_t>(blocks, 1)), cluster, row_tree(length / vec)};
}

// The same for rows that are not aligned (kw/device/window.cuh).
std::optional<RowTile> window_tile(const Problem& p, const kw_device_facts& gpu, DType type, int64_t length) {
  const int32_t vec = vector_elements(type), align = access_bytes(p, type, length);
  const int64_t bytes = length * dtype_bytes(type), need = (length + 2 * int64_t{vec} - 2) / vec;  // windows that a row may touch
  if (gpu.arch < 80 || align == 16) return std::nullopt;
  int32_t threads = bytes <= 40 << 10 ? 128 : bytes <= 72 << 10 ? 256 : 512, cluster = 1;
  if (bytes > 110 << 10 && gpu.arch >= 90) {
    threads = 1024;
    for (cluster = 2; cluster < 16 && bytes > int64_t{cluster} * (cluster < 8 ? 48 << 10 : 96 << 10);) cluster *= 2;
  }
  const int64_t vectors = (need + threads - 1) / threads;
  RowTile tile{
      threads, 1, static_cast<int32_t>(std::min<int64_t>(vectors, 4096)), vec, align, 1, cluster, row_tree(row_vectors(type, length))};
  const int32_t block = threads / cluster;
  const int64_t sums =
      int64_t{block > 256 ? block + 128 : 2 * block} * 2 * dtype_bytes(accumulator(type)) * (p.is_zero("label_smoothing") ? 1 : 2);
  const int64_t own = window_bytes(tile) + sums + (cluster > 1 ? 4096 : 0) + 1024;
  if (vectors > 4096 || own > gpu.shared_per_block) return std::nullopt;
  tile.blocks = static_cast<int32_t>(std::clamp<int64_t>(gpu.shared_per_sm / own, 1, 1024 / block));
  return tile;
}

// The tile for rows that clusters keep, with the next ones on their way (kw/device/row_ring.cuh): as many threads as the tree has lanes.
// For 32 bits, two or three blocks on a multiprocessor, of which one computes while another writes, and up to two rows in the ring; for 16
// bits, where computing takes most of the time, one large block and two vectors more than a row. One H200, 2026-12-01, share of the copy
// rate: f32 128256 90 % (forward_shared 78), 256000 91 (69), bf16 256000 81 (two blocks 76, forward_shared 70); bf16 128256 at most 77,
// where forward_shared has 84. The teams are as many as run at once.
struct RingTile {
  RowTile row;
  int32_t slots, teams;
};
std::optional<RingTile> ring_tile(const Problem& p, const kw_device_facts& gpu, DType type, int64_t length) {
  const int32_t vec = vector_elements(type);
  if (gpu.arch < 90 || access_bytes(p, type, length) != 16 || length * dtype_bytes(type) <= in_shared) return std::nullopt;
  const bool narrow = dtype_bytes(type) == 2;
  if (narrow && length < 200000) return std::nullopt;
  const int64_t need = length / vec;
  const int32_t threads = row_tree(need);
  const auto vectors = static_cast<int32_t>((need + threads - 1) / threads);
  const struct {
    int32_t cluster, blocks, least, slots;
  } narrow_shapes[] = {{4, 1, vectors + 2, vectors + 2}, {8, 2, vectors + 1, 2 * vectors}},
    wide_shapes[] = {{16, 3, 2 * vectors, 2 * vectors}, {16, 2, vectors + 1, 2 * vectors}};
  for (const auto& [cluster, blocks, least, slots] : narrow ? narrow_shapes : wide_shapes) {
    const RowTile row{threads, 1, vectors, vec, 16, blocks, cluster, threads};
    const int32_t most = ring_slots(row, gpu, type, 1);
    if (most >= least) return RingTile{row, std::min(most, slots), static_cast<int32_t>(teams_at_once(row, gpu))};
  }
  return std::nullopt;
}

// Kernel 0: the rows. Where no gradient is wanted, a longer row need not be kept: streaming it reads as fast as memory gives it.
void choose_rows(const Problem& p, const kw_device_facts& gpu, Choice& out) {
  const DType type = p.dtype("T");
  const bool gradient = p.wants("dlogits");
  const auto kernel = [&](const char* file, const char* name, const RowTile& tile, uint32_t shared_bytes = 0, const std::string& last = "",
                          int32_t teams = 0) {
    out.kernel(file, format("kw::ops::cross_entropy::%s<%s, %s, %s, %s, %s, %s, %s%s>", name, p.type("T"), p.type("I"),
                            p.has("weight") ? accumulator_type(p) : "kw::One", boolean(gradient), boolean(!p.is_zero("label_smoothing")),
                            boolean(!p.is_zero("softcap")), tile.name().c_str(), last.c_str()));
    out.tile(ForwardTile{tile, shared_bytes, teams});
  };
  // By the length alone: aligned rows and others must take kernels of the same bits. Beyond it, too few blocks of a row in registers share
  // a multiprocessor for some to read while others compute: 78 % of the copy rate at 16384 elements of bf16, where shared memory gives 93.
  constexpr int64_t in_registers = 8192;
  constexpr char longer[] = "kw/ops/cross_entropy/cross_entropy_long.cuh";
  const std::span<const TunedTile> tuned = gradient ? std::span<const TunedTile>(gradient_tiles) : loss_tiles;
  if (const auto tile = choose_row_tile(tuned, p, type, p.dim("V"), 8); tile && p.dim("V") <= in_registers)
    kernel("kw/ops/cross_entropy/cross_entropy.cuh", "forward", *tile);
  else if (const auto ring = ring_tile(p, gpu, type, p.dim("V")); ring && gradient)
    kernel(longer, "forward_ring", ring->row, static_cast<uint32_t>(ring->slots) * ring->row.block() * 16,
           format(", %d, %d", ring->row.blocks, ring->slots), ring->teams);
  else if (const auto spread = shared_tile(p, gpu, type, p.dim("V")); spread && gradient)
    kernel(longer, "forward_shared", *spread, window_bytes(*spread), format(", %d", spread->blocks));
  else if (const auto window = window_tile(p, gpu, type, p.dim("V")))
    kernel(longer, "forward_shared", *window, window_bytes(*window), format(", %d", window->blocks));
  else
    kernel(longer, "forward_long", long_row_tile(p, type, p.dim("V"), 4, 2));
}

ForwardParams row_params(const Call& c, const Rows& loss, Divisor divisor) {
  return {c.rows("logits"),  c.rows("target", 0),      loss,
          c.rows("dlogits"), c.data("weight"),         c.dim("B"),
          c.dim("V"),        c.choice("ignore_index"), c.attr("label_smoothing"),
          c.attr("z_loss"),  c.attr("softcap"),        divisor};
}

void add_rows(const kw_choice& choice, const ForwardParams& p, Launches& out) {
  const auto [tile, shared_bytes, at_most] = tile_of<ForwardTile>(choice);
  const int64_t teams = at_most ? std::min<int64_t>(p.rows, at_most) : p.rows;
  if (p.rows > 0) out.add(0, grid_for(teams * tile.cluster, tile.rows), tile.block(), p, shared_bytes, static_cast<uint32_t>(tile.cluster));
}

// ---- cross_entropy -----------------------------------------------------------------------------------------------------------

void choose_forward(const Problem& p, const kw_device_facts& gpu, Choice& out) {
  choose_rows(p, gpu, out);
  const char* a = accumulator_type(p);
  constexpr char file[] = "kw/ops/cross_entropy/cross_entropy_ends.cuh";
  out.kernel(file, format("kw::ops::cross_entropy::sum<%s>", a));
  if (!p.has("divisor") && p.choice("reduction") == 0)
    out.kernel(file, format("kw::ops::cross_entropy::count<%s, %s, %s>", a, p.type("I"), p.has("weight") ? a : "kw::One"));
}

// A long list is cut into at most 128 parts, by its length alone: a block sums one.
struct Parts {
  int64_t each, count;
  explicit Parts(int64_t values)
      : each(std::max<int64_t>(2048, (values + max_parts - 1) / max_parts)), count(std::max<int64_t>(1, (values + each - 1) / each)) {}
};
constexpr uint32_t sum_threads = 256;

void fill_forward(const Call& c, const kw_device_facts&, const kw_choice& choice, Launches& out) {
  const int64_t rows = c.dim("B");
  const Parts cut(rows);
  const size_t size = dtype_bytes(accumulator(c.dtype("T")));
  char* counts = static_cast<char*>(c.data("parts"));
  char* sums = counts + max_parts * size;
  Divisor divisor{};
  if (c.has("divisor")) {
    divisor = {c.data("divisor"), 1};
  } else if (c.choice("reduction") == 0) {
    divisor = {counts, static_cast<int32_t>(cut.count)};
    out.add(2, grid_for(cut.count, 1), sum_threads,
            CountParams{c.rows("target", 0), c.data("weight"), counts, rows, cut.each, c.dim("V"), c.choice("ignore_index")});
  }
  add_rows(choice, row_params(c, c.rows("losses", 0), divisor), out);
  if (cut.count == 1) return out.add(1, {1}, sum_threads, SumParams{c.data("losses"), c.data("loss"), rows, cut.each, divisor});
  out.add(1, grid_for(cut.count, 1), sum_threads, SumParams{c.data("losses"), sums, rows, cut.each, {}});
  out.add(1, {1}, sum_threads, SumParams{sums, c.data("loss"), cut.count, cut.count, divisor});
}

// ---- cross_entropy_unreduced -------------------------------------------------------------------------------------------------

void choose_unreduced(const Problem& p, const kw_device_facts& gpu, Choice& out) { choose_rows(p, gpu, out); }

void fill_unreduced(const Call& c, const kw_device_facts&, const kw_choice& choice, Launches& out) {
  add_rows(choice, row_params(c, c.rows("loss", 0), {}), out);
}

// ---- backward ----------------------------------------------------------------------------------------------------------------

// So few blocks that they are over at once when there is nothing to do.
void choose_backward(const Problem& p, const kw_device_facts& gpu, Choice& out) {
  const DType type = p.dtype("T");
  const RowTile tile{256, 1, 2, vector_elements(type), access_bytes(p, type, p.dim("V")), std::min(5, gpu.threads_per_sm / 256)};
  out.kernel("kw/ops/cross_entropy/cross_entropy_ends.cuh",
             format("kw::ops::cross_entropy::backward<%s, %s, %d>", p.type("T"), tile.name().c_str(), tile.blocks));
  out.tile(tile);
}

void fill_backward(const Call& c, const kw_device_facts& gpu, const kw_choice& choice, Launches& out) {
  const RowTile tile = tile_of<RowTile>(choice);
  BackwardParams p{c.rows("dloss", 0), c.rows("dlogits"), c.dim("B"), c.dim("V"), 0};
  if (p.rows == 0 || p.length == 0) return;
  if (c.tensor("dloss")->rank == 0 && p.dlogits.size[0] == 0 && p.dlogits.stride[0] == p.length)
    p.length *= p.rows, p.rows = 1;  // one long row
  p.pieces = (p.length + tile.length() - 1) / tile.length();
  out.add(0, grid_for(std::min<int64_t>(p.rows * p.pieces, int64_t{gpu.sm_count} * tile.blocks), 1), tile.block(), p);
}

// ---- the ops -----------------------------------------------------------------------------------------------------------------

constexpr kw_op_def forward_op = make_op<choose_forward, fill_forward, forward_cpu, forward_reference>(forward_contract, forward_bench);
constexpr kw_op_def backward_op =
    make_op<choose_backward, fill_backward, backward_cpu, backward_reference>(backward_contract, backward_bench);
constexpr kw_op_def unreduced_op =
    make_op<choose_unreduced, fill_unreduced, unreduced_cpu, unreduced_reference>(unreduced_contract, unreduced_bench);
constexpr kw_op_def unreduced_backward_op = make_op<choose_backward, fill_backward, backward_cpu, unreduced_backward_reference>(
    unreduced_backward_contract, unreduced_backward_bench);

}  // namespace
}  // namespace kw::ops::cross_entropy

KW_ROOM(cross_entropy, &kw::ops::cross_entropy::forward_op, &kw::ops::cross_entropy::backward_op, &kw::ops::cross_entropy::unreduced_op,
        &kw::ops::cross_entropy::unreduced_backward_op);
