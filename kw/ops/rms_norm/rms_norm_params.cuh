// What the host hands to the kernels of this room. Strides are in elements, from one row to the next.
#pragma once
#include "kw/device/params.cuh"

namespace kw::ops::rms_norm {

struct ForwardParams {
  const void* x;
  const void* residual;  // null: none, and no total
  const void* weight;    // null: all ones
  void* y;
  void* total;  // x + residual
  int64_t rows, length, x_stride, residual_stride, y_stride, total_stride;
  double inverse_length, eps, offset;
};

struct BackwardParams {
  const void* dy;
  const void* dtotal;  // null: none
  const void* x;
  const void* weight;  // null: all ones, and no partials
  void* dx;
  void* part;  // acc(T)[blocks, length]: each block's share of dweight
  int64_t rows, length, dy_stride, dtotal_stride, x_stride, dx_stride;
  double inverse_length, eps, offset;
};

struct ColumnParams {  // dweight = the sum of part's rows
  const void* part;
  void* dweight;
  int64_t parts, length;
  int32_t columns;  // of one block; its threads / columns slices share the parts
};

}  // namespace kw::ops::rms_norm
