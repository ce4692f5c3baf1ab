// What the typed C++ calls of the rooms (kw/ops/<room>/<room>.h) stand on: a view of your memory, and a call that throws.
//
// Header-only over the C face, because no C++ may cross the library's border: it carries its own C++ runtime, and an exception thrown
// inside it would end a program that was built with another one. So kw::Error is thrown here, in the caller's own code.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "faces/c/kernelwright.h"
#include "kw/core/error.h"

namespace kw {

// A contiguous, row-major view of memory that you own: kw::Tensor x(data, KW_F32, {rows, 4096}). Sizes are elements. On a GPU:
// kw::Tensor x(device_pointer, KW_BF16, {rows, 4096}, KW_CUDA, 0). For any other layout write to `stride(dimension)`.
class Tensor : public kw_tensor {
 public:
  Tensor(void* memory, kw_dtype type, std::initializer_list<int64_t> shape, kw_device_type device = KW_CPU, int32_t index = 0)
      : kw_tensor{memory, sizes_, strides_, static_cast<int32_t>(shape.size()), type, device, index} {
    if (shape.size() > KW_MAX_RANK) throw Error(KW_ERROR_ARGUMENT, format("a tensor has at most %d dimensions", KW_MAX_RANK));
    std::copy(shape.begin(), shape.end(), sizes_);
    int64_t step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) strides_[i] = step, step *= sizes_[i];
  }
  Tensor(const void* memory, kw_dtype type, std::initializer_list<int64_t> shape, kw_device_type device = KW_CPU, int32_t index = 0)
      : Tensor(const_cast<void*>(memory), type, shape, device, index) {}  // an input: ops never write to those
  Tensor(const Tensor& other) : kw_tensor(other) { take(other); }
  Tensor& operator=(const Tensor& other) {
    kw_tensor::operator=(other);
    take(other);
    return *this;
  }
  int64_t& stride(int32_t dimension) { return strides_[dimension]; }  // elements from one index to the next

 private:
  void take(const Tensor& other) {  // the view points into itself
    std::copy(other.sizes_, other.sizes_ + KW_MAX_RANK, sizes_);
    std::copy(other.strides_, other.strides_ + KW_MAX_RANK, strides_);
    sizes = sizes_, strides = strides_;
  }
  int64_t sizes_[KW_MAX_RANK] = {}, strides_[KW_MAX_RANK] = {};
};

// One op, by name; a room's header keeps it in a static. Calling it runs the op with inputs, results and attributes in contract order
// (null: absent). Throws kw::Error with the library's sentence; nothing has been written then.
class TypedOp {
 public:
  explicit TypedOp(const char* name) : op_(kw_op_find(name)) {
    if (!op_) throw Error(KW_ERROR_UNSUPPORTED, format("%s: this build of Kernelwright %s has no such op", name, kw_version()));
  }
  void operator()(void* stream, std::initializer_list<const kw_tensor*> inputs, std::initializer_list<const kw_tensor*> results,
                  std::initializer_list<kw_attribute> attributes) const {
    kw_argument in[KW_MAX_ARGUMENTS] = {}, out[KW_MAX_ARGUMENTS] = {};
    pack(inputs, in), pack(results, out);
    const kw_call call{in, out, attributes.begin(), stream};
    if (int status = kw_run(op_, &call)) throw Error(static_cast<kw_status>(status), kw_last_error());
  }

 private:
  static void pack(std::initializer_list<const kw_tensor*> tensors, kw_argument* out) {
    for (const kw_tensor* t : tensors) *out++ = {t, t ? 1 : 0};
  }
  const kw_op* op_;
};

}  // namespace kw
