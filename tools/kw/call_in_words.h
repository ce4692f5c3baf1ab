// A call that a command line or a bench case describes, bound for planning.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kw/runtime/paper_call.h"
#include "testing/arguments.h"

namespace kw::tool {

class CallInWords {
 public:
  CallInWords(const Op& op, const test::Arguments& arguments) : attributes_(test::raw_attributes(op, arguments)) {
    const size_t n = op.contract.inputs.size();
    views_.resize(n), inputs_.resize(n), strides_.resize(n);
    for (size_t i = 0; i < n; i++) {
      const test::Argument& a = arguments.inputs[i];
      if (!a.present) continue;
      const auto rank = static_cast<int32_t>(a.sizes.size());
      const auto contiguous = contiguous_strides(a.sizes.data(), rank);
      strides_[i] = a.strides.empty() ? contiguous : a.strides;
      views_[i] = {nullptr, a.sizes.data(), strides_[i].data(), rank, a.dtype, KW_CUDA, 0};
      const TensorType& type = op.contract.inputs[i].type;
      if (!type.written && needs_copy(views_[i], row_rank(type))) {  // as a face does
        copies_.push_back(op.contract.inputs[i].name);
        strides_[i] = contiguous;
        views_[i].strides = strides_[i].data();
      }
      inputs_[i] = {&views_[i], 1};
    }
    call_.emplace(op, inputs_.data(), attributes_.data());
  }
  CallInWords(const CallInWords&) = delete;  // the bound call points into it, and into `arguments`
  CallInWords& operator=(const CallInWords&) = delete;
  const Bound& bound() const { return call_->bound; }
  const std::vector<std::string>& copies() const { return copies_; }  // inputs that no kernel reads as they lie

 private:
  std::vector<std::vector<int64_t>> strides_;
  std::vector<kw_tensor> views_;
  std::vector<std::string> copies_;
  std::vector<kw_argument> inputs_;
  std::vector<kw_attribute> attributes_;
  std::optional<PaperCall> call_;
};

}  // namespace kw::tool
