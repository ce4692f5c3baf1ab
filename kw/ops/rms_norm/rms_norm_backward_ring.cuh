// The backward of rms_norm_backward.cuh with x and dy in shared memory (kw/device/row_ring.cuh) in place of registers: while a row's sums
// are awaited, the next rows are on their way, and each vector makes room for a later one the moment it has been used up. From sm_80 on,
// for rows aligned to 16 bytes; with a tile that is a cluster, from sm_90 on, a row is shared by several blocks. The sums go along the same
// tree, so dx has the same bits.
#pragma once
#include "kw/device/row_ring.cuh"
#include "kw/ops/rms_norm/rms_norm_backward.cuh"

namespace kw::ops::rms_norm {

// slots: of the ring, each a vector of x, of dy and of dtotal, if there is one; at least Tile::vectors.
template <class T, class W, class D, class Tile, int blocks, int slots>
__global__ void __launch_bounds__(Tile::block, blocks) backward_ring(const BackwardParams p) {
  using A = acc_t<T>;
  constexpr int vectors = Tile::vectors;
  // A later vector is sent for before this one's dx is written, which is 1-3 % faster than after it; but where threads have few registers
  // for many vectors, the addresses spill, which costs 4 %.
  constexpr bool early = vectors * Tile::block <= 2048;
  Tile tile;
  auto rows = [&] {
    if constexpr (is_present<D>) {
      return RowRing<T, 3, Tile, slots>(tile, p.rows, p.length, p.x, p.dy, p.dtotal);
    } else {
      return RowRing<T, 2, Tile, slots>(tile, p.rows, p.length, p.x, p.dy);
    }
  }();
  const auto dtotal = [&](int i) {
    if constexpr (is_present<D>) {
      return rows.at(2, i);
    } else {
      return filled<Tile::vec>(A(0));
    }
  };
  const A offset = A(p.offset);
  tile.begin();
  const auto weight = [&] {  // in registers, where shared memory takes the place of the L1 cache: 3-20 % faster; there is no room for many
    if constexpr (vectors > 8) {
      return tile.view(as<W>(p.weight), p.length);
    } else {
      return tile.load(as<W>(p.weight), p.length);
    }
  }();
  typename Tile::template Share<A> dweight = {};

  for (; rows.any(); rows.next()) {
    auto partial = tile.sums(Vec<A, 2>{});
    rows.wait();
#pragma unroll
    for (int i = 0; i < vectors; i++) tile.fold(i, partial, add_to_sums(offset), rows.at(0, i), rows.at(1, i), weight.at(i));
    const auto sums = tile.total(partial);
    const A r = inverse_sqrt(fused(sums[0], A(p.inverse_length), A(p.eps)));
    const A k = -r * r * r * (sums[1] * A(p.inverse_length));
    const int64_t n = rows.n();
    T* dx = as<T>(p.dx, rows.row());
    const auto later = rows.later();
#pragma unroll
    for (int i = 0; i < vectors; i++) {
      const auto x = rows.at(0, i), dy = rows.at(1, i), dt = dtotal(i);
      if constexpr (early) rows.refill(i, later);
      tile.store(i, dx, n, gradient(r, k, offset), x, dy, weight.at(i), dt);
      if (is_present<W> && n > 0) tile.update(i, dweight, [=](A sum, A x, A dy) { return fused(dy, x * r, sum); }, x, dy);
      if constexpr (!early) rows.refill(i, later);
    }
  }
  rows.drain();
  if constexpr (is_present<W>) {
    using Columns = typename Tile::template Share<A>;
    static_assert(sizeof(Columns) * Tile::block <= rows.ring.bytes);
    if constexpr (Tile::rows > 1) tile.fold_groups(dweight, rows.ring.template reuse<Columns>());
    tile.store(as<A>(p.part) + tile.team() * p.length, tile.group() == 0 ? p.length : 0, [](A sum) { return sum; }, dweight);
  }
}

}  // namespace kw::ops::rms_norm
