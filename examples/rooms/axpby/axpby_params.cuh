// What the host hands to the kernel.
#pragma once
#include "kw/device/params.cuh"

namespace kw::ops::axpby {

struct Params {
  Rows x, y, z;
  int64_t rows, length;
  double a, b;
};

}  // namespace kw::ops::axpby
