// A tensor as rows of contiguous elements at one distance: the only layout that rooms meet.
#pragma once
#include "kw/core/abi.h"

namespace kw {

struct Rows {
  int64_t count = 1, length = 1;  // rows, elements of one
  int64_t stride = 0;             // elements from one row to the next; 0 when there is a single row
};

// `inner` trailing dimensions make one row. False when the layout is another one, or has a negative stride. Sizes must not be negative;
// an empty tensor has no layout to be wrong. A number of elements beyond 64 bits leaves count = length = INT64_MAX.
inline bool fold_rows(const kw_tensor& t, int32_t inner, Rows& rows) {
  rows = {};
  int32_t d = t.rank - 1;
  bool ok = true, empty = false, overflow = false;
  for (; d >= 0 && d >= t.rank - inner; d--) {
    int64_t size = t.sizes[d];
    if (size == 1) continue;
    ok = ok && t.strides[d] == rows.length;
    empty = empty || size == 0;
    overflow |= __builtin_mul_overflow(rows.length, size, &rows.length);
  }
  for (; d >= 0; d--) {
    int64_t size = t.sizes[d], expected = 0;
    if (size == 1) continue;
    if (rows.count == 1) {
      rows.stride = t.strides[d];
      ok = ok && rows.stride >= 0;
    } else if (__builtin_mul_overflow(rows.stride, rows.count, &expected) || t.strides[d] != expected) {
      ok = false;
    }
    empty = empty || size == 0;
    overflow |= __builtin_mul_overflow(rows.count, size, &rows.count);
  }
  if (empty) rows.count = 0;
  if (overflow && !empty) rows.count = rows.length = INT64_MAX;
  return empty || (ok && !overflow);
}

}  // namespace kw
