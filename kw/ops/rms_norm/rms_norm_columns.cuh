// dweight = the sum of part's rows, in an order that their number alone decides: slice s of a block adds rows s, s + slices, ..., and the
// slices meet in a tree. Many slices for many parts, many columns for few: reading part is all there is to do.
#pragma once
#include "kw/device/types.cuh"
#include "kw/ops/rms_norm/rms_norm_params.cuh"

namespace kw::ops::rms_norm {

template <class A, class W>
__global__ void __launch_bounds__(1024) sum_parts(const ColumnParams p) {
  __shared__ A sums[1024];
  const int columns = p.columns, slices = blockDim.x / columns;
  const int slice = threadIdx.x / columns;
  const int64_t column = int64_t{blockIdx.x} * columns + threadIdx.x % columns;

  A sum = 0;
  if (column < p.length) {
#pragma unroll 8
    for (int64_t i = slice; i < p.parts; i += slices) sum += as<A>(p.part)[i * p.length + column];
  }
  sums[threadIdx.x] = sum;
  for (int half = slices / 2; half > 0; half /= 2) {
    __syncthreads();
    if (slice < half) sums[threadIdx.x] += sums[threadIdx.x + half * columns];
  }
  if (slice == 0 && column < p.length) from_acc(sums[threadIdx.x], as<W>(p.dweight)[column]);
}

}  // namespace kw::ops::rms_norm
