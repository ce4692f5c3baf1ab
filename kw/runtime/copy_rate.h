// The ceiling of memory-bound kernels: how fast this device copies.
#pragma once
#include <cstddef>
#include <string>

namespace kw {

struct CopyRate {              // bytes read plus bytes written, per second, over 1e9
  double kernel_gb_per_s = 0;  // the best of a few plain 16-byte copy kernels
  double memcpy_gb_per_s = 0;  // cuMemcpyDtoD
  std::string kernel;          // which one won
  double best() const { return kernel_gb_per_s > memcpy_gb_per_s ? kernel_gb_per_s : memcpy_gb_per_s; }
};

// Copies `bytes` (at least 16; 512 MiB is far beyond every L2) and checks that they arrived. Medians of `repeats` runs each, the
// destination overwritten in between. Allocates twice `bytes`. On the emulator the number means nothing.
CopyRate measure_copy_rate(int device, size_t bytes = size_t{512} << 20, int repeats = 11);

}  // namespace kw
