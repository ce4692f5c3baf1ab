// Before and after the rows: sums over all rows of a call, and the gradient's backward.
#pragma once
#include "kw/ops/cross_entropy/cross_entropy_row.cuh"

namespace kw::ops::cross_entropy {

// Sums go along a tree that the number of rows fixes: each block adds a part, and one block the parts.

// The block's sum of value(i), first <= i < last, given to all its threads of which there are 256.
template <class A, class F>
KW_WORD A sum_of(int64_t first, int64_t last, F value) {
  A sum = 0;
  for (int64_t i = first + threadIdx.x; i < last; i += 256) sum = sum + value(i);
  return block_sum<256, 1>(sum, 0);
}

template <class A, class I, class W>
__global__ void __launch_bounds__(256) count(const CountParams p) {
  const int64_t first = blockIdx.x * p.each, end = first + p.each;
  const A sum = sum_of<A>(first, end < p.rows ? end : p.rows, [&](int64_t row) {
    const int64_t t = *as<I>(p.target, row);
    return t != p.ignore_index && t >= 0 && t < p.length ? A(weight_at(as<W>(p.weight), t)) : A(0);
  });
  if (threadIdx.x == 0) as<A>(p.parts)[blockIdx.x] = sum;
}

template <class A>
__global__ void __launch_bounds__(256) sum(const SumParams p) {
  const int64_t first = blockIdx.x * p.each, end = first + p.each;
  const A sum = sum_of<A>(first, end < p.count ? end : p.count, [&](int64_t i) { return as<A>(p.values)[i]; });
  const A divisor = value_of<A>(p.divisor);
  if (threadIdx.x == 0) as<A>(p.out)[blockIdx.x] = sum / divisor;
}

// dlogits *= dloss, in place. Where dloss is one, as it is when training starts from this loss, a block reads that and is done.
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
