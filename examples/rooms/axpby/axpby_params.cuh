// What the host hands to the kernel. Strides are in elements, from one row to the next.
#pragma once
#include "kw/device/params.cuh"

namespace kw::ops::axpby {

struct Params {
  const void* x;
  const void* y;
  void* z;
  int64_t rows, length, x_stride, y_stride, z_stride;
  double a, b;
};

}  // namespace kw::ops::axpby
