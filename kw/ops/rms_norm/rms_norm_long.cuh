// y = x / sqrt(mean(x^2) + eps) * weight, for rows too long to keep: piece by piece, reading x twice.
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/rms_norm/rms_norm_params.cuh"

namespace kw::ops::rms_norm {

template <class T, class W, class Tile>
__global__ void __launch_bounds__(Tile::block) forward_long(const ForwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const T* x_row = as<T>(p.x) + blockIdx.x * p.x_stride;
  T* y_row = as<T>(p.y) + blockIdx.x * p.y_stride;

  auto squares = tile.sums(A(0));
  for (int64_t at = 0; at < p.length; at += Tile::length) {
    auto x = tile.load(x_row + at, p.length - at);
    tile.fold(squares, [](A s, A x) { return fused(x, x, s); }, x);
  }
  const A scale = inverse_sqrt(fused(tile.total(squares), A(p.inverse_length), A(p.eps)));

  for (int64_t at = 0; at < p.length; at += Tile::length) {
    auto x = tile.load(x_row + at, p.length - at);
    auto weight = tile.load(as<W>(p.weight) + at, p.length - at);
    tile.store(y_row + at, p.length - at, [=](A x, A weight) { return x * scale * weight; }, x, weight);
  }
}

}  // namespace kw::ops::rms_norm
