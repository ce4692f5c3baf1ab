#include "kw/runtime/paper_call.h"

#include <algorithm>

namespace kw {

std::vector<int64_t> contiguous_strides(const int64_t* sizes, int32_t rank) {
  std::vector<int64_t> strides(static_cast<size_t>(rank));
  int64_t step = 1;
  for (int32_t d = rank - 1; d >= 0; d--) strides[static_cast<size_t>(d)] = step, step *= std::max<int64_t>(sizes[d], 1);
  return strides;
}

void* PaperCall::address(const void* like) {
  next_ += uintptr_t{1} << 44;  // further apart than any tensor is long
  return reinterpret_cast<void*>(next_ + (reinterpret_cast<uintptr_t>(like) & 255));
}

PaperCall::PaperCall(const Op& op, const kw_argument* inputs, const kw_attribute* attributes) {
  const size_t n = op.contract.inputs.size(), m = op.contract.results.size();
  inputs_.resize(n), in_.resize(n), out_.resize(m), results_.resize(m), strides_.resize(m);
  for (size_t i = 0; inputs && i < n; i++) {
    in_[i] = inputs[i];
    if (!inputs[i].tensors || inputs[i].count <= 0) continue;  // binding will say so
    inputs_[i].assign(inputs[i].tensors, inputs[i].tensors + inputs[i].count);
    for (kw_tensor& t : inputs_[i]) t.data = address(t.data);
    in_[i].tensors = inputs_[i].data();
  }
  bind_inputs(op, inputs ? in_.data() : nullptr, attributes, bound);
  for (size_t r = 0; r < m; r++) {
    const TensorSpec& s = bound.results[r];
    if (!s.present) continue;
    strides_[r] = contiguous_strides(s.sizes, s.rank);
    results_[r] = {address(nullptr), s.sizes, strides_[r].data(), s.rank, s.dtype, bound.raw.device_type, bound.raw.device_index};
    out_[r] = {&results_[r], 1};
  }
  bind_results(out_.data(), bound);
}

}  // namespace kw
