// The backward of rms_norm_backward.cuh for rows too long to keep: piece by piece, reading x and dy twice. A block takes its rows in
// batches: first the two sums of each row, then, column piece by column piece, dx of the whole batch and its share of dweight, so that the
// partial sums in memory are touched once in a batch instead of once in a row.
#pragma once
#include "kw/ops/rms_norm/rms_norm_backward.cuh"

namespace kw::ops::rms_norm {

template <class T, class W, class D, class Tile, int blocks>
__global__ void __launch_bounds__(Tile::block, blocks) backward_long(const BackwardParams p) {
  using A = acc_t<T>;
  constexpr int batch = 16;  // part costs 8 bytes per column and batch, beside at least 6 per column and row
  __shared__ A r[batch], k[batch];
  Tile tile;
  const A offset = A(p.offset);
  const int64_t step = gridDim.x;
  const auto load_x = [&](int64_t row, int64_t at) { return tile.load(as<T>(p.x, row) + at, p.length - at); };
  const auto load_dy = [&](int64_t row, int64_t at) { return tile.load(as<T>(p.dy, row) + at, p.length - at); };

  for (int64_t first = blockIdx.x; first < p.rows; first += batch * step) {
    const int64_t left = (p.rows - first + step - 1) / step;
    const int count = left < batch ? static_cast<int>(left) : batch;  // row i of the batch is first + i * step

    for (int i = 0; i < count; i++) {
      auto sums = tile.sums(Vec<A, 2>{});
      for (int64_t at = 0; at < p.length; at += Tile::length) {
        auto x = load_x(first + i * step, at);
        auto dy = load_dy(first + i * step, at);
        auto weight = tile.load(as<W>(p.weight) + at, p.length - at);
        tile.fold(sums, add_to_sums(offset), x, dy, weight);
      }
      const auto total = tile.total(sums);
      if (threadIdx.x == 0) {
        r[i] = inverse_sqrt(fused(total[0], A(p.inverse_length), A(p.eps)));
        k[i] = -r[i] * r[i] * r[i] * (total[1] * A(p.inverse_length));
      }
    }
    __syncthreads();

    for (int64_t at = 0; at < p.length; at += Tile::length) {
      A* part = as<A>(p.part) + blockIdx.x * p.length + at;
      typename Tile::template Share<A> dweight = {};
      if (is_present<W> && first != blockIdx.x) dweight = tile.load(part, p.length - at);
      auto weight = tile.load(as<W>(p.weight) + at, p.length - at);
      for (int i = 0; i < count; i++) {
        auto x = load_x(first + i * step, at);
        auto dy = load_dy(first + i * step, at);
        auto dtotal = tile.load(as<D>(p.dtotal, first + i * step) + at, p.length - at);
        T* dx = as<T>(p.dx, first + i * step) + at;
        tile.store(dx, p.length - at, gradient(r[i], k[i], offset), x, dy, weight, dtotal);
        if (is_present<W>) tile.update(dweight, [=](A sum, A x, A dy) { return fused(dy, x * r[i], sum); }, x, dy);
      }
      if (is_present<W>) tile.store(part, p.length - at, [](A sum) { return sum; }, dweight);
    }
    __syncthreads();  // the next batch writes r and k
  }
}

}  // namespace kw::ops::rms_norm
