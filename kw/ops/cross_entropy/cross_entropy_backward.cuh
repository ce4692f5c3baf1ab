// dlogits *= dloss, in place. Where dloss is one, as it is when training starts from this loss, a block reads that and is done.
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/cross_entropy/cross_entropy_params.cuh"

namespace kw::ops::cross_entropy {

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::block) backward(const BackwardParams p) {
  using A = acc_t<T>;
  const Tile tile;
  const bool single = p.dloss.stride[0] == 0 && p.dloss.size[0] == 0;
  if (single && *as<A>(p.dloss, 0) == 1) return;
  for (int64_t piece = blockIdx.x; piece < p.rows * p.pieces; piece += gridDim.x) {
    const int64_t row = piece / p.pieces, at = piece % p.pieces * Tile::length, n = p.length - at;
    const A by = *as<A>(p.dloss, row);
    if (by == 1) continue;
    T* d = as<T>(p.dlogits, row) + at;
    const auto x = tile.load(d, n);
    tile.store(d, n, [=](A x) { return x == 0 ? x : x * by; }, x);  // what is ignored stays so, whatever comes from above
  }
}

}  // namespace kw::ops::cross_entropy
