// What the host hands to the kernels of this room. Strides are in elements, from one row to the next.
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
  const void* logits;
  const void* target;
  const void* weight;  // null: all ones
  void* loss;          // one number per row
  void* dlogits;       // null: no gradient is wanted
  int64_t rows, length, logits_stride, target_stride, loss_stride, dlogits_stride;
  int64_t ignore_index;
  double label_smoothing, z_loss, softcap;
  Divisor divisor;  // dlogits is divided by it
};

// parts[block] = the weights of the targets that count, over `each` rows.
struct CountParams {
  const void* target;
  const void* weight;  // null: all ones
  void* parts;
  int64_t rows, target_stride, each, length, ignore_index;
};

// out[block] = the sum of `each` values, divided.
struct SumParams {
  const void* values;
  void* out;
  int64_t count, each;
  Divisor divisor;
};

struct BackwardParams {
  const void* dloss;  // one number, or one per row
  void* dlogits;
  int64_t rows, length, dloss_stride, dlogits_stride;
  int64_t pieces;  // of a row
};

}  // namespace kw::ops::cross_entropy
