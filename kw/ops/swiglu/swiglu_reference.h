// Truth in double, written as the formula with its limits: every floating tensor is f64 and contiguous.
#pragma once
#include <cmath>
#include <numbers>

#include "kw/core/room.h"

namespace kw::ops::swiglu {

struct ActivationReference {  // a(g) and a'(g)
  double value, slope;
  ActivationReference(int64_t activation, double g) {
    const double width = activation == 0 ? 1 : std::sqrt(8 / std::numbers::pi), cube = activation == 0 ? 0 : 0.044715;
    const double z = width * (g + cube * g * g * g), s = 1 / (1 + std::exp(-z));
    if (std::isinf(g) || std::isinf(z)) {  // the limits
      value = g > 0 ? g : -0.0, slope = g > 0 ? 1 : 0;
    } else {
      value = g * s, slope = s * (1 + g * width * (1 + 3 * cube * g * g) * (1 / (1 + std::exp(z))));  // 1 - s without its cancellation
    }
  }
};

// Rows of n; gate and up may be halves of rows of 2 n.
inline void forward_rows(const Call& c, const double* gate, const double* up, int64_t step, double* y) {
  const int64_t n = c.dim("N");
  for (int64_t row = 0; row < c.dim("B"); row++, gate += step, up += step, y += n)
    for (int64_t i = 0; i < n; i++) y[i] = ActivationReference(c.choice("activation"), gate[i]).value * up[i];
}
inline void backward_rows(const Call& c, const double* gate, const double* up, double* dgate, double* dup, int64_t step) {
  const int64_t n = c.dim("N");
  const auto* dy = static_cast<const double*>(c.data("dy"));
  for (int64_t row = 0; row < c.dim("B"); row++, dy += n, gate += step, up += step, dgate += step, dup += step)
    for (int64_t i = 0; i < n; i++) {
      const ActivationReference a(c.choice("activation"), gate[i]);
      dgate[i] = dy[i] * up[i] * a.slope;
      dup[i] = dy[i] * a.value;
    }
}

inline double* numbers(const Call& c, const char* name) { return static_cast<double*>(c.data(name)); }

inline void forward_reference(const Call& c) { forward_rows(c, numbers(c, "gate"), numbers(c, "up"), c.dim("N"), numbers(c, "y")); }
inline void backward_reference(const Call& c) {
  backward_rows(c, numbers(c, "gate"), numbers(c, "up"), numbers(c, "dgate"), numbers(c, "dup"), c.dim("N"));
}
inline void packed_forward_reference(const Call& c) {
  const double* x = numbers(c, "x");
  forward_rows(c, x, x + c.dim("N"), 2 * c.dim("N"), numbers(c, "y"));
}
inline void packed_backward_reference(const Call& c) {
  const double* x = numbers(c, "x");
  double* dx = numbers(c, "dx");
  backward_rows(c, x, x + c.dim("N"), dx, dx + c.dim("N"), 2 * c.dim("N"));
}

}  // namespace kw::ops::swiglu
