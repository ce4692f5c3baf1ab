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

// dlogits *= dloss, in place. Where dloss is one, as it is when training starts from this loss, a block reads that and is done. Else it
// takes every gridDim.x-th piece, and fetches the next one before it writes this one.
template <class T, class Tile, int blocks>
__global__ void __launch_bounds__(Tile::block, blocks) backward(const BackwardParams p) {
  using A = acc_t<T>;
  const Tile tile;
  const bool single = p.dloss.stride[0] == 0 && p.dloss.size[0] == 0;
  const A all = single ? *as<A>(p.dloss, 0) : A(0);
  if (single && all == 1) return;
  struct Piece {
    int64_t row, piece;
    T* d;
    int64_t n;
    A by;
  };
  const auto look = [&](Piece& at) {  // where a row is multiplied by one, or there is none, nothing is moved
    at.by = single ? all : at.row < p.rows ? *as<A>(p.dloss, at.row) : A(1);
    at.d = as<T>(p.dlogits, at.row) + at.piece * Tile::length;
    at.n = at.row < p.rows && at.by != 1 ? p.length - at.piece * Tile::length : 0;
  };
  const int64_t rows = gridDim.x / p.pieces, pieces = gridDim.x % p.pieces;  // from one piece to the next, without a division
  const auto advance = [&](Piece& at) {
    at.row += rows, at.piece += pieces;
    if (at.piece >= p.pieces) at.piece -= p.pieces, at.row++;
    look(at);
  };
  Piece at{blockIdx.x / p.pieces, blockIdx.x % p.pieces};
  look(at);
  auto x = tile.load(at.d, at.n);
  while (at.row < p.rows) {
    Piece next = at;
    advance(next);
    const auto coming = tile.load(next.d, next.n);
    const A by = at.by;
    tile.store(at.d, at.n, [=](A x) { return x == 0 ? x : x * by; }, x);  // what is ignored stays so, whatever comes from above
    at = next, x = coming;
  }
}

}  // namespace kw::ops::cross_entropy
