// The forward of rms_norm.cuh for longer rows, read once: the row lies in shared memory, of one block or of a cluster of blocks (from sm_90
// on). Blocks are small and many of them share a multiprocessor, so that some read while others write. From sm_80 on, for rows aligned to
// 16 bytes.
#pragma once
#include "kw/device/ring.cuh"
#include "kw/ops/rms_norm/rms_norm.cuh"

namespace kw::ops::rms_norm {

template <class T, class W, class R, class Tile, bool twice, int blocks>
__global__ void __launch_bounds__(Tile::block, blocks) forward_shared(const ForwardParams p) {
  using A = acc_t<T>;
  constexpr int vectors = Tile::vectors;
  static_assert(Tile::rows == 1 && Tile::lanes == 1);  // of 1024 threads: so a vector's number need not be known to the compiler
  Tile tile;
  Ring<vectors, is_present<R> ? 2 : 1, Tile::block> ring;  // filled once: each thread's vectors of the row
  const int64_t row = tile.team();
  const T* x_row = as<T>(p.x, row);
  const R* residual_row = as<R>(p.residual, row);
  T* y_row = as<T>(p.y, row);
  T* total_row = as<T>(p.total, row);
#pragma unroll 4
  for (int i = 0; i < vectors; i++) {
    const int start = tile.start(i);
    ring.fetch(i, 0, x_row + start, start < p.length);
    if constexpr (is_present<R>) ring.fetch(i, 1, residual_row + start, start < p.length);
  }
  ring.sent();
  tile.begin();
  const auto x = [&](int i) {  // x, or total
    Vec<T, Tile::vec> x = ring.template at<T, Tile::vec>(i, 0);
    if constexpr (is_present<R>) x = pack<T>(unpack(x) + unpack(ring.template at<R, Tile::vec>(i, 1)));
    return unpack(x);
  };

  ring.template wait<0>();
  auto squares = tile.sums(A(0));
#pragma unroll 4
  for (int i = 0; i < vectors; i++) tile.fold(0, squares, [](A s, A x) { return fused(x, x, s); }, x(i));
  const A scale = inverse_sqrt(fused(tile.total(squares), A(p.inverse_length), A(p.eps))), offset = A(p.offset);

  const auto weight = tile.view(as<W>(p.weight), p.length);
#pragma unroll 4
  for (int i = 0; i < vectors; i++) {
    const auto this_x = x(i);
    if constexpr (is_present<R>) tile.store(i, total_row, p.length, [](A total) { return total; }, this_x);
    const auto y = [=](A x, A weight) { return scaled<T, twice>(x, scale, weight + offset); };
    tile.store(i, y_row, p.length, y, this_x, weight.at(i));
  }
}

}  // namespace kw::ops::rms_norm
