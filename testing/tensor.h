// Tensors of the checker: the host's copy, and one placed on a device between guard bands.
#pragma once
#include <memory>
#include <vector>

#include "testing/device.h"
#include "testing/layouts.h"
#include "testing/numbers.h"

namespace kw::test {

// A tensor on the host with its layout. `bytes` reaches from `offset` elements before the first element to the last one; what lies
// between the rows is NaN, so that reading it shows.
struct Tensor {
  bool present = false;
  DType dtype = KW_F32;
  std::vector<int64_t> sizes, strides;  // elements
  int64_t offset = 0;
  std::vector<unsigned char> bytes;

  Tensor() = default;
  Tensor(DType dtype, std::vector<int64_t> sizes, Arrangement lies);
  Tensor(DType dtype, std::vector<int64_t> sizes);  // contiguous

  int64_t elements() const;
  int64_t position(int64_t linear) const;  // of the linear-th element (row-major) within bytes, in elements
  double at(int64_t linear) const { return load_number(dtype, &bytes[static_cast<size_t>(position(linear) * dtype_bytes(dtype))]); }
  void set(int64_t linear, double value) { store_number(dtype, &bytes[static_cast<size_t>(position(linear) * dtype_bytes(dtype))], value); }
  std::vector<double> numbers() const;  // row-major
  bool contiguous() const;
  kw_tensor view(void* first_byte, int32_t device_type, int32_t device_index) const;  // first_byte: where bytes[0] lies
};

// "bf16[3,4097]"
std::string describe(DType dtype, const std::vector<int64_t>& sizes);

// Memory of a device with a tensor in it and guard bands around it (none where the device itself watches the bounds).
class Placed {
 public:
  Placed(Device& device, const Tensor& tensor);                                            // an input
  Placed(Device& device, const TensorSpec& spec, unsigned char poison, Arrangement lies);  // a result full of poison
  ~Placed();
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  kw_tensor view() const { return shape_.view(data(), device_.type(), device_.index()); }
  Tensor read() const;                  // what the memory holds now
  std::string guard_fault() const;      // "" or "the 12 bytes before it were overwritten (first at -4)"
  std::string gap_fault() const;        // of a result: "" or which of the bytes between its rows was overwritten
  std::string unchanged_fault() const;  // "" or "element 17 of the input was changed"

 private:
  unsigned char* data() const { return static_cast<unsigned char*>(base_) + guard_; }
  void place(size_t bytes);  // how many of them to upload
  Device& device_;
  Tensor shape_;  // as uploaded
  size_t guard_ = 0;
  void* base_ = nullptr;
};

}  // namespace kw::test
