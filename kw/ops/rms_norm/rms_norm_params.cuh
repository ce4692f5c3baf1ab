// What the host hands to the kernels of this room.
#pragma once
#include "kw/device/params.cuh"

namespace kw::ops::rms_norm {

struct ForwardParams {
  Rows x;
  Rows residual;       // null: none, and no total
  const void* weight;  // null: all ones
  Rows y;
  Rows total;  // x + residual
  int64_t rows, length;
  double inverse_length, eps, offset;
};

struct BackwardParams {
  Rows dy;
  Rows dtotal;  // null: none
  Rows x;
  const void* weight;  // null: all ones, and no partials
  Rows dx;
  void* part;  // acc(T)[blocks, length]: each block's share of dweight
  int64_t rows, length;
  double inverse_length, eps, offset;
};

struct ColumnParams {  // dweight = the sum of part's rows
  const void* part;
  void* dweight;
  int64_t parts, length;
  int32_t columns;  // of one block; its threads / columns slices share the parts
};

}  // namespace kw::ops::rms_norm
