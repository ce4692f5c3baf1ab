// The host's side of kw/device/row.cuh: which RowTile a row kernel gets. Tiles are data, with a rule for lengths that nobody measured.
#pragma once
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <span>

#include "kw/core/room.h"

namespace kw {

struct RowTile {
  int32_t threads;      // per row, a power of two
  int32_t rows;         // per block
  int32_t vectors;      // per thread
  int32_t vec;          // elements of one vector
  int32_t align;        // bytes of one access at most
  int32_t blocks;       // on one multiprocessor at once: a kernel that loops over rows promises it in its launch bound
  int32_t cluster = 1;  // blocks that share a row
  int32_t tree = 1024;  // virtual lanes of a row's sums: its length alone decides

  uint32_t block() const { return static_cast<uint32_t>(threads * rows / cluster); }
  int64_t length() const { return int64_t{threads} * vectors * vec; }  // elements of a row that fit
  std::string name() const {
    const std::string more = tree != 1024 ? format(", %d, %d", cluster, tree) : cluster > 1 ? format(", %d", cluster) : "";
    return format("kw::RowTile<%d, %d, %d, %d, %d%s>", threads, rows, vectors, vec, align, more.c_str());
  }
};

struct TunedTile {  // won the measurement at rows of `threads * vectors` vectors of 16 bytes; serves all types of as many bytes
  DType dtype;
  int32_t threads, rows, vectors, blocks;
};

// A tuned tile serves rows that fill more than 7/8 of it (covering 70 % too much costs 13-55 %, measured). `need`: vectors of a row.
inline bool covers(const TunedTile& t, int64_t need) {
  const int64_t have = int64_t{t.threads} * t.vectors;
  return need <= have && need * 8 > have * 7;
}

// Elements of one vector, and the widest access that divides every row's address and length.
inline int32_t vector_elements(DType dtype) { return std::max(1, 16 / dtype_bytes(dtype)); }
inline int64_t row_vectors(DType dtype, int64_t length) {  // that a row takes, the last one perhaps in part
  return std::max<int64_t>(1, (length + vector_elements(dtype) - 1) / vector_elements(dtype));
}
inline int32_t access_bytes(const Problem& p, DType dtype, int64_t length) {
  const int64_t bytes = length * dtype_bytes(dtype);
  return std::max<int32_t>(dtype_bytes(dtype), std::gcd(p.alignment(), bytes | 16));
}

// The tile for rows of `length` elements that a kernel keeps in registers, or nothing when they do not fit. `registers` is what one
// vector takes in a thread, over all that the kernel holds at the same place of the row.
//
// The rule for rows that no tuned tile covers: 2 or 3 vectors per thread for rows of up to 256 vectors and for kernels that hold much, 4 to
// 7 for the rest, more only where nothing else fits; at least 128 threads per block; half of the registers for the row, half for everything
// else. Measured beside tuned tiles, such a rule lost 0-4 % (6.5 % at worst, rows of powers of two).
inline std::optional<RowTile> choose_row_tile(std::span<const TunedTile> tuned, const Problem& p, DType dtype, int64_t length,
                                              int32_t registers) {
  const int32_t vec = vector_elements(dtype), align = access_bytes(p, dtype, length);
  const int64_t need = row_vectors(dtype, length);
  for (const TunedTile& t : tuned)
    if (dtype_bytes(t.dtype) == dtype_bytes(dtype) && covers(t, need)) return RowTile{t.threads, t.rows, t.vectors, vec, align, t.blocks};
  constexpr int32_t registers_per_sm = 65536;  // of every GPU from sm_75 on
  constexpr int32_t overhead = 40;             // registers of a thread for addresses and temporaries, from compiled kernels
  for (const int64_t target : {need <= 256 || registers > 8 ? 2 : 4, 4, 8}) {  // vectors per thread, up to twice as many
    int32_t threads = std::clamp<int32_t>(static_cast<int32_t>(std::bit_floor(static_cast<uint64_t>(need / target))), 1, 1024);
    for (; threads <= 1024; threads *= 2) {
      const int64_t vectors = (need + threads - 1) / threads;
      const int32_t rows = std::max(1, 128 / threads), block = threads * rows;
      if (vectors * registers > registers_per_sm / block / 2) continue;
      const int32_t held = static_cast<int32_t>(vectors) * registers + overhead;
      const int32_t blocks = std::clamp(registers_per_sm / (held * block), 1, 1024 / block);
      return RowTile{threads, rows, static_cast<int32_t>(vectors), vec, align, blocks};
    }
  }
  return std::nullopt;
}

// Virtual lanes of the canonical tree for rows of `need` vectors, by which a kernel may be any that takes them: enough for a cluster of
// blocks to have 4 to 8 vectors in a thread.
inline int32_t row_tree(int64_t need) {
  return static_cast<int32_t>(std::clamp<uint64_t>(std::bit_ceil(static_cast<uint64_t>((need + 3) / 4)), 1024, 4096));
}

// Places of a ring (kw/device/row_ring.cuh) that fit into a block's shared memory beside its sums; a place is 16 bytes of each of `tensors`
// tensors for each thread. With f64, a thread's sums are twice as wide.
inline int32_t ring_slots(const RowTile& tile, const kw_device_facts& gpu, DType dtype, int32_t tensors) {
  const auto threads = static_cast<int32_t>(tile.block());
  const bool wide = dtype == KW_F64;
  const int32_t sums = threads * (wide ? 32 : 16) + (tile.cluster > 1 ? 4096 : 0), reserved = wide ? 3072 : 1024;
  return (std::min(gpu.shared_per_sm / tile.blocks - reserved, gpu.shared_per_block) - sums) / (threads * 16 * tensors);
}

// Teams, of the `cluster` blocks that share a row, that a GPU runs at once. Clusters stay inside a GPC, whose multiprocessors 4 or more do
// not always divide: an H200 with 132 runs clusters of 4 and 8 on 120, of 16 on 112.
inline int64_t teams_at_once(const RowTile& tile, const kw_device_facts& gpu) {
  const int64_t blocks = int64_t{gpu.sm_count} * tile.blocks, stranded = tile.cluster > 8 ? 20 : tile.cluster > 2 ? 12 : 0;
  return std::max<int64_t>(1, (blocks - blocks * stranded / 132) / tile.cluster);
}

// Shared memory of a block beside the rows: its threads' sums, of 16 bytes at most, what the cluster sends, and the driver's own 1 KiB.
inline int64_t sums_bytes(int64_t threads) { return threads * 16 + 4096 + 1024; }
inline uint32_t spread_bytes(const RowTile& tile, int32_t tensors) {
  return static_cast<uint32_t>(tile.vectors * tensors) * tile.block() * 16;
}

// For longer rows, the `tensors` of a row in shared memory, 16 KiB of each at least: 1024 threads share a row, so a thread has few vectors;
// with clusters they are spread over so many blocks that a block has 32 KiB, which leaves room for six on a multiprocessor, beyond 8 blocks
// 64 KiB. (At 64 Ki and longer, the fastest peer known has the same structure: 96 % of the copy rate on an H200.) Nothing when the GPU or
// the rows do not allow it, or the row does not fit. `least`: blocks of a cluster.
inline std::optional<RowTile> spread_row_tile(const Problem& p, const kw_device_facts& gpu, DType type, int64_t length, int32_t tensors,
                                              int32_t least) {
  const int32_t vec = vector_elements(type), most = gpu.arch >= 90 ? 16 : 1;
  if (gpu.arch < 80 || most < least || access_bytes(p, type, length) != 16) return std::nullopt;
  const auto vectors = static_cast<int32_t>(std::min<int64_t>((length / vec + 1023) / 1024, 1024));
  const int64_t bytes = int64_t{vectors} * 16384 * tensors;
  int32_t cluster = least;
  while (cluster < most && bytes > int64_t{cluster} * (cluster < 8 ? 32768 : 65536)) cluster *= 2;
  const int64_t own = bytes / cluster + sums_bytes(1024 / cluster);
  if (own > gpu.shared_per_block) return std::nullopt;
  const auto blocks = static_cast<int32_t>(std::min<int64_t>(gpu.shared_per_sm / own, cluster));
  // At most 1024 threads: 64 registers each.
  return RowTile{1024, 1, vectors, vec, 16, std::max(blocks, 1), cluster, row_tree(length / vec)};
}

// The tile with which a kernel goes over a longer row piece by piece: whole rounds of the virtual lanes of row.cuh.
inline RowTile long_row_tile(const Problem& p, DType dtype, int64_t length, int32_t vectors, int32_t blocks) {
  const int32_t tree = row_tree(row_vectors(dtype, length));
  return {512, 1, std::max(vectors, tree / 512), vector_elements(dtype), access_bytes(p, dtype, length), blocks, 1, tree};
}

}  // namespace kw
