#include "testing/compare.h"

#include <algorithm>
#include <cmath>

namespace kw::test {

namespace {

std::string place(const Tensor& t, int64_t linear) {
  std::string text = "]";
  for (size_t d = t.sizes.size(); d-- > 0;) {
    text = (d ? "," : "") + std::to_string(linear % t.sizes[d]) + text;
    linear /= t.sizes[d];
  }
  return "[" + text;
}

constexpr double error_bins[] = {0.25, 0.5, 0.75, 1, 2, 4, 8};  // Grade::errors

std::string text(double v) { return std::isnan(v) ? "nan" : format("%.9g", v); }  // without the sign that printf gives a NaN

}  // namespace

Grade grade(const std::string& name, const Tensor& got, const Truth& truth, size_t index, DType accumulator, bool random, int roundings,
            bool all_round) {
  Grade g;
  const std::vector<double>&want = truth.want[index], &moves = truth.moves[index], &wavers = truth.wavers[index];
  const std::vector<double> value = got.numbers();
  const DType type = got.dtype;
  g.elements = static_cast<int64_t>(value.size());
  if (value.size() != want.size()) {
    g.ok = false;
    g.sentence = format("%s has %zu elements, but the reference has %zu", name.c_str(), value.size(), want.size());
    return g;
  }
  auto fail = [&](size_t i, const char* why) {
    if (g.ok)
      g.sentence = format("%s%s is %s, but the reference says %s%s", name.c_str(), place(got, static_cast<int64_t>(i)).c_str(),
                          text(value[i]).c_str(), text(want[i]).c_str(), why);
    g.ok = false;
  };
  if (!is_floating(type)) {
    for (size_t i = 0; i < value.size(); i++)
      if (value[i] != want[i]) fail(i, "");
    return g;
  }
  const double growth = 4 * std::sqrt(truth.terms);
  const double unit = unit_roundoff(accumulator), least = growth * truth.amplify * smallest(accumulator), limit = overflow_from(type);
  double squares = 0, sum = 0, off = 0, slack = 0, raw = 0;
  int64_t counted = 0, narrow = 0, wrong = 0, not_nearest = 0,
          normal = 0;  // narrow: rounding to the result type is nearly all that happens
  size_t first_not_nearest = 0;
  std::vector<double> sizes;  // of errors, in spacings
  unsigned char rounded[8];
  for (size_t i = 0; i < value.size(); i++) {
    const double w = want[i], v = value[i];
    if (std::isnan(w) || std::isnan(v)) {
      if (std::isnan(w) != std::isnan(v)) fail(i, ""), wrong++;
      continue;
    }
    if (std::isinf(w)) {
      if (v != w) fail(i, ""), wrong++;
      continue;
    }
    // In between, a number may be subnormal.
    const double between = (roundings - 1) * (unit_roundoff(type) * std::fabs(w) + truth.factor / 2 * smallest(type));
    const double a = unit * (growth * moves[i] + 4 * wavers[i]) + least + between;
    if (std::isinf(v)) {
      const bool right_side = (v > 0) == (w > 0);
      if (!right_side || std::fabs(w) + a < limit) fail(i, ", which does not overflow"), wrong++;
      continue;
    }
    if (std::fabs(w) - a >= limit) {
      fail(i, ", which overflows the result type"), wrong++;
      continue;
    }
    const double error = v - w, step = spacing(type, std::fabs(w) + a), bound = step / 2 * (1 + 1e-9) + a;
    if (std::fabs(error) > bound) {
      if (g.ok) g.maybe_blind = true;
      fail(i, "");
      wrong++;
    }
    g.worst = std::max(g.worst, std::fabs(error) / bound);
    g.spacings = std::max(g.spacings, std::fabs(error) / step);
    const double usual = 4 * unit * (moves[i] + wavers[i]), share = error / (step / 2 + usual + between + least);
    squares += share * share;
    counted++;
    const double in_steps = std::fabs(error) / step;
    const double* bin = std::lower_bound(std::begin(error_bins), std::end(error_bins), in_steps);
    g.errors[static_cast<size_t>(bin - error_bins)]++;
    sizes.push_back(in_steps);
    if (usual > step / 16) continue;
    store_number(type, rounded, w);
    const double extra = (v - load_number(type, rounded)) / step;
    sum += extra;
    off += extra * extra;
    slack += usual / step;
    if (std::fabs(w) >= smallest(type) / (2 * unit_roundoff(type))) raw += in_steps * in_steps, normal++;
    if (extra != 0 && not_nearest++ == 0) first_not_nearest = i;
    narrow++;
  }
  if (!sizes.empty()) {
    std::nth_element(sizes.begin(), sizes.begin() + counted / 2, sizes.end());
    g.median = sizes[static_cast<size_t>(counted / 2)];
  }
  g.spread = counted ? std::sqrt(squares / static_cast<double>(counted)) : 0;
  g.bias = narrow ? sum / static_cast<double>(narrow) : 0;
  if (g.ok && random && counted >= 1000 && type != KW_F64 && g.spread > 1) {
    g.ok = false;
    g.sentence = format(
        "%s errs by %.3g of what is usual, in root mean square over %lld elements: no single one is out of bounds, but too many are bad",
        name.c_str(), g.spread, static_cast<long long>(counted));
  } else if (g.ok && random && narrow >= 1000 && type != KW_F64) {
    const auto n = static_cast<double>(narrow);
    if (std::fabs(g.bias) > 5 * std::sqrt(off / n / std::max(1.0, n / truth.terms)) + slack / n) {
      g.ok = false;
      g.sentence = format("%s is off to one side by %.3g spacings in the mean of %lld elements: a term is missing or rounding is one-sided",
                          name.c_str(), g.bias, static_cast<long long>(narrow));
    }
  }
  if (g.ok && random && narrow >= 500 && type != KW_F64 && roundings == 1) {
    const auto n = static_cast<double>(narrow);
    const double expected = 2 * slack, allowed = expected + 5 * std::sqrt(expected) + 5 + 4 * unit_roundoff(type) * n;
    if (static_cast<double>(not_nearest) > allowed) {
      const size_t i = first_not_nearest;
      g.ok = false;
      g.sentence = format(
          "%s%s is %s, not the nearest to %s, and so are %lld of %lld elements, where %.0f can be explained: rounded twice, or ties go "
          "wrong",
          name.c_str(), place(got, static_cast<int64_t>(i)).c_str(), text(value[i]).c_str(), text(want[i]).c_str(),
          static_cast<long long>(not_nearest), static_cast<long long>(narrow), allowed);
    }
  } else if (g.ok && random && normal >= 500 && type != KW_F64 && roundings > 1 && all_round) {
    const auto n = static_cast<double>(normal);
    constexpr double one = 1.0 / 12;  // mean square of errors that are even within half a spacing
    if (std::fabs(raw / n - one) < 5 * std::sqrt((1.0 / 80 - one * one) / n)) {
      g.ok = false;
      g.sentence = format("%s errs by %.3g spacings in root mean square over %lld elements, as after one rounding, where %d are due",
                          name.c_str(), std::sqrt(raw / n), static_cast<long long>(normal), roundings);
    }
  }
  if (wrong) g.sentence += format(" (%lld of %lld elements are wrong)", static_cast<long long>(wrong), static_cast<long long>(g.elements));
  return g;
}

}  // namespace kw::test
