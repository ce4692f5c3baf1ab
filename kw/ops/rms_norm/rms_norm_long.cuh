// The forward of rms_norm.cuh for rows too long to keep: piece by piece, reading x (and the residual) twice. Runs on every GPU and takes
// rows of any length and alignment.
#pragma once
#include "kw/ops/rms_norm/rms_norm.cuh"

namespace kw::ops::rms_norm {

template <class T, class W, class R, class Tile, bool twice>
__global__ void __launch_bounds__(Tile::block) forward_long(const ForwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const int64_t row = blockIdx.x;
  const T* x_row = as<T>(p.x, row);
  const R* residual_row = as<R>(p.residual, row);
  T* y_row = as<T>(p.y, row);
  T* total_row = as<T>(p.total, row);
  const auto load = [&](int64_t at) {  // x, or total
    auto x = tile.load(x_row + at, p.length - at);
    if constexpr (is_present<R>) tile.update(x, [](A x, A residual) { return x + residual; }, tile.load(residual_row + at, p.length - at));
    return x;
  };

  auto squares = tile.sums(A(0));
  for (int64_t at = 0; at < p.length; at += Tile::length) tile.fold(squares, [](A s, A x) { return fused(x, x, s); }, load(at));
  const A scale = inverse_sqrt(fused(tile.total(squares), A(p.inverse_length), A(p.eps))), offset = A(p.offset);

  for (int64_t at = 0; at < p.length; at += Tile::length) {
    const auto x = load(at);
    const auto weight = tile.load(as<W>(p.weight) + at, p.length - at);
    if constexpr (is_present<R>) tile.store(total_row + at, p.length - at, [](A total) { return total; }, x);
    const auto y = [=](A x, A weight) { return scaled<T, twice>(x, scale, weight + offset); };
    tile.store(y_row + at, p.length - at, y, x, weight);
  }
}

}  // namespace kw::ops::rms_norm
