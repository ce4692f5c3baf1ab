// dlogits *= dloss, in place. Where dloss is one, as it is when training starts from this loss, a block reads that and is done.
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/cross_entropy/cross_entropy_params.cuh"

namespace kw::ops::cross_entropy {

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::block) backward(const BackwardParams p) {
  using A = acc_t<T>;
  const Tile tile;
  const A* dloss = as<A>(p.dloss);
  if (p.dloss_stride == 0 && dloss[0] == 1) return;
  for (int64_t piece = blockIdx.x; piece < p.rows * p.pieces; piece += gridDim.x) {
    const int64_t row = piece / p.pieces, at = piece % p.pieces * Tile::length, n = p.length - at;
    const A by = dloss[row * p.dloss_stride];
    if (by == 1) continue;
    T* d = as<T>(p.dlogits) + row * p.dlogits_stride + at;
    const auto x = tile.load(d, n);
    tile.store(d, n, [=](A x) { return x == 0 ? x : x * by; }, x);  // what is ignored stays so, whatever comes from above
  }
}

}  // namespace kw::ops::cross_entropy
