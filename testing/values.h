// Hostile values: what the elements of the inputs are.
#pragma once
#include <optional>
#include <string_view>

#include "testing/random.h"
#include "testing/tensor.h"

namespace kw::test {

enum class Values {
  random,    // normal around 0.25: a mean that is not zero, so that zeros are no answer
  constant,  // every element 0.7: sums grow without cancelling, half-precision accumulators stall
  huge,      // random times 2^20 (2^12 for f16): products of four still fit the accumulator, row sums leave f16
  small,     // random times 1e-3: squares are as large as a usual eps
  tiny,      // random times 2^-60 (2^-18 for f16, 2^-5 for fp8)
  mean1000,  // 1000 + random: one-pass variances cancel
  below,     // -1000 + random: no row's largest element is above zero
  ones,      // every element 1: a gradient from above that is that of a sum
  outlier,   // random, with one element of each row 300 times as large
  last,      // zero but for the last element of each row: tails
  zeros,
  infinity,  // random, with an infinity in one row and a negative one in another, which meets a zero in the other inputs
  masked,    // random, with one row of minus infinities alone, and one with a single other element
  denormal,  // random times the type's smallest normal number, so that most are below it; 2^-126 for bf16, f32 and f64;
             // tensors with rows only
  largest,   // random, with the type's largest finite number in one row (2^30 where it is larger: products of four still fit)
  cancel,    // pairs of opposite numbers: a row's sum is its last element alone
  nan,       // random, with one NaN in one row
  count
};
const char* values_name(Values values);
std::optional<Values> parse_values(std::string_view name);

// Element i of a row of `length`.
double draw(Values values, DType dtype, int64_t i, int64_t length, Random& random);
// What values say of whole rows, for the k-th input: other rows for each, so that one can be seen beside the other.
void arrange_rows(Tensor& t, Values values, int64_t length, size_t k);

// Fills a contiguous tensor as one row.
void fill(Tensor& tensor, Values values, uint64_t seed);

}  // namespace kw::test
