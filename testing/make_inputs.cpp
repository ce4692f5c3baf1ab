// What the tensors of a case hold.
#include <algorithm>
#include <cmath>
#include <limits>

#include "testing/inputs.h"
#include "testing/random.h"

namespace kw::test {

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
// All bits set, as a GPU makes them (0x7fffffff in f32): adding to such bits runs over.
const double full_nan = std::nan("0xfffffffffffff");

// Whole numbers that count within a dimension; one in eight is what an integer attribute says, for that may be a number with a meaning of
// its own. Where other inputs have NaNs and infinities, some are out of bounds: just so, and so far that an address would wrap around.
void fill_indices(Tensor& t, const Op& op, const Case& c, int below, Random& random) {
  const int64_t size = solve(op, c.arguments).dims[static_cast<size_t>(below)];
  std::vector<double> special;
  for (size_t i = 0; i < op.contract.attributes.size(); i++)
    if (op.contract.attributes[i].type == Attribute::Type::integer) special.push_back(static_cast<double>(c.arguments.attributes[i].i));
  const double wrong[] = {-1, static_cast<double>(size), -0x1p31, 0x1p31 - 1, 0x1p40};
  const bool hostile = c.values == Values::nan || c.values == Values::infinity;
  for (int64_t i = 0, n = t.elements(); i < n; i++) {
    double value = size > 0 ? static_cast<double>(random.below(static_cast<uint64_t>(size))) : 0;
    if (!special.empty() && random.below(8) == 0) value = special[random.below(special.size())];
    if (hostile && random.below(4) == 0) value = wrong[random.below(t.dtype == KW_I64 ? 5 : 4)];
    t.set(i, value);
  }
}

}  // namespace

namespace {

// A NaN in one row, or an infinity in one and minus infinity in the next: other rows for each input, of which this is the `turn`-th that
// has rows. A single row takes its one in the first input only.
void plant(Tensor& t, Values values, int64_t length, size_t k, int64_t turn) {
  const int64_t n = t.elements() / length;
  const auto put = [&](int64_t row, double value) { t.set(row % n * length + (length * 2 / 3 + static_cast<int64_t>(k)) % length, value); };
  if (n == 1 && turn) return;
  if (values == Values::nan) put(n / 2 + turn, full_nan);
  if (values == Values::infinity) put(n / 2 + 2 * turn, infinite);
  if (values == Values::infinity && n > 1) put(n / 2 + 2 * turn + 1, -infinite);
}

// Where another input, the `turn`-th that has rows, has minus infinity: a zero, at the same place.
void plant_zero(Tensor& t, int64_t length, size_t other, int64_t turn) {
  const int64_t n = t.elements() / length;
  if (n > 1) t.set((n / 2 + 2 * turn + 1) % n * length + (length * 2 / 3 + static_cast<int64_t>(other)) % length, 0);
}

}  // namespace

std::vector<Tensor> make_inputs(const Op& op, const Case& c) {
  std::vector<Tensor> out;
  struct Planted {
    size_t input;
    int64_t length, turn;
  };
  std::vector<Planted> planted;
  int64_t with_rows = 0;
  for (size_t k = 0; k < op.contract.inputs.size(); k++) {
    const Argument& a = c.arguments.inputs[k];
    const TensorType& type = op.contract.inputs[k].type;
    if (!a.present) {
      out.emplace_back();
      continue;
    }
    const bool rows = has_rows(type);
    const int inner = rows ? row_rank(type) : static_cast<int>(a.sizes.size());
    Tensor t(a.dtype, a.sizes, arrange(c.layout, a.sizes, inner, k, c.seed, type.written));
    int64_t length = 1;  // of a row; a tensor without rows is one row
    for (size_t d = rows ? a.sizes.size() - static_cast<size_t>(inner) : 0; d < a.sizes.size(); d++) length *= a.sizes[d];
    const int64_t count = t.elements();
    Random random(c.seed * 1000003 + k);
    if (op.contract.inputs[k].below >= 0) {
      fill_indices(t, op, c, op.contract.inputs[k].below, random);
      out.push_back(std::move(t));
      continue;
    }
    // What has no rows scales them: a divisor below 2^-128 has no reciprocal in f32, and a single number that is optional may be one.
    const bool divides =
        c.values == Values::denormal || (c.values == Values::zeros && a.sizes.empty() && op.contract.inputs[k].type.optional);
    const Values values = !rows && divides ? Values::random : c.values;
    for (int64_t i = 0; i < count; i++) t.set(i, draw(values, a.dtype, length ? i % length : 0, length, random));
    if (count && is_floating(a.dtype)) arrange_rows(t, c.values, rows ? length : count, k);
    if (rows && count && is_floating(a.dtype)) {
      plant(t, c.values, length, k, with_rows);
      planted.push_back({k, length, with_rows});
    }
    with_rows += rows;
    out.push_back(std::move(t));
  }
  if (c.values == Values::infinity)
    for (const Planted& here : planted)
      for (const Planted& there : planted)
        if (here.input != there.input) plant_zero(out[here.input], here.length, there.input, there.turn);
  return out;
}

}  // namespace kw::test
