// Truth in double, written as the formula with its limits: every floating tensor is f64 and contiguous.
#pragma once
#include <cmath>

#include "kw/core/room.h"

namespace kw::ops::swiglu {

struct SiluReference {
  double value, slope;
  explicit SiluReference(double g) {
    const double s = 1 / (1 + std::exp(-g));
    if (std::isinf(g)) {  // the limits
      value = g > 0 ? g : -0.0, slope = g > 0 ? 1 : 0;
    } else {
      value = g * s, slope = s * (1 + g * (1 / (1 + std::exp(g))));  // 1 - s without its cancellation
    }
  }
};

inline void forward_reference(const Call& c) {
  const auto *gate = static_cast<const double*>(c.data("gate")), *up = static_cast<const double*>(c.data("up"));
  auto* y = static_cast<double*>(c.data("y"));
  for (int64_t i = 0; i < c.dim("B") * c.dim("N"); i++) y[i] = SiluReference(gate[i]).value * up[i];
}

inline void backward_reference(const Call& c) {
  const auto *dy = static_cast<const double*>(c.data("dy")), *gate = static_cast<const double*>(c.data("gate"));
  const auto* up = static_cast<const double*>(c.data("up"));
  auto *dgate = static_cast<double*>(c.data("dgate")), *dup = static_cast<double*>(c.data("dup"));
  for (int64_t i = 0; i < c.dim("B") * c.dim("N"); i++) {
    const SiluReference silu(gate[i]);
    dgate[i] = dy[i] * up[i] * silu.slope;
    dup[i] = dy[i] * silu.value;
  }
}

}  // namespace kw::ops::swiglu
