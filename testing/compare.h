// Is a result right? Graded against the truth in double, element by element, every element.
//
// A result `got` of type R, computed with an accumulator of unit roundoff u (f32's, or f64's where R and an input are f64), is right when
//
//     |got - want| <= half a spacing of R at (|want| + a)  +  a,     a = 4 u (sqrt(n) moves + wavers) + 4 sqrt(n) amplify * smallest
//
// The first term is the one rounding to R that an op may do ("rounded once"; an op whose definition has more `roundings` is allowed R's
// unit roundoff times |want| for each further one); a is what the accumulator may lose on the way (truth.h):
//   moves     the problem's condition: an algorithm as good as the accumulator allows gives the exact result of inputs that are wrong in
//             their last place. sqrt(n) for results summed from n numbers: errors of a long sum add up like a random walk. (Equal numbers
//             err systematically, n/4 in one chain; but kernels use 64 chains and more.)
//   wavers    what the reference's own formula loses in double, scaled to u: cancellation between its terms
//   smallest  of the accumulator: intermediates may underflow gradually, and factors (inputs, 1/eps: amplify) enlarge that
//   4         roundings a step, and room for another order of operations than the reference's
// The reference has to be better than the kernel, in f64 too: its sums go through kw::Sum (kw/core/sum.h). Chains of plain additions would
// waver by as much as a fault.
//
// How fine that is: with `scale` of rms_norm wrong by a factor 1 + d, f32, 16 rows, the check fails from d = 2^-18 on, for rows of 64 and
// of 4096 alike; 2^-20 passes (powers of 4 tried; kw check on the emulator, 2026-12-01). Every element of a row has that error, so the
// verdict `spread` finds it. A kernel that sums rows of 16 Ki f32 in a single chain does not pass.
//
// Six verdicts, the first that fails is named:
//   pattern  NaN and +-infinity exactly where the truth, rounded to R, has them
//   size     the bound above
//   spread   root mean square of error / (half a spacing + t) <= 1, where t = 4 u (moves + wavers): luck in the mean does not grow with
//            the square root of n; perfect rounding gives 0.58
//   bias     among the elements where t is below a sixteenth of a spacing: mean of error less that of perfect rounding, in spacings,
//            <= 5 standard errors (a row counts as one observation) + mean of t
//   roundings  among the same elements: where one rounding is due, no more of them are not the nearest to the truth than t explains: a
//            share of 2 t / spacing, 5 standard errors and 5, and two of the 1 / (2 u(R)) mantissas that R has (where one number scales a
//            whole tensor, each may lie close to a tie everywhere). Where more are due, the mean square error of normal numbers is not
//            the 1/12 square spacing of one alone, within 5 standard errors
//   exact    integers and bool are equal
// And one more, of kernels beside a room's CPU function (run.cpp), where values are random, perhaps far from zero: the median error of 64
// elements and more is at most 16 times that of the CPU function or 16 spacings. A condition says what any method may lose, not what this
// formula has to.
//
// Spread and bias are asked where the inputs are random and 1000 elements and more are there to judge; roundings from 500 on.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "testing/tensor.h"
#include "testing/truth.h"

namespace kw::test {

struct Grade {
  bool ok = true;
  std::string sentence;         // what is wrong: "y[2,4096] is 0, but the reference says 1.25 (bound 3e-3; 3 of 12291 elements are wrong)"
  bool maybe_blind = false;     // the fault is of size, so that further probes may clear it
  double worst = 0;             // largest error, in bounds: 1 is the limit
  double spacings = 0;          // largest error, in spacings of the result type
  double median = 0;            // of the errors, in spacings
  double spread = 0, bias = 0;  // as above
  int64_t elements = 0;
  // Of the finite ones: how many err by up to 1/4, 1/2, 3/4, 1, 2, 4, 8 spacings of the result type, and by more.
  std::array<int64_t, 8> errors{};
};

// Grades result `index` of `truth`; `accumulator` has the u above, `random` asks for spread, bias and roundings. `all_round`: none of the
// roundings is one of a number that is there already, as it is when an optional factor is left out.
Grade grade(const std::string& name, const Tensor& got, const Truth& truth, size_t index, DType accumulator, bool random, int roundings = 1,
            bool all_round = false);

}  // namespace kw::test
