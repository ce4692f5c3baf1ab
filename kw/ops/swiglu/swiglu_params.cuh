// What the host hands to the kernels of this room. Strides are in elements, from one row to the next. Where all rows follow each other in
// memory, the host says one long row: nothing here depends on where a row ends.
#pragma once
#include "kw/device/params.cuh"

namespace kw::ops::swiglu {

struct ForwardParams {
  const void* gate;
  const void* up;
  void* y;
  int64_t length, gate_stride, up_stride, y_stride;
  uint32_t pieces;  // blocks that share one row
};

struct BackwardParams {
  const void* dy;
  const void* gate;
  const void* up;
  void* dgate;
  void* dup;
  int64_t length, dy_stride, gate_stride, up_stride, dgate_stride, dup_stride;
  uint32_t pieces;
};

}  // namespace kw::ops::swiglu
