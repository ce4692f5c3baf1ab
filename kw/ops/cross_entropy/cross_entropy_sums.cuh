// Sums over the rows of a call, along a tree that the number of rows fixes: each block adds a part, and one block the parts.
#pragma once
#include "kw/ops/cross_entropy/cross_entropy_row.cuh"

namespace kw::ops::cross_entropy {

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

}  // namespace kw::ops::cross_entropy
