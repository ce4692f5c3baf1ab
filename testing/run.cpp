// One call under observation: poison, guard bands, inputs unchanged, and the grade of what it gave.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "testing/check.h"
#include "testing/compare.h"
#include "testing/truth.h"

namespace kw::test {

std::vector<Tensor> run_once(Device& device, const Op& op, const Arguments& arguments, const std::vector<Tensor>& inputs,
                             unsigned char poison, Layout result_layout, uint64_t seed) {
  const Contract& c = op.contract;
  std::vector<std::unique_ptr<Placed>> in(c.inputs.size()), out(c.results.size());
  std::vector<kw_tensor> views(in.size() + out.size());
  std::vector<kw_argument> raw_in(in.size()), raw_out(out.size());
  for (size_t i = 0; i < in.size(); i++) {
    if (!inputs[i].present) continue;
    in[i] = std::make_unique<Placed>(device, inputs[i]);
    views[i] = in[i]->view();
    raw_in[i] = {&views[i], 1};
  }
  const std::vector<kw_attribute> attributes = raw_attributes(op, arguments);
  Bound bound;
  bind_inputs(op, raw_in.data(), attributes.data(), bound);
  for (size_t r = 0; r < out.size(); r++) {
    if (!bound.results[r].present || !asked_for(c.results[r], arguments)) continue;
    const TensorSpec& spec = bound.results[r];
    const bool rows = has_rows(c.results[r].type), scratch = c.results[r].kind == Result::Kind::scratch;
    out[r] =
        std::make_unique<Placed>(device, spec, poison,
                                 arrange(scratch ? Layout::plain : result_layout, std::vector<int64_t>(spec.sizes, spec.sizes + spec.rank),
                                         rows ? row_rank(c.results[r].type) : spec.rank, in.size() + r, seed, true));
    kw_tensor& v = views[in.size() + r];
    v = out[r]->view();
    raw_out[r] = {&v, 1};
  }
  bind_results(raw_out.data(), bound);
  auto findings = [&] {
    for (const std::string& finding : device.findings()) throw Fault{finding};
  };
  try {
    device.run(bound);
  } catch (const Error&) {
    findings();  // they say more
    throw;
  }
  findings();
  for (size_t i = 0; i < in.size(); i++) {
    if (!in[i]) continue;
    if (auto fault = in[i]->guard_fault(); !fault.empty()) throw Fault{"input " + c.inputs[i].name + ": " + fault};
    if (auto fault = in[i]->unchanged_fault(); !fault.empty() && !c.inputs[i].type.written)
      throw Fault{"input " + c.inputs[i].name + " " + fault};
  }
  std::vector<Tensor> results(out.size());
  for (size_t r = 0; r < out.size(); r++) {
    if (!out[r] || (c.results[r].kind == Result::Kind::scratch && device.watches_bounds())) continue;  // scratch may stay unwritten
    if (auto fault = out[r]->guard_fault(); !fault.empty()) throw Fault{"result " + c.results[r].name + ": " + fault};
    results[r] = out[r]->read();
    if (static_cast<size_t>((results[r].elements() + results[r].offset) * dtype_bytes(results[r].dtype)) < results[r].bytes.size())
      if (auto fault = out[r]->gap_fault(); !fault.empty()) throw Fault{"result " + c.results[r].name + ": " + fault};
  }
  for (size_t i = 0; i < in.size(); i++) {
    if (!c.inputs[i].type.written) continue;
    results.push_back(in[i] ? in[i]->read() : Tensor());
    Tensor after = results.back(), before = inputs[i];
    for (int64_t e = 0, n = after.present ? after.elements() : 0; e < n; e++) after.set(e, 0), before.set(e, 0);
    if (after.bytes != before.bytes) throw Fault{"memory between the rows of " + c.inputs[i].name + " was written to"};
  }
  findings();  // of reading bytes that nothing wrote
  return results;
}

namespace {

// "" or where two runs of the same call differ in their bits.
std::string difference(const Op& op, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  const std::vector<Output> outputs = outputs_of(op);
  for (size_t r = 0; r < a.size(); r++) {
    if (!a[r].present || outputs[r].scratch) continue;
    const auto size = static_cast<size_t>(dtype_bytes(a[r].dtype));
    for (int64_t i = 0, n = a[r].elements(); i < n; i++) {
      const size_t at = static_cast<size_t>(a[r].position(i)) * size;
      if (!std::memcmp(&a[r].bytes[at], &b[r].bytes[at], size)) continue;
      auto untouched = [&](const Tensor& t, unsigned char poison) {
        return std::all_of(&t.bytes[at], &t.bytes[at] + size, [&](unsigned char x) { return x == poison; });
      };
      const char* name = outputs[r].name.c_str();
      if (untouched(a[r], poisons[0]) && untouched(b[r], poisons[1]))
        return format("element %lld of %s is never written", static_cast<long long>(i), name);
      return format("element %lld of %s depends on what the memory held before: %.9g, then %.9g", static_cast<long long>(i), name,
                    load_number(a[r].dtype, &a[r].bytes[at]), load_number(a[r].dtype, &b[r].bytes[at]));
    }
  }
  return "";
}

// The accumulator that the contract speaks of: f64's only where the result and an input are f64.
DType accumulator_of(DType result, const std::vector<Tensor>& inputs) {
  const bool wide = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.present && t.dtype == KW_F64; });
  return result == KW_F64 && wide ? KW_F64 : KW_F32;
}

// What the room's CPU function gives; nothing when it does not come to an end.
std::vector<Tensor> cpu_results(const Op& op, const Case& c, const std::vector<Tensor>& inputs) {
  HostDevice host;
  try {
    return run_once(host, op, c.arguments, inputs, poisons[0]);
  } catch (const Error&) {
    return {};
  } catch (const Fault&) {
    return {};
  }
}

// What the room's CPU function gives for the element that a sentence "y[2,40] is ..." names: a third opinion, beside kernel and reference.
std::string cpu_says(const Device& device, const Op& op, const Case& c, const std::vector<Tensor>& inputs, size_t result,
                     const std::string& sentence) {
  const size_t open = sentence.find('['), close = sentence.find("] is ");
  if (device.type() == KW_CPU || !op.def->cpu || open == sentence.npos || close == sentence.npos || open > close) return "";
  const std::vector<Tensor> results = cpu_results(op, c, inputs);
  if (results.empty()) return "";
  const Tensor& t = results[result];
  int64_t linear = 0;
  size_t at = open + 1;
  for (int64_t size : t.sizes) linear = linear * size + std::atoll(&sentence[at]), at = sentence.find(',', at) + 1;
  return t.present && linear < t.elements() ? format("; the CPU kernel says %.9g", t.at(linear)) : "";
}

}  // namespace

Outcome check_case(Device& device, const Op& op, const Case& c) {
  Outcome out;
  auto failed = [&](const char* kind, std::string sentence) {
    out.ok = false, out.kind = kind, out.sentence = std::move(sentence);
    return out;
  };
  for (const Input& input : op.contract.inputs)
    if (input.type.list)
      throw Error(KW_ERROR_UNSUPPORTED,
                  format("%s: the checker cannot judge %s yet, which is a list of tensors", op.contract.name.c_str(), input.name.c_str()));
  try {
    const std::vector<Tensor> inputs = make_inputs(op, c);
    const std::vector<Tensor> results = run_once(device, op, c.arguments, inputs, poisons[0], c.layout, c.seed);
    const std::vector<Tensor> again = run_once(device, op, c.arguments, inputs, poisons[1], c.layout, c.seed);
    if (auto fault = difference(op, results, again); !fault.empty()) return failed("memory", fault);
    Reference reference(op, c.arguments, inputs);
    const std::vector<kw_attribute> attributes = raw_attributes(op, c.arguments);
    const bool random = c.values == Values::random || c.values == Values::huge || c.values == Values::small;
    const bool ordinary =
        random || c.values == Values::mean1000 || c.values == Values::below;  // nothing that all elements share is made to cancel
    const std::vector<Output> outputs = outputs_of(op);
    const bool complete = std::all_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.present; });
    for (size_t r = 0; r < results.size(); r++) {
      if (!results[r].present || outputs[r].scratch) continue;
      const int roundings = op.def->roundings ? op.def->roundings(attributes.data(), static_cast<int32_t>(r)) : 1;
      auto judge = [&] {
        return grade(outputs[r].name, results[r], reference.truth(), r, accumulator_of(results[r].dtype, inputs), random, roundings,
                     complete);
      };
      Grade g = judge();
      if (!g.ok && g.maybe_blind) {
        reference.refine(16);
        g = judge();
      }
      out.worst = std::max(out.worst, g.worst), out.spacings = std::max(out.spacings, g.spacings), out.graded += g.elements;
      for (size_t bin = 0; bin < g.errors.size(); bin++) out.errors[results[r].dtype][bin] += g.errors[bin];
      if (!g.ok) return failed("number", g.sentence + cpu_says(device, op, c, inputs, r, g.sentence));
      if (device.type() == KW_CPU || !op.def->cpu || !ordinary || g.elements < 64 || g.median <= 16) continue;
      // Not wrong by the condition of the problem, but is it as good as it can be? Medians of 64 errors do not differ so far by luck.
      if (const std::vector<Tensor> cpu = cpu_results(op, c, inputs); !cpu.empty()) {
        const Grade other = grade(outputs[r].name, cpu[r], reference.truth(), r, accumulator_of(cpu[r].dtype, inputs), false, roundings);
        if (other.ok && g.median > 16 * std::max(other.median, 1.0))
          return failed("number", format("%s errs by %.3g spacings in the median of %lld elements, the CPU kernel by %.3g: digits are lost",
                                         outputs[r].name.c_str(), g.median, static_cast<long long>(g.elements), other.median));
      }
    }
  } catch (const Fault& fault) {
    return failed("memory", fault.sentence);
  } catch (const Error& error) {
    return failed("refused", std::string("a legal call was refused: ") + error.what());
  }
  return out;
}

}  // namespace kw::test
