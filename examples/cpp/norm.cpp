// RMSNorm of two rows on the CPU. On a GPU the call is the same, with device pointers, KW_CUDA and your stream.
#include <cmath>
#include <cstdio>
#include <vector>

#include "kw/ops/rms_norm/rms_norm.h"

int main() {
  const int64_t rows = 2, length = 1000;
  std::vector<float> x(rows * length), weight(length), y(rows * length);
  for (int64_t i = 0; i < rows * length; i++) x[i] = std::sin(0.1f * static_cast<float>(i));
  for (int64_t i = 0; i < length; i++) weight[i] = 1 + 0.001f * static_cast<float>(i);

  kw::Tensor tx(x.data(), KW_F32, {rows, length}), tw(weight.data(), KW_F32, {length}), ty(y.data(), KW_F32, {rows, length});
  kw::rms_norm(nullptr, tx, &tw, ty, 1e-6);

  double worst = 0;
  for (int64_t r = 0; r < rows; r++) {
    double squares = 0;
    for (int64_t i = 0; i < length; i++) squares += double(x[r * length + i]) * x[r * length + i];
    for (int64_t i = 0; i < length; i++) {
      double truth = x[r * length + i] / std::sqrt(squares / double(length) + 1e-6) * weight[i];
      worst = std::fmax(worst, std::fabs(y[r * length + i] - truth));
    }
  }
  std::printf("largest difference from a sum in double: %.2g\n", worst);
  if (!(worst < 1e-6)) return 1;

  // What does not fit is a sentence, and nothing is written.
  kw::Tensor short_weight(weight.data(), KW_F32, {length - 1});
  try {
    kw::rms_norm(nullptr, tx, &short_weight, ty);
  } catch (const kw::Error& error) {
    std::printf("refused: %s\n", error.what());
    return 0;
  }
  std::puts("a weight of the wrong length was accepted");
  return 1;
}
