// Truth in double, written as the formula: every floating tensor is f64 and contiguous.
#pragma once
#include <cmath>
#include <vector>

#include "kw/core/room.h"
#include "kw/core/sum.h"

namespace kw::ops::rms_norm {

template <bool adds>
void forward_reference(const Call& c) {
  const auto* x = static_cast<const double*>(c.data("x"));
  const auto* residual = adds ? static_cast<const double*>(c.data("residual")) : nullptr;
  const auto* weight = static_cast<const double*>(c.data("weight"));
  auto* y = static_cast<double*>(c.data("y"));
  auto* total = adds ? static_cast<double*>(c.data("total")) : nullptr;
  const int64_t rows = c.dim("B"), n = c.dim("N");
  for (int64_t row = 0; row < rows; row++) {
    const int64_t first = row * n;
    Sum squares;
    for (int64_t i = first; i < first + n; i++) {
      const double v = x[i] + (adds ? residual[i] : 0);
      squares += v * v;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + c.attr("eps"));
    for (int64_t i = first; i < first + n; i++) {
      const double v = x[i] + (adds ? residual[i] : 0);
      if (adds) total[i] = v;
      y[i] = v * scale * ((weight ? weight[i - first] : 1) + c.attr("offset"));
    }
  }
}

template <bool adds>
void backward_reference(const Call& c) {
  const auto* dy = static_cast<const double*>(c.data("dy"));
  const auto* dtotal = adds ? static_cast<const double*>(c.data("dtotal")) : nullptr;
  const auto* x = static_cast<const double*>(c.data(adds ? "total" : "x"));
  const auto* weight = static_cast<const double*>(c.data("weight"));
  auto* dx = static_cast<double*>(c.data("dx"));
  auto* dweight = static_cast<double*>(c.data("dweight"));
  const int64_t rows = c.dim("B"), n = c.dim("N");
  std::vector<Sum> columns(dweight ? static_cast<size_t>(n) : 0);
  for (int64_t row = 0; row < rows; row++) {
    const int64_t first = row * n;
    const auto g = [&](int64_t i) { return dy[i] * ((weight ? weight[i - first] : 1) + c.attr("offset")); };
    Sum squares, products;
    for (int64_t i = first; i < first + n; i++) {
      squares += x[i] * x[i];
      products += x[i] * g(i);
    }
    const double r = 1 / std::sqrt(squares / static_cast<double>(n) + c.attr("eps"));
    for (int64_t i = first; i < first + n; i++) {
      dx[i] = r * (g(i) - x[i] * r * r * products / static_cast<double>(n)) + (adds ? dtotal[i] : 0);
      if (dweight) columns[static_cast<size_t>(i - first)] += dy[i] * x[i] * r;
    }
  }
  for (size_t i = 0; i < columns.size(); i++) dweight[i] = columns[i];
}

}  // namespace kw::ops::rms_norm
