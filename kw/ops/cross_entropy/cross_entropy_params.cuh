// What the host hands to the kernels of this room.
#pragma once
#include "kw/device/params.cuh"

namespace kw::ops::cross_entropy {

// The sum of `count` numbers, all of which one warp reads; null: one.
struct Divisor {
  const void* parts;  // of acc(T)
  int32_t count;      // at most max_parts
};
inline constexpr int32_t max_parts = 128;

struct ForwardParams {
  Rows logits, target, loss, dlogits;  // target, loss: one number per row
  const void* weight;                  // null: all ones
  int64_t rows, length, ignore_index;
  double label_smoothing, z_loss, softcap;
  Divisor divisor;  // dlogits is divided by it
};

// parts[block] = the weights of the targets that count, over `each` rows.
struct CountParams {
  Rows target;
  const void* weight;  // null: all ones
  void* parts;
  int64_t rows, each, length, ignore_index;
};

// out[block] = the sum of `each` values, divided.
struct SumParams {
  const void* values;
  void* out;
  int64_t count, each;
  Divisor divisor;
};

struct BackwardParams {
  Rows dloss, dlogits;  // dloss: a number per row, or one for all
  int64_t rows, length;
  int64_t pieces;  // of a row
};

}  // namespace kw::ops::cross_entropy
