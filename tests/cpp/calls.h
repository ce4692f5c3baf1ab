// Ops from a contract alone, and calls of them from lists of numbers.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "kw/core/bind.h"
#include "kw/core/error.h"

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
  kw_tensor make(int32_t dtype, std::vector<int64_t> sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;)
      if (__builtin_mul_overflow(strides[i], sizes[i] > 0 ? sizes[i] : 1, &strides[i - 1])) strides[i - 1] = 1;
    return make(dtype, std::move(sizes), std::move(strides));
  }
  kw_tensor make(int32_t dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
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

// One call with one tensor per input (an absent one has no dtype: rank -1).
struct Case {
  explicit Case(const char* contract)
      : op(op_of(contract)), inputs(op->contract.inputs.size()), attributes(op->contract.attributes.size()) {
    for (size_t i = 0; i < attributes.size(); i++) {
      const Attribute& a = op->contract.attributes[i];
      if (a.type == Attribute::Type::floating) {
        attributes[i].f = a.has_default ? a.number : 1;
      } else if (a.type == Attribute::Type::string) {
        attributes[i].s = a.text.c_str();
      } else {
        attributes[i].i = static_cast<int64_t>(a.has_default ? a.number : 1);
      }
    }
  }
  Case& in(size_t i, int32_t dtype, std::vector<int64_t> sizes) { return in(i, tensors.make(dtype, std::move(sizes))); }
  Case& in(size_t i, int32_t dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    return in(i, tensors.make(dtype, std::move(sizes), std::move(strides)));
  }
  Case& in(size_t i, kw_tensor t) { return list(i, {t}); }
  Case& list(size_t i, std::vector<kw_tensor> items) {
    lists.push_back(std::move(items));
    inputs[i] = {lists.back().data(), static_cast<int32_t>(lists.back().size())};
    return *this;
  }
  Bound& bind() {
    bind_inputs(*op, inputs.data(), attributes.data(), bound);
    return bound;
  }
  // Results as bind sized them; absent ones stay absent.
  void make_results() {
    results.assign(op->contract.results.size(), {});
    for (size_t r = 0; r < results.size(); r++) {
      const TensorSpec& s = bound.results[r];
      if (!s.present) continue;
      kw_tensor t = tensors.make(s.dtype, {s.sizes, s.sizes + s.rank});
      t.device_type = bound.raw.device_type, t.device_index = bound.raw.device_index;
      set(r, t);
    }
  }
  void set(size_t r, kw_tensor t) {
    lists.push_back({t});
    results[r] = {lists.back().data(), 1};
  }
  void bind_all() { bind_results(results.data(), bind()); }

  std::unique_ptr<Op> op;
  Tensors tensors;
  std::vector<kw_argument> inputs, results;
  std::vector<kw_attribute> attributes;
  std::deque<std::vector<kw_tensor>> lists;
  Bound bound;
};

}  // namespace kw::test
