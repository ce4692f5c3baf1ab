// A checked call made by hand, without a contract: for tests of CPU kernels alone.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "kw/core/room.h"

namespace kw::test {

inline double to_double(uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); }

// A matrix (or with rows = -1 a vector) of f32 or bf16 in memory of its own: rows at a stride, the first at an odd address, canaries
// before, between and after the rows.
class Matrix {
 public:
  Matrix() = default;
  Matrix(DType dtype, int64_t rows, int64_t length, int64_t padding = 0, int64_t shift = 0)
      : dtype_(dtype), rows_(rows < 0 ? 1 : rows), length_(length), stride_(length + padding), shift_(shift) {
    rank_ = rows < 0 ? 1 : 2;
    memory_.assign((shift + rows_ * stride_ + 1) * dtype_bytes(dtype), canary);
  }
  void* at(int64_t row, int64_t i) { return memory_.data() + (shift_ + row * stride_ + i) * dtype_bytes(dtype_); }
  double get(int64_t row, int64_t i) {
    if (dtype_ == KW_F32) return load<float>(row, i);
    return to_double(load<uint16_t>(row, i));
  }
  void set(int64_t row, int64_t i, float value) {  // bf16: truncates
    uint32_t bits = std::bit_cast<uint32_t>(value);
    uint16_t upper = static_cast<uint16_t>(bits >> 16);
    dtype_ == KW_F32 ? std::memcpy(at(row, i), &bits, 4) : std::memcpy(at(row, i), &upper, 2);
  }
  Matrix& fill(unsigned seed, double spread = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, static_cast<float>(spread));
    for (int64_t r = 0; r < rows_; r++)
      for (int64_t i = 0; i < length_; i++) set(r, i, normal(random));
    return *this;
  }
  void fill_with(float value) {
    for (int64_t r = 0; r < rows_; r++)
      for (int64_t i = 0; i < length_; i++) set(r, i, value);
  }
  bool canaries_live() {
    const unsigned char* p = memory_.data();
    int64_t size = dtype_bytes(dtype_);
    for (int64_t e = 0; e < static_cast<int64_t>(memory_.size()) / size; e++) {
      int64_t from = e - shift_;
      bool inside = from >= 0 && from < rows_ * stride_ && from % stride_ < length_;
      for (int64_t b = 0; b < size && !inside; b++)
        if (p[e * size + b] != canary) return false;
    }
    return true;
  }
  std::string row_bits(int64_t row) { return {static_cast<const char*>(at(row, 0)), static_cast<size_t>(length_ * dtype_bytes(dtype_))}; }
  std::string bits() {
    std::string all;
    for (int64_t r = 0; r < rows_; r++) all += row_bits(r);
    return all;
  }
  DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  int64_t stride() const { return stride_; }
  int rank() const { return rank_; }

 private:
  static constexpr unsigned char canary = 0xa5;
  template <class U>
  U load(int64_t row, int64_t i) {
    U u;
    std::memcpy(&u, at(row, i), sizeof u);
    return u;
  }
  DType dtype_ = KW_F32;
  int64_t rows_ = 0, length_ = 0, stride_ = 0, shift_ = 0;
  int rank_ = 2;
  std::vector<unsigned char> memory_;
};

// HandCall().input("x", x).result("y", y).attribute("eps", 1e-6).dims(rows, length).types(KW_F32, KW_F32).run(forward_cpu)
class HandCall {
 public:
  HandCall& input(const char* name, Matrix* m) { return add(name, m, input_names_, inputs_); }
  HandCall& result(const char* name, Matrix* m) { return add(name, m, result_names_, results_); }
  HandCall& attribute(const char* name, double value) {
    attribute_names_.push_back(name);
    attributes_.push_back({.f = value});
    return *this;
  }
  HandCall& dims(int64_t rows, int64_t length) {
    dims_[0] = rows, dims_[1] = length;
    return *this;
  }
  HandCall& types(DType t, DType w) {
    dtypes_[0] = t, dtypes_[1] = w;
    return *this;
  }
  void run(void (*cpu)(const Call&)) {
    static const char* const dims[] = {"B", "N"};
    static const char* const types[] = {"T", "W"};
    kw_signature s{};
    s.name = "test";
    s.inputs = input_names_.data(), s.input_count = static_cast<int32_t>(inputs_.size());
    s.results = result_names_.data(), s.result_count = static_cast<int32_t>(results_.size());
    s.attributes = attribute_names_.data(), s.attribute_count = static_cast<int32_t>(attributes_.size());
    s.dims = dims, s.types = types, s.dim_count = s.type_count = 2;
    kw_bound b{&s, inputs_.data(), results_.data(), attributes_.data(), dims_, dtypes_, KW_CPU, 0, nullptr};
    cpu(Call(b));
  }

 private:
  struct Shape {
    int64_t sizes[2], strides[2];
    kw_tensor tensor;
  };
  HandCall& add(const char* name, Matrix* m, std::vector<const char*>& names, std::vector<kw_argument>& arguments) {
    names.push_back(name);
    if (!m) {
      arguments.push_back({nullptr, 0});
      return *this;
    }
    Shape& s = shapes_.emplace_back();
    int first = 2 - m->rank();
    int64_t sizes[2] = {m->rows(), m->length()}, strides[2] = {m->stride(), 1};
    for (int i = first; i < 2; i++) s.sizes[i - first] = sizes[i], s.strides[i - first] = strides[i];
    s.tensor = {m->at(0, 0), s.sizes, s.strides, m->rank(), m->dtype(), KW_CPU, 0};
    arguments.push_back({&s.tensor, 1});
    return *this;
  }
  std::deque<Shape> shapes_;  // stays where it is when more are added
  std::vector<const char*> input_names_, result_names_, attribute_names_;
  std::vector<kw_argument> inputs_, results_;
  std::vector<kw_attribute> attributes_;
  int64_t dims_[2] = {};
  int32_t dtypes_[2] = {};
};

}  // namespace kw::test
