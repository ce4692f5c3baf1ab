// Is a result right? Graded against the truth in double, element by element, every element.
//
// A result `got` of type R, computed with an accumulator of unit roundoff u (f32's, or f64's where R and an input are f64), is right when
//
//     |got - want| <= half a spacing of R at (|want| + a)  +  a,          a = growth * (u * moves + smallest number of the accumulator)
//
// The first term is the one rounding to R that an op may do ("rounded once"). In the second, `moves` is the problem's condition (truth.h):
// an algorithm as good as the accumulator allows gives the exact result of inputs that are wrong in their last place. growth = 4 sqrt(n) for
// results summed from n numbers: four roundings a step, errors of a long sum adding up like a random walk. Sums of equal numbers err
// systematically: n/4 in one chain, but kernels use 64 chains and more. For f64 the reference is no better than the kernel, so n/4 is added.
//
// Five verdicts, the first that fails is named:
//   pattern  NaN and +-infinity exactly where the truth, rounded to R, has them
//   size     the bound above
//   spread   root mean square of the error, in spacings, <= 1.5 x that of perfect rounding (0.289) + mean of a
//   bias     mean error, in spacings, <= 5 standard errors of perfect rounding + mean of a
//   exact    integers and bool are equal
// Spread and bias are asked of results of 1000 elements and more, where the inputs are random.
#pragma once
#include <string>
#include <vector>

#include "testing/tensor.h"

namespace kw::test {

struct Grade {
  bool ok = true;
  std::string sentence;     // what is wrong: "y[2,4096] is 0, but the reference says 1.25 (bound 3e-3; 3 of 12291 elements are wrong)"
  bool maybe_blind = false;  // the fault is of size, so that further probes may clear it
  double worst = 0;         // largest error, in bounds: 1 is the limit
  double spacings = 0;      // largest error, in spacings of the result type
  double spread = 0, bias = 0;
  int64_t elements = 0;
};

// `accumulator` has the u above, `terms` is n; `random` asks for spread and bias.
Grade grade(const std::string& name, const Tensor& got, const std::vector<double>& want, const std::vector<double>& moves, double terms,
            DType accumulator, bool random);

}  // namespace kw::test
