#include "testing/truth.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

#include "testing/random.h"

namespace kw::test {

namespace {

std::vector<int64_t> contiguous_strides(const int64_t* sizes, int32_t rank) {
  std::vector<int64_t> strides(static_cast<size_t>(rank));
  int64_t step = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    strides[static_cast<size_t>(d)] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

// 2^-24: far above what double loses on the way, far below where a formula bends.
constexpr double step = 0x1p-24;

}  // namespace

Reference::Reference(const Op& op, const Arguments& arguments, const std::vector<Tensor>& inputs)
    : op_(op), inputs_(inputs), attributes_(raw_attributes(op, arguments)) {
  if (!op.def->reference) throw Error(KW_ERROR_CONTRACT, op.contract.name + ": the room gives no reference");
  std::vector<kw_tensor> views(inputs.size());
  std::vector<kw_argument> raw(inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    exact_.push_back(inputs[i].present && is_floating(inputs[i].dtype) ? inputs[i].numbers() : std::vector<double>());
    if (!inputs[i].present) continue;
    views[i] = inputs[i].view(const_cast<unsigned char*>(inputs[i].bytes.data()), KW_CPU, 0);
    raw[i] = {&views[i], 1};
    double row = 1, rows = 1;
    const bool has = has_rows(op.contract.inputs[i].type);
    const int inner = has ? row_rank(op.contract.inputs[i].type) : static_cast<int>(inputs[i].sizes.size());
    for (size_t d = 0; d < inputs[i].sizes.size(); d++)
      (d + static_cast<size_t>(inner) < inputs[i].sizes.size() ? rows : row) *= static_cast<double>(inputs[i].sizes[d]);
    truth_.terms = std::max({truth_.terms, row, rows});
  }
  bind_inputs(op, raw.data(), attributes_.data(), bound_);
  double offset = 0;  // a float attribute may be added to a factor
  for (size_t i = 0; i < attributes_.size(); i++)
    if (op.contract.attributes[i].type == Attribute::Type::floating && std::isfinite(attributes_[i].f))
      offset = std::max(offset, std::fabs(attributes_[i].f));
  for (size_t i = 0; i < exact_.size(); i++) {
    double most = 1;
    for (double v : exact_[i])
      if (std::isfinite(v)) most = std::max(most, std::fabs(v));
    truth_.amplify *= most;
    if (!has_rows(op.contract.inputs[i].type)) truth_.factor = std::max(truth_.factor, most + offset);
  }
  for (size_t i = 0; i < attributes_.size(); i++)  // eps: 1 / sqrt(eps)
    if (const double v = std::fabs(attributes_[i].f);
        op.contract.attributes[i].type == Attribute::Type::floating && v > 0 && std::isfinite(v))
      truth_.amplify *= std::max(v, 1 / v);
  truth_.want = evaluate(none, 0, FE_TONEAREST);
  truth_.moves = truth_.wavers = truth_.want;
  for (std::vector<double>& w : truth_.wavers) std::fill(w.begin(), w.end(), 0.0);
  waver(none, 0, truth_.want);
  perturbed_.resize(inputs.size() * truth_.want.size());
  refine(2);
}

void Reference::waver(int perturbed, uint64_t seed, const Numbers& nearest) {
  const Numbers up = evaluate(perturbed, seed, FE_UPWARD), down = evaluate(perturbed, seed, FE_DOWNWARD);
  for (size_t r = 0; r < nearest.size(); r++)
    for (size_t i = 0; i < nearest[r].size(); i++) {
      const double sum = std::fabs((up[r][i] - nearest[r][i]) + (down[r][i] - nearest[r][i])) / unit_roundoff(KW_F64);
      if (std::isfinite(sum)) truth_.wavers[r][i] = std::max(truth_.wavers[r][i], sum);
    }
}

void Reference::refine(int probes) {
  const size_t results = truth_.want.size();
  for (size_t input = 0; input < inputs_.size(); input++) {
    if (exact_[input].empty()) continue;
    for (int p = 0; p < probes; p++) {
      const Numbers moved = evaluate(static_cast<int>(input), probes_ + static_cast<uint64_t>(p) + 1, FE_TONEAREST);
      for (size_t r = 0; r < results; r++) {
        std::vector<double>& most = perturbed_[input * results + r];
        most.resize(truth_.want[r].size());
        for (size_t i = 0; i < most.size(); i++) {
          const double change = std::fabs(moved[r][i] - truth_.want[r][i]) / step;
          if (std::isfinite(change)) most[i] = std::max(most[i], change);
        }
      }
    }
  }
  for (int p = 0; p < probes - 1; p++) {  // the first was made without a perturbation
    const uint64_t seed = probes_ + static_cast<uint64_t>(p) + 1;
    waver(every, seed, evaluate(every, seed, FE_TONEAREST));
  }
  probes_ += static_cast<uint64_t>(probes);
  for (size_t r = 0; r < results; r++)
    for (size_t i = 0; i < truth_.want[r].size(); i++) {
      double sum = std::isfinite(truth_.want[r][i]) ? std::fabs(truth_.want[r][i]) : 0;
      for (size_t input = 0; input < inputs_.size(); input++)
        if (!perturbed_[input * results + r].empty()) sum += perturbed_[input * results + r][i];
      truth_.moves[r][i] = sum;
    }
}

Reference::Numbers Reference::evaluate(int perturbed, uint64_t seed, int rounding) const {
  const size_t count = inputs_.size(), results = op_.contract.results.size();
  const std::vector<Output> outputs = outputs_of(op_);
  Numbers moved(count);
  std::vector<std::vector<int64_t>> strides(count + results);
  std::vector<kw_tensor> views(count + results);
  std::vector<kw_argument> in(count), out(results);
  std::vector<std::vector<unsigned char>> integers(count + results);
  for (size_t i = 0; i < count; i++) {
    const Tensor& t = inputs_[i];
    if (!t.present) continue;
    strides[i] = contiguous_strides(t.sizes.data(), static_cast<int32_t>(t.sizes.size()));
    kw_tensor& v = views[i];
    v.sizes = t.sizes.data(), v.strides = strides[i].data(), v.rank = static_cast<int32_t>(t.sizes.size());
    v.device_type = KW_CPU;
    if (is_floating(t.dtype)) {
      const std::vector<double>* values = &exact_[i];
      if (static_cast<int>(i) == perturbed || perturbed == every) {
        // One input at a time and no factor near zero, so that what one input does is not undone by another.
        Random random(seed * 7919 + i);
        moved[i] = exact_[i];
        for (double& x : moved[i]) {
          const double size = 0.5 + 0.5 * random.uniform();
          x += x * step * (random.next() & 1 ? size : -size);
        }
        values = &moved[i];
      } else if (op_.contract.inputs[i].type.written) {
        moved[i] = exact_[i];
        values = &moved[i];
      }
      v.data = const_cast<double*>(values->data());
      v.dtype = KW_F64;
    } else {
      const int64_t n = t.elements(), size = dtype_bytes(t.dtype);
      integers[i].resize(static_cast<size_t>(n * size));
      for (int64_t e = 0; e < n; e++)
        std::copy_n(&t.bytes[static_cast<size_t>(t.position(e) * size)], size, &integers[i][static_cast<size_t>(e * size)]);
      v.data = integers[i].data();
      v.dtype = t.dtype;
    }
    in[i] = {&v, 1};
  }
  Numbers numbers(results);
  for (size_t r = 0; r < results; r++) {
    const TensorSpec& spec = bound_.results[r];
    if (!spec.present) continue;
    kw_tensor& v = views[count + r];
    strides[count + r] = contiguous_strides(spec.sizes, spec.rank);
    v.sizes = spec.sizes, v.strides = strides[count + r].data(), v.rank = spec.rank;
    v.device_type = KW_CPU;
    if (is_floating(spec.dtype)) {
      numbers[r].assign(static_cast<size_t>(spec.elements()), std::nan(""));
      v.data = numbers[r].data();
      v.dtype = KW_F64;
    } else {
      integers[count + r].resize(static_cast<size_t>(spec.elements() * dtype_bytes(spec.dtype)));
      v.data = integers[count + r].data();
      v.dtype = spec.dtype;
    }
    out[r] = {&v, 1};
  }
  kw_bound raw = bound_.raw;
  int32_t types[KW_MAX_SYMBOLS];
  for (int t = 0; t < KW_MAX_SYMBOLS; t++) types[t] = is_floating(bound_.dtypes[t]) ? KW_F64 : bound_.dtypes[t];
  raw.inputs = in.data();
  raw.results = out.data();
  raw.attributes = attributes_.data();
  raw.dims = bound_.dims;
  raw.dtypes = types;
  kw_message message{};
  std::fesetround(rounding);
  const int32_t status = op_.def->reference(&raw, &message);
  std::fesetround(FE_TONEAREST);
  if (status != KW_OK) throw Error(static_cast<kw_status>(message.status), message.text);
  for (size_t r = 0; r < results; r++) {
    if (op_.contract.results[r].kind == Result::Kind::scratch) numbers[r].clear();
    if (!integers[count + r].empty()) {
      const int64_t size = dtype_bytes(bound_.results[r].dtype);
      for (size_t e = 0; e < integers[count + r].size(); e += static_cast<size_t>(size))
        numbers[r].push_back(load_number(bound_.results[r].dtype, &integers[count + r][e]));
    }
  }
  for (size_t r = results; r < outputs.size(); r++) {
    const auto i = static_cast<size_t>(outputs[r].input);
    numbers.push_back(moved[i]);
    for (size_t e = 0; e < integers[i].size(); e += static_cast<size_t>(dtype_bytes(inputs_[i].dtype)))
      numbers[r].push_back(load_number(inputs_[i].dtype, &integers[i][e]));
  }
  return numbers;
}

}  // namespace kw::test
