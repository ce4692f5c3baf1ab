#include "testing/values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "testing/numbers.h"

namespace kw::test {

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr const char* value_names[] = {"random", "constant", "huge",     "small",  "tiny",     "mean1000", "below",  "ones", "outlier",
                                       "last",   "zeros",    "infinity", "masked", "denormal", "largest",  "cancel", "nan"};
static_assert(std::size(value_names) == static_cast<size_t>(Values::count));

double scale_of(Values values, DType dtype) {
  const bool narrow = dtype == KW_FP8E4M3 || dtype == KW_FP8E5M2;
  switch (values) {
    case Values::huge:
      return narrow ? 16 : dtype == KW_F16 ? 0x1p12 : 0x1p20;
    case Values::small:
      return narrow ? 0.125 : 1e-3;
    case Values::denormal:
      return narrow ? 0x1p-8 : dtype == KW_F16 ? 0x1p-15 : 0x1p-127;
    case Values::tiny:
      return narrow ? 0x1p-5 : dtype == KW_F16 ? 0x1p-18 : 0x1p-60;
    default:
      return 1;
  }
}

}  // namespace

const char* values_name(Values values) { return value_names[static_cast<int>(values)]; }
std::optional<Values> parse_values(std::string_view name) {
  for (size_t i = 0; i < std::size(value_names); i++)
    if (name == value_names[i]) return static_cast<Values>(i);
  return std::nullopt;
}

double draw(Values values, DType dtype, int64_t i, int64_t length, Random& random) {
  const double normal = 0.25 + random.normal();
  if (!is_floating(dtype)) return values == Values::zeros ? 0 : static_cast<double>(random.below(dtype == KW_BOOL ? 2 : 100));
  switch (values) {
    case Values::constant:
      return 0.7;
    case Values::mean1000:
      return (dtype_bytes(dtype) == 1 ? 100 : 1000) + normal;
    case Values::below:
      return (dtype_bytes(dtype) == 1 ? -100 : -1000) + normal;
    case Values::ones:
      return 1;
    case Values::outlier:
      return i == length / 3 ? 300 * normal : normal;
    case Values::last:
      return i == length - 1 ? 1 + std::fabs(normal) : 0;
    case Values::zeros:
      return 0;
    default:
      return normal * scale_of(values, dtype);
  }
}

void arrange_rows(Tensor& t, Values values, int64_t length, size_t k) {
  const int64_t rows = t.elements() / length, own = (rows / 2 + static_cast<int64_t>(k)) % rows;
  if (values == Values::masked && k == 0)
    for (int64_t row = own; row < std::min(own + 2, rows); row++)
      for (int64_t i = 0; i < length; i++)
        if (row == own || i != length / 2) t.set(row * length + i, -infinite);
  // Not at one place in a row and in what scales it: a sum of weighted distances takes in their product, and gives it back.
  const int64_t large = rows == 1 ? (length / 2 + static_cast<int64_t>(k)) % length : length / 2;
  if (values == Values::largest) t.set(own * length + large, (k % 2 ? -1 : 1) * std::min(float_format(t.dtype).largest, 0x1p30));
  if (values == Values::cancel)
    for (int64_t i = 0; i + 1 < t.elements(); i += 2)
      if (i % length + 2 < length) t.set(i + 1, -t.at(i));
}

void fill(Tensor& tensor, Values values, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0, n = tensor.elements(); i < n; i++) tensor.set(i, draw(values, tensor.dtype, i, n, random));
}

}  // namespace kw::test
