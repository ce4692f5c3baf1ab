// A tensor as rows of contiguous elements, at up to three distances: the only layout that rooms meet.
#pragma once
#include <bit>

#include "kw/core/abi.h"
#include "kw/device/params.cuh"

namespace kw {

struct RowLayout {
  static constexpr int32_t max_distances = 3;
  int64_t count = 1, length = 1;  // rows, elements of one
  int32_t distances = 0;          // 0 for a single row
  // From one row to the next, then from one run of rows to the next ..., in elements: leading dimensions that follow each other as the
  // rows of one do are one. The product of the sizes is `count`.
  int64_t sizes[max_distances] = {}, strides[max_distances] = {};
};

// `inner` trailing dimensions make one row. False when the layout is another one, or has a negative stride. Sizes must not be negative;
// an empty tensor has no layout to be wrong. A number of elements beyond 64 bits leaves count = length = INT64_MAX.
inline bool fold_rows(const kw_tensor& t, int32_t inner, RowLayout& rows) {
  rows = {};
  int32_t d = t.rank - 1;
  bool ok = true, empty = false, overflow = false;
  for (; d >= 0 && d >= t.rank - inner; d--) {
    const int64_t size = t.sizes[d];
    if (size == 1) continue;
    ok = ok && t.strides[d] == rows.length;
    empty = empty || size == 0;
    overflow |= __builtin_mul_overflow(rows.length, size, &rows.length);
  }
  for (; d >= 0; d--) {
    const int64_t size = t.sizes[d], stride = t.strides[d];
    if (size == 1) continue;
    empty = empty || size == 0;
    overflow |= __builtin_mul_overflow(rows.count, size, &rows.count);
    ok = ok && stride >= 0;
    const int32_t last = rows.distances - 1;
    int64_t next = 0;
    if (last >= 0 && !__builtin_mul_overflow(rows.strides[last], rows.sizes[last], &next) && stride == next)
      overflow |= __builtin_mul_overflow(rows.sizes[last], size, &rows.sizes[last]);
    else if (rows.distances < RowLayout::max_distances)
      rows.sizes[rows.distances] = size, rows.strides[rows.distances++] = stride;
    else
      ok = false;
  }
  if (empty) rows.count = 0;
  if (overflow && !empty) rows.count = rows.length = INT64_MAX;
  return empty || (ok && !overflow);
}

// The same for a kernel. The tensor has passed the check above.
inline Rows rows_of(const kw_tensor& t, int32_t inner) {
  RowLayout layout;
  fold_rows(t, inner, layout);
  Rows rows{};
  rows.data = t.data;
  for (int32_t i = 0; i < layout.distances; i++) rows.stride[i] = layout.strides[i];
  for (int32_t i = 0; i + 1 < layout.distances && layout.count > 0; i++) {
    // With 2^s < size <= 2^(s+1): ceil(2^(64+s) / size) has 64 bits, and what it is too large by, less than size, times r is below
    // 2^(64+s), so that the quotient never comes out one too high.
    const auto size = static_cast<uint64_t>(layout.sizes[i]);
    rows.size[i] = layout.sizes[i];
    rows.shift[i] = 63 - std::countl_zero(size - 1);
    __extension__ using Wide = unsigned __int128;
    rows.reciprocal[i] = static_cast<uint64_t>(((Wide{1} << (64 + rows.shift[i])) - 1) / size + 1);
  }
  return rows;
}

}  // namespace kw
