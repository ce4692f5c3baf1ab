// Hostile inputs, derived from a contract: shapes, dtypes, presence, values and layouts. No op is named here.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "testing/arguments.h"
#include "testing/layouts.h"
#include "testing/tensor.h"

namespace kw::test {

enum class Values {
  random,    // normal around 0.25: a mean that is not zero, so that zeros are no answer
  constant,  // every element 0.7: sums grow without cancelling, half-precision accumulators stall
  huge,      // random times 2^20 (2^12 for f16): products of four still fit the accumulator, row sums leave f16
  small,     // random times 1e-3: squares are as large as a usual eps
  tiny,      // random times 2^-60 (2^-18 for f16, 2^-5 for fp8)
  mean1000,  // 1000 + random: one-pass variances cancel
  outlier,   // random, with one element of each row 300 times as large
  last,      // zero but for the last element of each row: tails
  zeros,
  infinity,  // random, with an infinity in one row and a negative one in another
  nan,       // random, with one NaN in one row
  count
};
const char* values_name(Values values);
std::optional<Values> parse_values(std::string_view name);

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

// Fills a contiguous tensor as one row.
void fill(Tensor& tensor, Values values, uint64_t seed);

// What a call gives: its results in contract order, then the inputs that it writes in place.
struct Output {
  const std::string& name;
  const TensorType& type;
  bool scratch = false;
  int input = -1;  // which one is written
};
std::vector<Output> outputs_of(const Op& op);

// True for inputs with leading dimensions: the ones that have rows.
bool has_rows(const TensorType& type);
// Rows of the tensors with rows (1 when the contract has none).
int64_t row_count(const Op& op, const Arguments& arguments);

struct Scope {                // how much of it
  int64_t largest = 1 << 20;  // elements of one tensor
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
