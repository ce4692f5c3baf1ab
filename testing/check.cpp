#include "testing/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>

#include "testing/layers.h"

namespace kw::test {

namespace {

using Clock = std::chrono::steady_clock;

// Bits of two results, NaN equal to NaN: the payload of a NaN is nobody's promise.
bool same_number(const Tensor& a, int64_t i, const Tensor& b, int64_t k) {
  const auto size = static_cast<size_t>(dtype_bytes(a.dtype));
  const unsigned char* p = &a.bytes[static_cast<size_t>(a.position(i)) * size];
  const unsigned char* q = &b.bytes[static_cast<size_t>(b.position(k)) * size];
  if (!std::memcmp(p, q, size)) return true;
  return is_floating(a.dtype) && std::isnan(load_number(a.dtype, p)) && std::isnan(load_number(b.dtype, q));
}

bool judged(const Output& output, const Tensor& t) { return t.present && !output.scratch; }

void expect_equal(const Op& op, const std::vector<Tensor>& a, const std::vector<Tensor>& b, const std::string& when) {
  const std::vector<Output> outputs = outputs_of(op);
  for (size_t r = 0; r < a.size(); r++) {
    if (!judged(outputs[r], a[r])) continue;
    for (int64_t i = 0, n = a[r].elements(); i < n; i++)
      if (!same_number(a[r], i, b[r], i))
        throw Fault{format("element %lld of %s differs %s: %.9g, then %.9g", static_cast<long long>(i), outputs[r].name.c_str(),
                           when.c_str(), a[r].at(i), b[r].at(i))};
  }
}

class Checker {
 public:
  Checker(Device& device, const Op& op, const CheckOptions& options, const std::function<void(const LayerReport&)>& report)
      : device_(device), op_(op), options_(options), report_(report) {}

  std::vector<LayerReport> run() {
    using Body = void (Checker::*)(const Case&);
    static const std::map<std::string, Body> compared = {{"repeat", &Checker::repeat},
                                                         {"rows", &Checker::rows},
                                                         {"places", &Checker::places},
                                                         {"far", &Checker::far},
                                                         {"refusal", &Checker::refusal}};
    options_.scope.largest = std::min(options_.scope.largest, device_.largest_case());
    for (Layer& layer : layers_of(op_, options_.scope)) {
      if (!layer.skipped.empty())
        skip(layer);
      else if (const auto body = compared.find(layer.name); body != compared.end())
        compare(layer, body->second);
      else
        cases(layer);
    }
    grades();
    return std::move(reports_);
  }

 private:
  void finish(LayerReport& layer, Clock::time_point start) {
    layer.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (report_) report_(layer);
    reports_.push_back(layer);
  }
  void skip(const Layer& of) {
    LayerReport layer{.level = of.level, .layer = of.name, .skipped = of.skipped};
    finish(layer, Clock::now());
  }
  void progress(const LayerReport& layer, size_t of) {
    if (options_.progress) options_.progress(layer.layer, layer.cases, static_cast<int64_t>(of));
  }

  // What all graded cases came to. A number out of bounds has been told where it was seen.
  void grades() {
    LayerReport layer{.level = "L4", .layer = "grades", .cases = graded_cases_, .worst = worst_};
    for (const LayerReport& r : reports_)
      if (r.kind == "number" && layer.ok) layer.ok = false, layer.sentence = "out of bounds in the layer " + r.layer + ", above";
    if (graded_cases_ == 0) layer.skipped = "no case was graded";
    finish(layer, Clock::now());
  }

  // False when the layer is not to run.
  bool begin(Layer& layer) {
    if (options_.stop_early && std::any_of(reports_.begin(), reports_.end(), [](const LayerReport& r) { return !r.ok; })) return false;
    if (!options_.keep || layer.cases.empty()) return true;
    std::erase_if(layer.cases, [&](const Case& c) { return !options_.keep(c); });
    if (!layer.cases.empty()) return true;
    layer.skipped = "none of its cases is asked for";
    return skip(layer), false;
  }

  void cases(Layer& of) {
    if (!begin(of)) return;
    LayerReport layer{.level = of.level, .layer = of.name};
    const auto start = Clock::now();
    for (const Case& c : of.cases) {
      const Outcome outcome = check_case(device_, op_, c);
      layer.cases++;
      progress(layer, of.cases.size());
      if (options_.graded) options_.graded(c, outcome);
      layer.worst = std::max(layer.worst, outcome.worst);
      worst_ = std::max(worst_, outcome.worst), graded_cases_ += outcome.graded > 0;
      if (outcome.ok) continue;
      layer.ok = false, layer.sentence = outcome.sentence, layer.kind = outcome.kind, layer.reproduce = describe(op_, c);
      break;
    }
    if (layer.cases == 0) layer.ok = false, layer.sentence = "the contract gave not a single case";
    finish(layer, start);
  }

  void compare(Layer& of, void (Checker::*body)(const Case&)) {
    if (!begin(of)) return;
    LayerReport layer{.level = of.level, .layer = of.name};
    const auto start = Clock::now();
    for (const Case& c : of.cases) {
      try {
        layer.cases++;
        (this->*body)(c);
        progress(layer, of.cases.size());
        continue;
      } catch (const Fault& fault) {
        layer.sentence = fault.sentence, layer.kind = fault.sentence.starts_with("kwemu") ? "memory" : "bits";
      } catch (const Error& error) {
        layer.sentence = std::string("a legal call was refused: ") + error.what(), layer.kind = "refused";
      }
      layer.ok = false, layer.reproduce = describe(op_, c);
      break;
    }
    if (layer.cases == 0) layer.ok = false, layer.sentence = "the contract gave not a single case";
    finish(layer, start);
  }

  std::vector<Tensor> call(const Case& c, const std::vector<Tensor>& inputs) {
    return run_once(device_, op_, c.arguments, inputs, poisons[turn_++ % 2]);
  }

  // The same call gives the same bits: again and again, with another call in between, on another number of threads.
  void repeat(const Case& c) {
    Case other = c;
    other.seed += 17;
    const std::vector<Tensor> inputs = make_inputs(op_, c), others = make_inputs(op_, other);
    const std::vector<Tensor> first = call(c, inputs), second = call(other, others);
    const int reruns = options_.scope.quick ? std::min(device_.repeats(), 10) : device_.repeats();
    for (int i = 0; i < reruns; i++) {
      expect_equal(op_, first, call(c, inputs), format("in rerun %d, after a call with other inputs", 2 * i + 1));
      expect_equal(op_, second, call(other, others), format("in rerun %d, after a call with other inputs", 2 * i + 2));
    }
    const std::vector<std::string> variants = device_.variants();
    for (size_t v = 0; v < variants.size(); v++) {
      struct Variant {
        Device& device;
        Variant(Device& d, int i) : device(d) { d.set_variant(i); }
        ~Variant() { device.set_variant(-1); }
      } variant(device_, static_cast<int>(v));
      expect_equal(op_, first, call(c, inputs), variants[v]);
    }
  }

  // Rows `first` to `first + n` of every input that has rows.
  std::vector<Tensor> slice(const std::vector<Tensor>& inputs, int64_t first, int64_t n, Arguments& arguments) {
    std::vector<Tensor> out;
    for (size_t i = 0; i < inputs.size(); i++) {
      const TensorType& type = op_.contract.inputs[i].type;
      if (!inputs[i].present || !has_rows(type)) {
        out.push_back(inputs[i]);
        continue;
      }
      arguments.inputs[i].sizes[0] = n;
      Tensor t(inputs[i].dtype, arguments.inputs[i].sizes);
      const int64_t length = inputs[i].elements() / inputs[i].sizes[0];
      for (int64_t e = 0; e < n * length; e++) t.set(e, inputs[i].at(first * length + e));
      out.push_back(std::move(t));
    }
    return out;
  }

  void expect_rows(const std::vector<Tensor>& all, int64_t first, int64_t n, int64_t rows, const std::vector<Tensor>& part,
                   const std::string& when) {
    for (size_t r = 0; r < all.size(); r++) {
      if (!judged(outputs_[r], all[r]) || !has_rows(outputs_[r].type)) continue;
      const int64_t length = all[r].elements() / rows;
      for (int64_t i = 0; i < n * length; i++)
        if (!same_number(all[r], first * length + i, part[r], i))
          throw Fault{format("%s[%lld,%lld] is %.9g among %lld rows, but %.9g %s", outputs_[r].name.c_str(),
                             static_cast<long long>(first + i / length), static_cast<long long>(i % length), all[r].at(first * length + i),
                             static_cast<long long>(rows), part[r].at(i), when.c_str())};
    }
  }

  // A row's result does not depend on the rows around it.
  void rows(const Case& c) {
    const std::vector<Tensor> inputs = make_inputs(op_, c);
    const int64_t rows = row_count(op_, c.arguments);
    const std::vector<Tensor> all = call(c, inputs);
    for (int64_t row = 0; row < rows; row += rows > 8 ? 8 : 1) {
      Case alone = c;
      const std::vector<Tensor> one = slice(inputs, row, 1, alone.arguments);
      expect_rows(all, row, 1, rows, call(alone, one), "alone");
    }
    for (size_t i = 0; i < inputs.size(); i++) {
      if (!inputs[i].present || !has_rows(op_.contract.inputs[i].type) || !is_floating(inputs[i].dtype) || !inputs[i].elements()) continue;
      std::vector<Tensor> poisoned = inputs;
      const int64_t row = rows / 2, length = inputs[i].elements() / rows;
      for (int64_t e = 0; e < length; e++) poisoned[i].set(row * length + e, std::nan(""));
      const std::vector<Tensor> results = call(c, poisoned);
      auto part = [&](int64_t first, int64_t n) {
        std::vector<Tensor> out(results.size());
        for (size_t r = 0; r < results.size(); r++) {
          if (!judged(outputs_[r], results[r]) || !has_rows(outputs_[r].type)) continue;
          const int64_t width = results[r].elements() / rows;
          out[r] = Tensor(results[r].dtype, {n * width});
          for (int64_t e = 0; e < n * width; e++) {
            const auto size = static_cast<size_t>(dtype_bytes(results[r].dtype));
            std::memcpy(&out[r].bytes[static_cast<size_t>(e) * size],
                        &results[r].bytes[static_cast<size_t>(results[r].position(first * width + e)) * size], size);
          }
        }
        return out;
      };
      const std::string when = format("once row %lld of %s is NaN", static_cast<long long>(row), op_.contract.inputs[i].name.c_str());
      expect_rows(all, 0, row, rows, part(0, row), when);
      expect_rows(all, row + 1, rows - row - 1, rows, part(row + 1, rows - row - 1), when);
    }
  }

  // A row's bits do not depend on where it lies: another alignment takes other accesses, and may take another tile or kernel.
  void places(const Case& c) {
    const std::vector<Tensor> all = call(c, make_inputs(op_, c));
    const int64_t rows = row_count(op_, c.arguments);
    for (Layout layout : {Layout::row_gap, Layout::both, Layout::mixed}) {
      Case elsewhere = c;
      elsewhere.layout = layout;
      if (options_.keep && !options_.keep(elsewhere)) continue;
      const std::vector<Tensor> inputs = make_inputs(op_, elsewhere);
      bool same = true;  // in a mixture that repeats rows, inputs are others
      const std::vector<Tensor> plain_inputs = make_inputs(op_, c);
      for (size_t i = 0; i < inputs.size(); i++) same = same && (!inputs[i].present || inputs[i].numbers() == plain_inputs[i].numbers());
      if (!same) continue;
      const std::vector<Tensor> results = run_once(device_, op_, c.arguments, inputs, poisons[turn_++ % 2], layout, c.seed);
      expect_rows(all, 0, rows, rows, results, std::string("in the layout ") + layout_name(layout));
    }
  }

  // Rows more than 2^30 elements apart, so that the third lies beyond 2^31. The memory in between is never touched.
  void far(const Case& c) {
    const std::vector<Tensor> inputs = make_inputs(op_, c), near = call(c, inputs);
    const std::vector<Tensor> results = run_far(device_, op_, c.arguments, inputs);
    expect_equal(op_, near, results, "when rows lie 2^30 elements apart");
  }

  // A call that breaks the contract is refused with a sentence that names the op and the argument.
  void refusal(const Case& c) {
    for (size_t i = 0; i < op_.contract.inputs.size(); i++) {
      const std::string& name = op_.contract.inputs[i].name;
      if (!c.arguments.inputs[i].present) continue;
      Case wrong = c;
      wrong.arguments.inputs[i].dtype =
          op_.contract.inputs[i].type.element.kind == ElementType::Kind::fixed && c.arguments.inputs[i].dtype == KW_I8 ? KW_F32 : KW_I8;
      refused(wrong, name, "a wrong dtype");
      unreadable_columns(c, i, name, 2, "has only every second column of a tensor");
      unreadable_columns(c, i, name, 0, "repeats one column");
      if (!op_.contract.inputs[i].type.optional) {
        wrong = c;
        wrong.arguments.inputs[i].present = false;
        refused(wrong, name, "a missing input");
      }
    }
  }
  // Rows whose elements are not neighbours: faces learn that they have to copy, and the call itself is refused.
  void unreadable_columns(const Case& c, size_t input, const std::string& name, int64_t step, const char* what) {
    const TensorType& type = op_.contract.inputs[input].type;
    std::vector<Tensor> inputs = make_inputs(op_, c);
    if (!has_rows(type) || row_rank(type) == 0 || inputs[input].sizes.back() < 2) return;
    const auto needs = [&] { return needs_copy(inputs[input].view(nullptr, device_.type(), device_.index()), row_rank(type)); };
    if (needs()) throw Fault{name + " is said to need a copy, but is contiguous"};
    for (int64_t& stride : inputs[input].strides) stride *= std::max<int64_t>(step, 1);
    inputs[input].strides.back() = step;
    if (!needs()) throw Fault{name + " is said to need no copy, but " + what};
    std::vector<kw_tensor> views(inputs.size());
    std::vector<kw_argument> raw(inputs.size());
    for (size_t i = 0; i < inputs.size(); i++)
      if (inputs[i].present) views[i] = inputs[i].view(nullptr, device_.type(), device_.index()), raw[i] = {&views[i], 1};
    const std::vector<kw_attribute> attributes = raw_attributes(op_, c.arguments);
    try {
      Bound bound;
      bind_inputs(op_, raw.data(), attributes.data(), bound);
    } catch (const Error& error) {
      const std::string text = error.what();
      if (text.find(name + " has a layout that the op cannot read") == text.npos)
        throw Fault{name + ", which " + what + ", is refused by: " + text};
      return;
    }
    throw Fault{name + ", which " + what + ", was accepted"};
  }

  void refused(const Case& c, const std::string& name, const char* what) {
    const std::vector<Tensor> inputs = make_inputs(op_, c);
    try {
      call(c, inputs);
    } catch (const Error& error) {
      const std::string text = error.what();
      if (error.status() != KW_ERROR_ARGUMENT || text.find(op_.contract.name) == text.npos || text.find(name) == text.npos)
        throw Fault{format("%s for %s is refused with a sentence that does not help: %s", what, name.c_str(), text.c_str())};
      return;
    }
    throw Fault{format("%s for %s was accepted", what, name.c_str())};
  }

  Device& device_;
  const Op& op_;
  const std::vector<Output> outputs_ = outputs_of(op_);
  CheckOptions options_;
  const std::function<void(const LayerReport&)>& report_;
  std::vector<LayerReport> reports_;
  size_t turn_ = 0;
  int64_t graded_cases_ = 0;
  double worst_ = 0;
};

}  // namespace

std::vector<LayerReport> check_op(Device& device, const Op& op, const CheckOptions& options,
                                  const std::function<void(const LayerReport&)>& report) {
  return Checker(device, op, options, report).run();
}

}  // namespace kw::test
