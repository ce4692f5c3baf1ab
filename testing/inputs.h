// Hostile inputs, derived from a contract: shapes, dtypes, presence, values and layouts. No op is named here.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "testing/arguments.h"
#include "testing/layouts.h"
#include "testing/tensor.h"
#include "testing/values.h"

namespace kw::test {

struct Case {
  Arguments arguments;
  Values values = Values::random;
  Layout layout = Layout::plain;
  uint64_t seed = 1;
};
// As options of `kw check`: "--arg 'x=bf16[3,4097]' --values huge --layout offset --seed 7".
std::string describe(const Op& op, const Case& c);

// The inputs of a case, in contract order. The same case gives the same bits everywhere.
std::vector<Tensor> make_inputs(const Op& op, const Case& c);

// What a call gives: its results in contract order, then the inputs that it writes in place.
struct Output {
  const std::string& name;
  const TensorType& type;
  bool scratch = false;
  int input = -1;  // which one is written
};
std::vector<Output> outputs_of(const Op& op);
// Whether a call with these arguments asks for a result, of those that are present.
bool asked_for(const Result& result, const Arguments& arguments);

// True for inputs with leading dimensions: the ones that have rows.
bool has_rows(const TensorType& type);
// Rows of the tensors with rows (1 when the contract has none).
int64_t row_count(const Op& op, const Arguments& arguments);

struct Scope {                // how much of it
  int64_t largest = 1 << 20;  // elements of one tensor
  int64_t longest = 1 << 19;  // elements of the one row that is as long as ops promise, beyond `largest` unless quick
  bool quick = false;
  uint64_t seed = 1;
};
// Each list is a layer of the check. Shapes: empty, one, primes, powers of two and their neighbours, long rows, many rows, ranks.
std::vector<Case> shape_cases(const Op& op, const Scope& scope);
std::vector<Case> dtype_cases(const Op& op, const Scope& scope);  // every combination of type options, presence and discrete attributes
std::vector<Case> value_cases(const Op& op, const Scope& scope);
std::vector<Case> layout_cases(const Op& op, const Scope& scope);
// Random cases of `rows` rows and last dimension `length`, one for each combination of dtypes and with every optional input: for the
// layers that compare calls with each other.
std::vector<Case> plain_cases(const Op& op, int64_t rows, int64_t length, const Scope& scope);

}  // namespace kw::test
