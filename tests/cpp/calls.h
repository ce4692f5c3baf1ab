// Ops from a contract alone, and calls of them from lists of numbers.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "kw/core/bind.h"

namespace kw::test {

inline std::unique_ptr<Op> op_of(const char* contract) {  // not registered: for what needs the contract only
  auto op = std::make_unique<Op>();
  op->contract = parse_contract(contract);
  return op;
}

// Owns the sizes and strides that its tensors point to.
class Tensors {
 public:
  // Contiguous; on the CPU, at an address of its own (never read).
  kw_tensor make(DType dtype, std::vector<int64_t> sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * (sizes[i] > 0 ? sizes[i] : 1);
    return make(dtype, std::move(sizes), std::move(strides));
  }
  kw_tensor make(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    kept_.push_back(std::move(sizes));
    const int64_t* s = kept_.back().data();
    const auto rank = static_cast<int32_t>(kept_.back().size());
    kept_.push_back(std::move(strides));
    next_ += int64_t{1} << 32;
    return {reinterpret_cast<void*>(next_), s, kept_.back().data(), rank, dtype, KW_CPU, 0};
  }

 private:
  std::deque<std::vector<int64_t>> kept_;
  int64_t next_ = int64_t{1} << 32;
};

}  // namespace kw::test
