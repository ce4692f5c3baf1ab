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

std::string text(double v) { return std::isnan(v) ? "nan" : format("%.9g", v); }  // without the sign that printf gives a NaN

}  // namespace

Grade grade(const std::string& name, const Tensor& got, const std::vector<double>& want, const std::vector<double>& moves, double terms,
            DType accumulator, bool random) {
  Grade g;
  const std::vector<double> value = got.numbers();
  const DType type = got.dtype;
  g.elements = static_cast<int64_t>(value.size());
  if (value.size() != want.size()) {
    g.ok = false;
    g.sentence = format("%s has %zu elements, but the reference has %zu", name.c_str(), value.size(), want.size());
    return g;
  }
  auto fail = [&](size_t i, const char* why) {
    if (g.ok) g.sentence = format("%s%s is %s, but the reference says %s%s", name.c_str(), place(got, static_cast<int64_t>(i)).c_str(), text(value[i]).c_str(),
                                    text(want[i]).c_str(), why);
    g.ok = false;
  };
  if (!is_floating(type)) {
    for (size_t i = 0; i < value.size(); i++)
      if (value[i] != want[i]) fail(i, "");
    return g;
  }
  double growth = 4 * std::sqrt(terms);
  if (accumulator == KW_F64) growth += terms / 4;
  const double unit = unit_roundoff(accumulator), least = smallest(accumulator), limit = overflow_from(type);
  double sum = 0, squares = 0, slack = 0;
  int64_t counted = 0, wrong = 0;
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
    const double a = growth * (unit * moves[i] + least);
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
    sum += error / step;
    squares += error / step * (error / step);
    slack += a / step;
    counted++;
  }
  if (counted) {
    const auto n = static_cast<double>(counted);
    g.bias = sum / n;
    g.spread = std::sqrt(squares / n);
    slack /= n;
    constexpr double perfect = 0.28867513459481287;  // a uniform error of half a spacing either way
    if (g.ok && random && counted >= 1000 && type != KW_F64) {
      if (g.spread > 1.5 * perfect + slack) {
        g.ok = false;
        g.sentence = format("%s errs by %.3g spacings in root mean square; rounding once errs by 0.289", name.c_str(), g.spread);
      } else if (std::fabs(g.bias) > 5 * perfect / std::sqrt(n) + slack) {
        g.ok = false;
        g.sentence = format("%s is off to one side by %.3g spacings in the mean of %.0f elements: a term is missing or rounding is one-sided",
                            name.c_str(), g.bias, n);
      }
    }
  }
  if (wrong) g.sentence += format(" (%lld of %lld elements are wrong)", static_cast<long long>(wrong), static_cast<long long>(g.elements));
  return g;
}

}  // namespace kw::test
