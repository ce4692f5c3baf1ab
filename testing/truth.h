// What a call should have given: the room's reference in double on the very same (rounded) inputs, and how much each result moves when
// the inputs do.
#pragma once
#include <vector>

#include "testing/inputs.h"

namespace kw::test {

struct Truth {
  std::vector<std::vector<double>> want;         // by result; empty where absent or scratch
  // By result and element: the absolute change for a relative change of one in every input element, estimated. It is the condition of the
  // problem: rounding that an accumulator of unit roundoff u commits on the way is as large as `moves * u`, times a modest growth.
  std::vector<std::vector<double>> moves;
  double terms = 1;                              // how many numbers one result is summed from, at most
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
  Numbers evaluate(int perturbed, uint64_t seed) const;  // -1: the inputs as they are
  const Op& op_;
  const std::vector<Tensor>& inputs_;
  std::vector<kw_attribute> attributes_;
  Numbers exact_;       // inputs in double
  Bound bound_;         // of the call on the CPU, for its dimensions and result shapes
  Numbers perturbed_;   // largest movement by input, flattened as input * results + result
  Truth truth_;
  uint64_t probes_ = 0;
};

}  // namespace kw::test
