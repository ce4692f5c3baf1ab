// What the host hands to the kernels of this room. Where all rows follow each other in memory, the host says one long row: nothing here
// depends on where a row ends. Packed tensors come as two: the second halves of their rows lie where the first ones do, and further on.
#pragma once
#include "kw/device/params.cuh"

namespace kw::ops::swiglu {

struct ForwardParams {
  Rows gate, up, y;
  int64_t rows, length;
  uint32_t pieces;  // that a row is cut into, each for one group of threads
};

struct BackwardParams {
  Rows dy, gate, up, dgate, dup;
  int64_t rows, length;
  uint32_t pieces;
};

}  // namespace kw::ops::swiglu
