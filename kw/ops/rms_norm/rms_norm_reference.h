// Truth in double, written as the formula: every floating tensor is f64 and contiguous.
#pragma once
#include <cmath>

#include "kw/core/room.h"

namespace kw::ops::rms_norm {

inline void forward_reference(const Call& c) {
  const auto* x = static_cast<const double*>(c.data("x"));
  const auto* weight = static_cast<const double*>(c.data("weight"));
  auto* y = static_cast<double*>(c.data("y"));
  const int64_t rows = c.dim("B"), n = c.dim("N");
  for (int64_t row = 0; row < rows; row++, x += n, y += n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += x[i] * x[i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + c.attr("eps"));
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * scale * (weight ? weight[i] : 1);
  }
}

inline void backward_reference(const Call& c) {
  const auto* dy = static_cast<const double*>(c.data("dy"));
  const auto* x = static_cast<const double*>(c.data("x"));
  const auto* weight = static_cast<const double*>(c.data("weight"));
  auto* dx = static_cast<double*>(c.data("dx"));
  auto* dweight = static_cast<double*>(c.data("dweight"));
  const int64_t rows = c.dim("B"), n = c.dim("N");
  for (int64_t i = 0; dweight && i < n; i++) dweight[i] = 0;
  for (int64_t row = 0; row < rows; row++, dy += n, x += n, dx += n) {
    double squares = 0, products = 0;
    for (int64_t i = 0; i < n; i++) {
      squares += x[i] * x[i];
      products += x[i] * dy[i] * (weight ? weight[i] : 1);
    }
    const double r = 1 / std::sqrt(squares / static_cast<double>(n) + c.attr("eps"));
    for (int64_t i = 0; i < n; i++) {
      dx[i] = r * (dy[i] * (weight ? weight[i] : 1) - x[i] * r * r * products / static_cast<double>(n));
      if (dweight) dweight[i] += dy[i] * x[i] * r;
    }
  }
}

}  // namespace kw::ops::rms_norm
