// A call on tensors of more than 2^31 elements, of which all but a few rows stay untouched: an allocation of gigabytes that costs nothing
// where memory comes when it is used (the CPU, the emulator), and fits into any data centre's GPU.
#include <algorithm>

#include "testing/check.h"

namespace kw::test {

namespace {

constexpr int64_t distance = (int64_t{1} << 30) + 64;  // elements; a multiple of 16 bytes, so that the call takes the kernel it took before

class Spread {  // a tensor's rows, `distance` apart
 public:
  Spread(Device& device, const Tensor& tensor, bool rows) : device_(device), tensor_(tensor), strides_(tensor.strides) {
    if (rows) count_ = tensor.sizes[0], strides_[0] = distance;
    row_bytes_ = static_cast<size_t>(tensor.elements() * dtype_bytes(tensor.dtype) / std::max<int64_t>(count_, 1));
    step_ = static_cast<size_t>(distance * dtype_bytes(tensor.dtype));
    base_ = static_cast<unsigned char*>(device.allocate(static_cast<size_t>(count_ - 1) * step_ + row_bytes_));
  }
  ~Spread() { device_.free(base_); }
  Spread(const Spread&) = delete;
  Spread& operator=(const Spread&) = delete;

  void upload() {
    for (int64_t r = 0; r < count_; r++) device_.upload(row(r), &tensor_.bytes[static_cast<size_t>(r) * row_bytes_], row_bytes_);
  }
  Tensor read() const {
    Tensor t = tensor_;
    for (int64_t r = 0; r < count_; r++) device_.download(&t.bytes[static_cast<size_t>(r) * row_bytes_], row(r), row_bytes_);
    return t;
  }
  kw_tensor view() const {
    kw_tensor v = tensor_.view(base_, device_.type(), device_.index());
    v.strides = strides_.data();
    return v;
  }

 private:
  unsigned char* row(int64_t r) const { return base_ + static_cast<size_t>(r) * step_; }
  Device& device_;
  const Tensor tensor_;  // contiguous
  std::vector<int64_t> strides_;
  int64_t count_ = 1;
  size_t row_bytes_ = 0, step_ = 0;
  unsigned char* base_ = nullptr;
};

}  // namespace

std::vector<Tensor> run_far(Device& device, const Op& op, const Arguments& arguments, const std::vector<Tensor>& inputs) {
  const Contract& c = op.contract;
  std::vector<std::unique_ptr<Spread>> in(inputs.size()), out(c.results.size());
  std::vector<kw_tensor> views(in.size() + out.size());
  std::vector<kw_argument> raw_in(in.size()), raw_out(out.size());
  for (size_t i = 0; i < in.size(); i++) {
    if (!inputs[i].present) continue;
    in[i] = std::make_unique<Spread>(device, inputs[i], has_rows(c.inputs[i].type));
    in[i]->upload();
    views[i] = in[i]->view();
    raw_in[i] = {&views[i], 1};
  }
  const std::vector<kw_attribute> attributes = raw_attributes(op, arguments);
  Bound bound;
  bind_inputs(op, raw_in.data(), attributes.data(), bound);
  for (size_t r = 0; r < out.size(); r++) {
    const TensorSpec& spec = bound.results[r];
    if (!spec.present || !asked_for(c.results[r], arguments)) continue;
    const bool scratch = c.results[r].kind == Result::Kind::scratch;
    const Tensor shape(spec.dtype, std::vector<int64_t>(spec.sizes, spec.sizes + spec.rank));
    out[r] = std::make_unique<Spread>(device, shape, !scratch && has_rows(c.results[r].type));
    kw_tensor& v = views[in.size() + r];
    v = out[r]->view();
    raw_out[r] = {&v, 1};
  }
  bind_results(raw_out.data(), bound);
  const auto findings = [&] {
    for (const std::string& finding : device.findings()) throw Fault{finding};
  };
  try {
    device.run(bound);
  } catch (const Error&) {
    findings();  // they say more, and must not be taken for the next call's
    throw;
  }
  findings();
  std::vector<Tensor> results(out.size());
  for (size_t r = 0; r < out.size(); r++)
    if (out[r] && c.results[r].kind != Result::Kind::scratch) results[r] = out[r]->read();
  for (size_t i = 0; i < in.size(); i++)
    if (c.inputs[i].type.written) results.push_back(in[i] ? in[i]->read() : Tensor());
  findings();
  return results;
}

}  // namespace kw::test
