// The picture of kw check: how far results are from the truth.
#pragma once
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "testing/check.h"

namespace kw::tool {

class CheckPicture {
 public:
  void add(const Op& op, const test::Case& c, const test::Outcome& outcome);  // a graded case
  // SVG. For each op a histogram of the errors in spacings of the result's type (ULP), and a heat map, row length x values: the largest
  // error of a cell's cases, "x" where one failed.
  std::string svg(const std::string& device) const;

 private:
  struct Cell {
    double spacings = 0;
    int64_t cases = 0, failed = 0;
  };
  struct OfOp {
    const Op* op;
    std::map<DType, std::array<int64_t, 8>> errors;
    std::map<std::pair<int, test::Values>, Cell> cells;  // by class of length
  };
  std::vector<OfOp> ops_;  // in the order in which they came
};

}  // namespace kw::tool
