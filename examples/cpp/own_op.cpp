// Loads a room that was built outside Kernelwright and calls its op.
#include <cstdio>

#include "axpby.h"

int main() {
  if (kw_load_library(AXPBY_ROOM) != KW_OK) {
    std::puts(kw_last_error());
    return 1;
  }
  float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40}, z[4];
  kw::axpby(nullptr, kw::Tensor(x, KW_F32, {4}), kw::Tensor(y, KW_F32, {4}), kw::Tensor(z, KW_F32, {4}), 2, 0.5);
  std::printf("2 x + y / 2 = %g %g %g %g\n", z[0], z[1], z[2], z[3]);
  for (int i = 0; i < 4; i++)
    if (z[i] != 2 * x[i] + 0.5f * y[i]) return 1;
  return 0;
}
