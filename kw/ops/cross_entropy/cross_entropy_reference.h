// Truth in double, written as the formula: every floating tensor is f64 and contiguous.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "kw/core/room.h"
#include "kw/core/sum.h"

namespace kw::ops::cross_entropy {

inline int64_t target_at(const Call& c, int64_t row) {
  const void* data = c.data("target");
  return c.dtype("I") == KW_I64 ? static_cast<const int64_t*>(data)[row] : static_cast<const int32_t*>(data)[row];
}

// The loss of one row, and its gradient (null: not wanted) times `scale`.
inline double row_reference(const Call& c, const double* logits, int64_t target, double scale, double* dlogits) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const int64_t n = c.dim("V");
  const auto* weight = static_cast<const double*>(c.data("weight"));
  const double smoothing = c.attr("label_smoothing"), cap = c.attr("softcap"), z = c.attr("z_loss");
  const bool ignored = target == c.choice("ignore_index"), valid = target >= 0 && target < n;
  if (ignored || !valid) {
    for (int64_t i = 0; dlogits && i < n; i++) dlogits[i] = ignored ? 0 : nan;
    return ignored ? 0 : nan;
  }
  std::vector<double> l(logits, logits + n);
  for (double& x : l)
    if (cap > 0) x = cap * std::tanh(x / cap);
  double top = -std::numeric_limits<double>::infinity();
  Sum sum, far, weights;
  for (double x : l) top = std::fmax(top, x);
  for (double x : l) sum += std::exp(x - top);
  const auto w = [&](int64_t i) { return weight ? weight[i] : 1; };
  for (int64_t i = 0; smoothing > 0 && i < n; i++) far += w(i) * (top - l[i]), weights += w(i);
  const double spread = std::log(sum), lse = top + spread, own = w(target), share = smoothing > 0 ? smoothing / static_cast<double>(n) : 0;
  double loss = (1 - smoothing) * own * (spread + (top - l[target])) + z * own * lse * lse;
  if (smoothing > 0) loss += share * (weights * spread + far);
  const double all = (1 - smoothing) * own + share * weights + 2 * z * own * lse;
  for (int64_t i = 0; dlogits && i < n; i++) {
    double d = std::exp(l[i] - top) / sum * all - (i == target ? (1 - smoothing) * own : 0);
    if (smoothing > 0) d -= share * w(i);
    if (cap > 0) d *= 1 - l[i] / cap * (l[i] / cap);
    dlogits[i] = scale * d;
  }
  return loss;
}

inline void forward_reference(const Call& c) {
  const int64_t rows = c.dim("B"), n = c.dim("V");
  const auto* logits = static_cast<const double*>(c.data("logits"));
  const auto* weight = static_cast<const double*>(c.data("weight"));
  auto* dlogits = static_cast<double*>(c.data("dlogits"));
  double divisor = 1;
  Sum total;
  if (c.has("divisor")) {
    divisor = *static_cast<const double*>(c.data("divisor"));
  } else if (c.choice("reduction") == 0) {  // mean
    Sum counted;
    for (int64_t r = 0; r < rows; r++)
      if (const int64_t t = target_at(c, r); t != c.choice("ignore_index") && t >= 0 && t < n) counted += weight ? weight[t] : 1;
    divisor = counted;
  }
  for (int64_t r = 0; r < rows; r++)
    total += row_reference(c, logits + r * n, target_at(c, r), 1 / divisor, dlogits ? dlogits + r * n : nullptr);
  *static_cast<double*>(c.data("loss")) = total / divisor;
}

inline void unreduced_reference(const Call& c) {
  const int64_t n = c.dim("V");
  auto* dlogits = static_cast<double*>(c.data("dlogits"));
  for (int64_t r = 0; r < c.dim("B"); r++)
    static_cast<double*>(c.data("loss"))[r] =
        row_reference(c, static_cast<const double*>(c.data("logits")) + r * n, target_at(c, r), 1, dlogits ? dlogits + r * n : nullptr);
}

// dlogits is scaled in place; a zero stays zero whatever it is multiplied with.
inline void backward_reference(const Call& c) {
  auto* d = static_cast<double*>(c.data("dlogits"));
  const double up = *static_cast<const double*>(c.data("dloss"));
  for (int64_t i = 0; i < c.dim("B") * c.dim("V"); i++) d[i] = d[i] == 0 ? d[i] : d[i] * up;
}

inline void unreduced_backward_reference(const Call& c) {
  auto* d = static_cast<double*>(c.data("dlogits"));
  const int64_t n = c.dim("V");
  for (int64_t i = 0; i < c.dim("B") * n; i++) d[i] = d[i] == 0 ? d[i] : d[i] * static_cast<const double*>(c.data("dloss"))[i / n];
}

}  // namespace kw::ops::cross_entropy
