// A small tensor for tests of a room's laws: numbers in, numbers out, f16, bf16, f32 or f64 in between, on the host or wherever `run` puts
// it.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kw/core/dtype.h"

namespace kw::test {

inline uint16_t bf16_bits(float value) {  // to the nearest, ties to even
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? 0x7fff : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float bf16_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Rows at `stride` elements, the first `offset` elements into memory; everything around them is a canary.
class Array {
 public:
  explicit Array(DType dtype, std::vector<int64_t> sizes, int64_t padding = 0, int64_t offset = 0)
      : dtype_(dtype), sizes_(std::move(sizes)), strides_(sizes_.size(), 1), offset_(offset) {
    int64_t step = sizes_.back() + padding;
    for (size_t d = sizes_.size() - 1; d-- > 0; step *= sizes_[d]) strides_[d] = step;
    bytes_.assign(static_cast<size_t>((step + offset + 1) * dtype_bytes(dtype)), canary);
  }
  int64_t length() const { return sizes_.back(); }
  int64_t rows() const {
    int64_t n = 1;
    for (size_t d = 0; d + 1 < sizes_.size(); d++) n *= sizes_[d];
    return n;
  }
  DType dtype() const { return dtype_; }
  std::vector<unsigned char>& bytes() { return bytes_; }

  double get(int64_t row, int64_t i) const {
    if (dtype_ == KW_I64) return static_cast<double>(read<int64_t>(row, i));
    if (dtype_ == KW_I32) return read<int32_t>(row, i);
    if (dtype_ == KW_F64) return read<double>(row, i);
    if (dtype_ == KW_F32) return read<float>(row, i);
    if (dtype_ == KW_F16) return static_cast<double>(read<_Float16>(row, i));
    return bf16_value(read<uint16_t>(row, i));
  }
  void set(int64_t row, int64_t i, double value) {
    if (dtype_ == KW_I64) return write(row, i, static_cast<int64_t>(value));
    if (dtype_ == KW_I32) return write(row, i, static_cast<int32_t>(value));
    if (dtype_ == KW_F64) return write(row, i, value);
    if (dtype_ == KW_F32) return write(row, i, static_cast<float>(value));
    if (dtype_ == KW_F16) return write(row, i, static_cast<_Float16>(value));
    write(row, i, bf16_bits(static_cast<float>(value)));
  }
  Array& random(unsigned seed, double mean = 0) {
    std::mt19937 bits(seed);
    std::normal_distribution<double> normal(mean, 1);
    return each([&](int64_t, int64_t) { return normal(bits); });
  }
  template <class F>
  Array& each(F&& value) {  // value(row, i)
    for (int64_t r = 0; r < rows(); r++)
      for (int64_t i = 0; i < length(); i++) set(r, i, value(r, i));
    return *this;
  }
  std::string row_bits(int64_t row) const {
    return {reinterpret_cast<const char*>(at(row, 0)), static_cast<size_t>(length() * dtype_bytes(dtype_))};
  }
  std::string bits() const {
    std::string all;
    for (int64_t r = 0; r < rows(); r++) all += row_bits(r);
    return all;
  }
  bool canaries_live() const {
    std::vector<unsigned char> copy = bytes_;
    for (int64_t r = 0; r < rows(); r++)
      std::memset(copy.data() + (at(r, 0) - bytes_.data()), canary, static_cast<size_t>(length() * dtype_bytes(dtype_)));
    for (unsigned char b : copy)
      if (b != canary) return false;
    return true;
  }
  // The view of this array whose bytes lie at `memory`.
  kw_tensor view(void* memory, kw_device_type device) const {
    return {static_cast<unsigned char*>(memory) + offset_ * dtype_bytes(dtype_),
            sizes_.data(),
            strides_.data(),
            static_cast<int32_t>(sizes_.size()),
            dtype_,
            device,
            0};
  }

 private:
  static constexpr unsigned char canary = 0xCB;
  const unsigned char* at(int64_t row, int64_t i) const {
    const int64_t stride = sizes_.size() > 1 ? strides_[sizes_.size() - 2] : 0;
    return bytes_.data() + (offset_ + row * stride + i) * dtype_bytes(dtype_);
  }
  template <class V>
  V read(int64_t row, int64_t i) const {
    V value;
    std::memcpy(&value, at(row, i), sizeof value);
    return value;
  }
  template <class V>
  void write(int64_t row, int64_t i, V value) {
    std::memcpy(const_cast<unsigned char*>(at(row, i)), &value, sizeof value);
  }
  DType dtype_;
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_;
  std::vector<unsigned char> bytes_;
};

// Is `got` the rounding of a number within `slack` of `want`?  slack = `units` roundings of the accumulator (f32, or f64 for f64) of a sum
// of size `magnitude`.
inline bool close(double got, double want, DType dtype, double units, double magnitude) {
  if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
  const double relative = dtype == KW_F64 ? 0x1p-52 : dtype == KW_F32 ? 0x1p-23 : dtype == KW_F16 ? 0x1p-10 : 0x1p-7;
  const double smallest = dtype == KW_F16 ? 0x1p-25 : 1e-38;
  return std::fabs(got - want) <= 0.501 * relative * std::fabs(want) + units * (dtype == KW_F64 ? 0x1p-53 : 0x1p-24) * magnitude + smallest;
}

}  // namespace kw::test
