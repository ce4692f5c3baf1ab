// The layers of the check, as lists of cases: what check_op runs, and what others choose from.
#pragma once
#include <string>
#include <vector>

#include "testing/inputs.h"

namespace kw::test {

struct Layer {
  std::string level, name;  // "L1", "shapes"
  std::vector<Case> cases;
  std::string skipped;  // why it does not apply to this op
};
// In the order in which they are run (check.h says what each does): the cheap ones first. `scope.largest` says how large cases get.
std::vector<Layer> layers_of(const Op& op, const Scope& scope);

}  // namespace kw::test
