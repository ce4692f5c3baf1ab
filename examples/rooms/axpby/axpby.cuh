// z = a x + b y. A block takes a row, then the row gridDim.x further on; neighbouring threads take neighbouring elements.
#pragma once
#include "kw/device/types.cuh"
#include "kw/ops/axpby/axpby_params.cuh"

namespace kw::ops::axpby {

template <class T>
__global__ void __launch_bounds__(256) forward(const Params p) {
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = as<T>(p.x, row);
    const T* y = as<T>(p.y, row);
    T* z = as<T>(p.z, row);
    for (int64_t i = threadIdx.x; i < p.length; i += blockDim.x) z[i] = fused(T(p.a), x[i], T(p.b) * y[i]);
  }
}

}  // namespace kw::ops::axpby
