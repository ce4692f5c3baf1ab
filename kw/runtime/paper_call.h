// A call with addresses but without memory: what planning, packing and warming up need of one.
#pragma once
#include <vector>

#include "kw/core/bind.h"

namespace kw {

// Takes the views as they are, less their memory: only the low bits of an address stay, because its alignment chooses kernels (null: as
// aligned as can be). Results are contiguous, saved and scratch ones included. Throws what binding throws. Not copied: `bound` points into
// it.
class PaperCall {
 public:
  PaperCall(const Op& op, const kw_argument* inputs, const kw_attribute* attributes);
  PaperCall(const PaperCall&) = delete;
  PaperCall& operator=(const PaperCall&) = delete;

  Bound bound;

 private:
  void* address(const void* like);
  uintptr_t next_ = 0;
  std::vector<std::vector<kw_tensor>> inputs_;
  std::vector<kw_argument> in_, out_;
  std::vector<kw_tensor> results_;
  std::vector<std::vector<int64_t>> strides_;
};

// Row-major: elements from one index of each dimension to the next.
std::vector<int64_t> contiguous_strides(const int64_t* sizes, int32_t rank);

}  // namespace kw
