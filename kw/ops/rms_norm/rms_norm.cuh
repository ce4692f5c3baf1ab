// y = x / sqrt(mean(x^2) + eps) * weight.
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/rms_norm/rms_norm_params.cuh"

namespace kw::ops::rms_norm {

// For rows that fit into the registers of the threads that share one.
template <class T, class W, class Tile>
__global__ void __launch_bounds__(Tile::block) forward(const ForwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const int64_t row = int64_t{blockIdx.x} * Tile::rows + tile.group();
  const int64_t n = row < p.rows ? p.length : 0;  // a thread beyond the last row reads and writes nothing

  auto x = tile.load(as<T>(p.x, row), n);
  // A weight wider than x comes from the L1 cache when it is used: in registers it would leave too few for the row (23 % slower at 8192).
  const auto weight = [&] {
    if constexpr (sizeof(W) > sizeof(T)) {
      return tile.view(as<W>(p.weight), n);
    } else {
      return tile.load(as<W>(p.weight), n);
    }
  }();
  const A squares = tile.sum(A(0), [](A s, A x) { return fused(x, x, s); }, x);
  const A scale = inverse_sqrt(fused(squares, A(p.inverse_length), A(p.eps)));
  tile.store(as<T>(p.y, row), n, [=](A x, A weight) { return x * scale * weight; }, x, weight);
}

// For rows too long to keep: piece by piece, reading x twice.
template <class T, class W, class Tile>
__global__ void __launch_bounds__(Tile::block) forward_long(const ForwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const T* x_row = as<T>(p.x, blockIdx.x);
  T* y_row = as<T>(p.y, blockIdx.x);

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
