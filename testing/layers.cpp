#include "testing/layers.h"

#include <algorithm>

namespace kw::test {

namespace {

std::vector<Case> plain(const Op& op, const Scope& scope, std::initializer_list<std::pair<int64_t, int64_t>> shapes) {
  std::vector<Case> out;
  for (auto [rows, length] : shapes)
    for (Case& c : plain_cases(op, rows, length, scope)) out.push_back(std::move(c));
  return out;
}

// Of cases that differ in dtypes, the one with the fewest bytes.
std::vector<Case> smallest(std::vector<Case> cases) {
  const auto bytes = [](const Case& c) {
    int64_t sum = 0;
    for (const Argument& a : c.arguments.inputs) sum += a.present ? dtype_bytes(a.dtype) : 0;
    return sum;
  };
  std::sort(cases.begin(), cases.end(), [&](const Case& a, const Case& b) { return bytes(a) < bytes(b); });
  if (cases.size() > 1) cases.resize(1);
  return cases;
}

// Where a gradient is not wanted, saved results are not asked for, and other kernels run: the same cases without them too.
std::vector<Case> and_without_saved(const Op& op, const Scope& scope, std::vector<Case> cases) {
  const std::vector<Result>& results = op.contract.results;
  if (scope.quick || std::none_of(results.begin(), results.end(), [](const Result& r) { return r.kind == Result::Kind::saved; }))
    return cases;
  for (size_t i = 0, n = cases.size(); i < n; i++) {
    cases.push_back(cases[i]);
    cases.back().arguments.saved = false;
  }
  return cases;
}

}  // namespace

std::vector<Layer> layers_of(const Op& op, const Scope& scope) {
  const int64_t small = std::max<int64_t>(scope.largest / 8, 64), length = std::min<int64_t>(small / 16, 4097);
  bool rows = false, together = false;
  for (const Output& o : outputs_of(op)) rows |= !o.scratch && has_rows(o.type), together |= o.type.fold == Fold::all;
  const std::string no_rows = rows ? "" : "no result has rows";
  std::vector<Layer> out = {{"L1", "shapes", shape_cases(op, scope), ""},
                            {"L1", "dtypes", dtype_cases(op, scope), ""},
                            {"L2", "values", and_without_saved(op, scope, value_cases(op, scope)), ""},
                            {"L3", "layouts", and_without_saved(op, scope, layout_cases(op, scope)), ""}};
  out.push_back({"L5", "repeat", plain(op, scope, {{16, length}, {std::min<int64_t>(small / 8, 4096), 8}}), ""});
  out.push_back({"L5", "rows", and_without_saved(op, scope, plain(op, scope, {{5, 33}, {7, length}, {33, 64}})),
                 together ? "a result is made of all rows together" : no_rows});
  // Aligned to 16 bytes a long row may lie in shared memory; elsewhere it is read in pieces: two kernels with two tiles for one row.
  constexpr int64_t long_row = 32776;
  const std::vector<Case> places =
      scope.quick ? plain(op, scope, {{6, length}}) : plain(op, scope, {{5, 33}, {6, length}, {3, small / 8}, {2, long_row}});
  out.push_back({"L3", "places", and_without_saved(op, scope, places), no_rows});
  std::vector<Case> far;  // short, middling and long rows are other kernels
  for (int64_t n : {int64_t{40}, int64_t{4104}, int64_t{40000}})
    for (Case& c : smallest(plain(op, scope, {{3, n}}))) far.push_back(std::move(c));
  out.push_back({"L1", "far", and_without_saved(op, scope, far), ""});
  out.push_back({"L0", "refusal", plain(op, scope, {{3, 16}}), ""});
  return out;
}

}  // namespace kw::test
