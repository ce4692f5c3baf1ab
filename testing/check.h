// The checker: runs an op on hostile inputs and says whether it keeps its promises. Generic: everything comes from the contract.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "testing/inputs.h"

namespace kw::test {

// One run of a case. Throws Fault when a guard band, an input or a device's own check was violated, Error when the call was refused.
struct Fault {
  std::string sentence;
};
// Gives the outputs (outputs_of).
std::vector<Tensor> run_once(Device& device, const Op& op, const Arguments& arguments, const std::vector<Tensor>& inputs,
                             unsigned char poison, Layout results = Layout::plain, uint64_t seed = 1);

// The same with every tensor that has rows spread out, 2^30 elements and more from one row to the next, in memory that is touched nowhere
// else. The case has one leading dimension, and contiguous inputs.
std::vector<Tensor> run_far(Device& device, const Op& op, const Arguments& arguments, const std::vector<Tensor>& inputs);

// Two different fills for results before a call: what both calls leave as it was has not been written. 0xFF is NaN in every floating
// type, 0x7B is finite in every one.
inline constexpr unsigned char poisons[2] = {0xFF, 0x7B};

struct Outcome {  // of a case
  bool ok = true;
  std::string sentence;
  std::string kind;                                // "memory", "number" or "refused": what kind of fault
  double worst = 0;                                // largest error, in bounds
  double spacings = 0;                             // and in spacings of the result's type
  int64_t graded = 0;                              // elements that were
  std::map<DType, std::array<int64_t, 8>> errors;  // of these, by the result's type: Grade::errors (compare.h)
};
// Runs a case twice over different poison and grades it against the reference.
Outcome check_case(Device& device, const Op& op, const Case& c);

struct LayerReport {
  std::string level;  // "L0" to "L5" (check_op)
  std::string layer;  // "shapes", ...
  bool ok = true;
  int64_t cases = 0;
  double worst = 0;  // largest error over its cases, in bounds
  double seconds = 0;
  std::string sentence;   // what failed first
  std::string kind;       // of the fault: Outcome's, or "bits" where two calls differ
  std::string reproduce;  // "--arg 'x=bf16[3,0]' --seed 3": to be put behind `kw check OP --device D`
  std::string skipped;    // why it does not apply here
};

struct CheckOptions {
  Scope scope;
  std::function<void(const std::string& layer, int64_t done, int64_t of)> progress;  // may be empty
  std::function<void(const Case&, const Outcome&)> graded;                           // each case of shapes to layouts; may be empty
  std::function<bool(const Case&)> keep;                                             // when not empty: only cases for which it is true
  bool stop_early = false;                                                           // at the first layer that fails
};

// The layers, by level. In every case of L1 to L3 results begin as poison, twice and differently, and what lies around them, the inputs and
// the gaps between rows have to stay as they were.
//   L0  refusal   a wrong call is refused with a sentence and writes nothing; so are every second column and a repeated one, which faces
//                 have to copy
//   L1  shapes; dtypes (and optional inputs and attributes); far (a row beyond 2^31 elements)
//   L2  values    each with every combination of dtypes, and some with every combination of attributes
//   L3  layouts   of inputs and upstream gradients alike; places (a row's bits do not depend on where it lies)
//   L4  grades    against the reference in double, of all elements of the cases above (compare.h)
//   L5  repeat (the same bits again, after other calls, in other schedules, over fresh poison); rows (a row alone gives the same bits, a
//                 NaN stays in its row)
std::vector<LayerReport> check_op(Device& device, const Op& op, const CheckOptions& options,
                                  const std::function<void(const LayerReport&)>& report = {});

}  // namespace kw::test
