// The backward of rms_norm_backward.cuh with x and dy in shared memory (kw/device/ring.cuh) in place of registers: while a row's sums are
// awaited, the next rows are on their way, and each vector makes room for a later one the moment it has been used up. From sm_80 on, for
// rows aligned to 16 bytes; with a tile that is a cluster, from sm_90 on, a row is shared by several blocks. The sums go along the same
// tree, so dx has the same bits.
#pragma once
#include "kw/device/ring.cuh"
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
  Ring<slots, is_present<D> ? 3 : 2, Tile::block> ring;
  const A offset = A(p.offset);
  const int64_t step = tile.teams() * Tile::rows;
  int64_t row = tile.team() * Tile::rows + tile.group();
  struct Source {  // a row to fetch from; nothing of it for a thread beyond the last row
    const T* x;
    const T* dy;
    const D* dtotal;
    int64_t n;
  };
  const auto source = [&](int ahead) -> Source {  // that far ahead of `row`
    const int64_t of = row + ahead * step;
    return {as<T>(p.x, of), as<T>(p.dy, of), is_present<D> ? as<D>(p.dtotal, of) : nullptr, of < p.rows ? p.length : 0};
  };
  const auto fetch = [&](int i, const Source& from, int vector) {  // into place i
    const int start = tile.start(vector);
    ring.fetch(i, 0, from.x + start, start < from.n);
    ring.fetch(i, 1, from.dy + start, start < from.n);
    if constexpr (is_present<D>) ring.fetch(i, 2, from.dtotal + start, start < from.n);
    ring.sent();
  };
  const auto x = [&](int i) { return unpack(ring.template at<T, Tile::vec>(i, 0)); };
  const auto dy = [&](int i) { return unpack(ring.template at<T, Tile::vec>(i, 1)); };
  const auto dtotal = [&](int i) {
    if constexpr (is_present<D>)
      return unpack(ring.template at<D, Tile::vec>(i, 2));
    else
      return filled<Tile::vec>(A(0));
  };

#pragma unroll
  for (int ahead = 0; ahead * vectors < slots; ahead++) {
    const Source from = source(ahead);
#pragma unroll
    for (int i = 0; i < vectors; i++)
      if (ahead * vectors + i < slots) fetch(ahead * vectors + i, from, i);
  }
  tile.begin();
  const auto weight = [&] {  // in registers, where shared memory takes the place of the L1 cache: 3-20 % faster; there is no room for many
    if constexpr (vectors > 8) {
      return tile.view(as<W>(p.weight), p.length);
    } else {
      return tile.load(as<W>(p.weight), p.length);
    }
  }();
  typename Tile::template Share<A> dweight = {};

  for (; row - tile.group() < p.rows; row += step) {
    const int64_t n = row < p.rows ? p.length : 0;
    auto partial = tile.sums(Vec<A, 2>{});
    ring.template wait<slots - vectors>();
#pragma unroll
    for (int i = 0; i < vectors; i++) tile.fold(i, partial, add_to_sums(offset), x(i), dy(i), weight.at(i));
    const auto sums = tile.total(partial);
    const A r = inverse_sqrt(fused(sums[0], A(p.inverse_length), A(p.eps)));
    const A k = -r * r * r * (sums[1] * A(p.inverse_length));
    T* dx = as<T>(p.dx, row);
    // Place i is next for vector i + slots, counted from this row on: of one row, or the one after it.
    constexpr int ahead = slots / vectors;
    const Source near = source(ahead), far = slots % vectors ? source(ahead + 1) : near;
    const auto fetch_later = [&](int i) { fetch(i, (i + slots) / vectors == ahead ? near : far, (i + slots) % vectors); };
#pragma unroll
    for (int i = 0; i < vectors; i++) {
      const auto this_x = x(i), this_dy = dy(i), this_dtotal = dtotal(i);
      if constexpr (early) fetch_later(i);
      tile.store(i, dx, n, gradient(r, k, offset), this_x, this_dy, weight.at(i), this_dtotal);
      if (is_present<W> && n > 0) tile.update(i, dweight, [=](A sum, A x, A dy) { return fused(dy, x * r, sum); }, this_x, this_dy);
      if constexpr (!early) fetch_later(i);
    }
    ring.advance(vectors % slots);
  }
  ring.template wait<0>();
  if constexpr (is_present<W>) {
    using Columns = typename Tile::template Share<A>;
    static_assert(sizeof(Columns) * Tile::block <= ring.bytes);
    if constexpr (Tile::rows > 1) tile.fold_groups(dweight, ring.template reuse<Columns>());
    tile.store(as<A>(p.part) + tile.team() * p.length, tile.group() == 0 ? p.length : 0, [](A sum) { return sum; }, dweight);
  }
}

}  // namespace kw::ops::rms_norm
