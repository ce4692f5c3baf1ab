// What bind.cpp and bind_results.cpp share, foremost their sentences: internal. Out of line and cold, so that a call that fits pays nothing
// for them.
#pragma once
#include "kw/core/bind.h"
#include "kw/core/rows.h"

namespace kw {

// Where a dimension got its value: the place in the shape of an input.
struct Origin {
  int16_t input;
  int8_t place;
};

class Complaint {
 public:
  explicit Complaint(const Contract& contract) : c_(contract) {}
  [[noreturn, gnu::cold]] void say(const std::string& sentence) const;  // "op: sentence"

  [[noreturn, gnu::cold]] void missing(int input) const;
  [[noreturn, gnu::cold]] void not_single(int input, int32_t count) const;
  // `what` names the tensor: "x", "grad[3]".
  [[noreturn, gnu::cold]] void rank(const std::string& what, const TensorType& type, const kw_tensor& t) const;
  [[noreturn, gnu::cold]] void negative_size(const std::string& what, const kw_tensor& t) const;
  [[noreturn, gnu::cold]] void too_large(const std::string& what) const;
  [[noreturn, gnu::cold]] void layout(const std::string& what, const kw_tensor& t) const;
  [[noreturn, gnu::cold]] void written_rows(const std::string& what) const;
  [[noreturn, gnu::cold]] void device(const std::string& what, const kw_tensor& t, const std::string& first, int32_t type,
                                      int32_t index) const;
  [[noreturn, gnu::cold]] void element(const std::string& what, const kw_tensor& t, DType wanted) const;
  [[noreturn, gnu::cold]] void same_type(const std::string& what, const kw_tensor& t, int variable, int other_input, int32_t dtype) const;
  [[noreturn, gnu::cold]] void no_option(int variable, int input, int32_t dtype, const int32_t* dtypes) const;
  [[noreturn, gnu::cold]] void size(const std::string& what, const kw_tensor& t, int place, const std::string& other,
                                    const TensorType& other_type, int other_place, int64_t wanted) const;
  [[noreturn, gnu::cold]] void leading(const std::string& what, const kw_tensor& t, int32_t count, const std::string& other,
                                       const int64_t* sizes, int32_t other_count) const;
  [[noreturn, gnu::cold]] void attribute(int attribute, const kw_attribute& value) const;

 private:
  const Contract& c_;
};

// Elements times bytes, and the way from the first to the last byte, fit 63 bits; so index arithmetic in rooms never overflows.
inline bool countable(const kw_tensor& t, const RowLayout& rows) {
  int64_t way = rows.length, bytes = 0, step = 0;
  if (rows.count == 0) return true;
  if (rows.count == INT64_MAX) return false;  // beyond 64 bits: its sizes are no numbers to compute with
  for (int32_t i = 0; i < rows.distances; i++)
    if (__builtin_mul_overflow(rows.sizes[i] - 1, rows.strides[i], &step) || __builtin_add_overflow(way, step, &way)) return false;
  return !__builtin_mul_overflow(rows.count, rows.length, &bytes) && !__builtin_mul_overflow(bytes, dtype_bytes(t.dtype), &bytes) &&
         !__builtin_mul_overflow(way, dtype_bytes(t.dtype), &way);
}

// Do rows share elements? Sorted by distance, each one has to clear all that the shorter ones reach; that is what views of memory without
// overlaps look like, so that another layout, though it may be free of overlaps, counts as one with.
inline bool rows_overlap(const RowLayout& rows) {
  int64_t reach = rows.length, cleared = 0;
  for (int32_t round = 0; rows.count > 1 && round < rows.distances; round++) {
    int32_t shortest = -1;
    for (int32_t i = 0; i < rows.distances; i++)
      if (!(cleared >> i & 1) && (shortest < 0 || rows.strides[i] < rows.strides[shortest])) shortest = i;
    if (rows.strides[shortest] < reach) return true;
    reach += rows.strides[shortest] * (rows.sizes[shortest] - 1);
    cleared |= int64_t{1} << shortest;
  }
  return false;
}

std::string shape_text(const int64_t* sizes, int32_t rank);  // "[2, 3]"
std::string device_text(int32_t type, int32_t index);        // "cpu", "cuda:0"

}  // namespace kw
