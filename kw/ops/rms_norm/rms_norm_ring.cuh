// The forward of rms_norm.cuh for longer rows, read once: a team of threads, one block or a cluster of them (from sm_90 on), takes row
// after row, the next ones on their way through shared memory, and keeps the weight in its registers: read again for every row, it took as
// much of the L2 cache's rate as the row itself. From sm_80 on, for rows aligned to 16 bytes.
#pragma once
#include "kw/device/row_ring.cuh"
#include "kw/ops/rms_norm/rms_norm.cuh"

namespace kw::ops::rms_norm {

// slots: of the ring, each a vector of x and of the residual, if there is one.
template <class T, class W, class R, class Tile, bool twice, int blocks, int slots>
__global__ void __launch_bounds__(Tile::block, blocks) forward_ring(const ForwardParams p) {
  using A = acc_t<T>;
  constexpr int vectors = Tile::vectors;
  static_assert(Tile::rows == 1);
  Tile tile;
  auto rows = [&] {
    if constexpr (is_present<R>) {
      return RowRing<T, 2, Tile, slots>(tile, p.rows, p.length, p.x, p.residual);
    } else {
      return RowRing<T, 1, Tile, slots>(tile, p.rows, p.length, p.x);
    }
  }();
  tile.begin();
  const auto weight = [&] {
    if constexpr (vectors * sizeof(W) > 8 * sizeof(T)) {
      return tile.view(as<W>(p.weight), p.length);
    } else {
      return tile.load(as<W>(p.weight), p.length);
    }
  }();
  const A offset = A(p.offset);

  const auto x = [&](int i) {  // x, or total
    if constexpr (is_present<R>) {
      return unpack(pack<T>(rows.at(0, i) + rows.at(1, i)));
    } else {
      return rows.at(0, i);
    }
  };
  for (; rows.any(); rows.next()) {
    auto squares = tile.sums(A(0));
    rows.wait();
#pragma unroll
    for (int i = 0; i < vectors; i++) tile.fold(i, squares, [](A s, A x) { return fused(x, x, s); }, x(i));
    const A scale = inverse_sqrt(fused(tile.total(squares), A(p.inverse_length), A(p.eps)));
    const auto y = [=](A x, A weight) { return scaled<T, twice>(x, scale, weight + offset); };
    T* y_row = as<T>(p.y, rows.row());
    T* total_row = is_present<R> ? as<T>(p.total, rows.row()) : nullptr;
    const auto later = rows.later();
#pragma unroll
    for (int i = 0; i < vectors; i++) {
      const auto this_x = x(i);
      rows.refill(i, later);
      if constexpr (is_present<R>) tile.store(i, total_row, p.length, [](A total) { return total; }, this_x);
      tile.store(i, y_row, p.length, y, this_x, weight.at(i));
    }
  }
  rows.drain();
}

}  // namespace kw::ops::rms_norm
