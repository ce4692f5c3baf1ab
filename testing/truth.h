// What a call should have given: the room's reference in double on the very same (rounded) inputs, and how much rounding may move it.
#pragma once
#include <vector>

#include "testing/inputs.h"

namespace kw::test {

struct Truth {
  std::vector<std::vector<double>> want;  // by result; empty where absent or scratch
  // By result and element, in units of an accumulator's unit roundoff u. Two ways in which rounding gets into a result:
  // `moves`: the change for a relative change u of every input element, estimated by doing so: the condition of the problem.
  std::vector<std::vector<double>> moves;
  // `wavers`: what the formula itself loses on the way, by cancellation for instance. The reference runs three times, its additions and
  // multiplications rounded to nearest, up and down: up + down - 2 nearest is the sum of rounding errors without their common drift.
  std::vector<std::vector<double>> wavers;
  double terms = 1;    // how many numbers one result is summed from, at most
  double factor = 8;   // what a row may be multiplied with: the largest element of inputs without rows and attributes, and at least this
  double amplify = 1;  // how much inputs and attributes, multiplied, can enlarge what an intermediate loses by underflow
};

class Reference {
 public:
  // Throws Error when the op has no reference, or the reference itself refuses.
  Reference(const Op& op, const Arguments& arguments, const std::vector<Tensor>& inputs);
  const Truth& truth() const { return truth_; }
  // Further probes, for elements that looked wrong because every probe happened to leave them in place.
  void refine(int probes);

 private:
  using Numbers = std::vector<std::vector<double>>;
  static constexpr int none = -1, every = -2;  // inputs to perturb
  Numbers evaluate(int perturbed, uint64_t seed, int rounding) const;
  void waver(int perturbed, uint64_t seed, const Numbers& nearest);
  const Op& op_;
  const std::vector<Tensor>& inputs_;
  std::vector<kw_attribute> attributes_;
  Numbers exact_;      // inputs in double
  Bound bound_;        // of the call on the CPU, for its dimensions and result shapes
  Numbers perturbed_;  // largest movement by input, flattened as input * results + result
  Truth truth_;
  uint64_t probes_ = 0;
};

}  // namespace kw::test
