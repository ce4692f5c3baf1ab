#include "kw/runtime/copy_rate.h"

#include <algorithm>
#include <cstring>

#include "kw/runtime/device.h"
#include "kw/runtime/launch.h"
#include "kw/runtime/timer.h"

namespace kw {
namespace {

// Plain loads and stores: every cache hint costs 2-5 % on an H200.
constexpr const char* copy_source = R"(
struct Params { const void* from; void* to; long long vectors; };
struct alignas(16) Vector { unsigned w[4]; };

template <int threads, int unroll>
__global__ void __launch_bounds__(threads) copy(Params p) {
  const Vector* from = static_cast<const Vector*>(p.from);
  Vector* to = static_cast<Vector*>(p.to);
  long long first = (long long)blockIdx.x * threads * unroll + threadIdx.x;
  Vector v[unroll];
#pragma unroll
  for (int i = 0; i < unroll; i++)
    if (first + i * threads < p.vectors) v[i] = from[first + i * threads];
#pragma unroll
  for (int i = 0; i < unroll; i++)
    if (first + i * threads < p.vectors) to[first + i * threads] = v[i];
}
)";

struct Params {
  const void* from;
  void* to;
  long long vectors;
};

// The first and the last 64 KiB.
void expect_copied(const DeviceBuffer& to, unsigned char byte, const std::string& by) {
  std::vector<unsigned char> got(std::min<size_t>(to.bytes(), 64 << 10));
  for (size_t offset : {size_t{0}, to.bytes() - got.size()}) {
    to.download(got.data(), got.size(), offset);
    if (std::count(got.begin(), got.end(), byte) != static_cast<std::ptrdiff_t>(got.size()))
      throw Error(KW_ERROR_INTERNAL, by + " did not copy");
  }
}

}  // namespace

CopyRate measure_copy_rate(int device, size_t bytes, int repeats) {
  bytes = std::max<size_t>(bytes / 16, 1) * 16;
  const Driver& cuda = driver();
  const kw_device_facts& gpu = device_facts(device);
  ContextGuard guard(cuda, device);
  DeviceBuffer from(device, bytes), to(device, bytes);
  from.fill(0x5a);
  EventTimer timer(device);
  auto rate = [&](const std::string& by, auto&& copy) {
    std::vector<double> seconds;
    for (int i = 0; i <= repeats; i++) {  // the first run warms up
      to.fill(0);
      double s = timer.seconds(nullptr, copy);
      if (i) seconds.push_back(s);
    }
    expect_copied(to, 0x5a, by);
    return 2e-9 * static_cast<double>(bytes) / median(seconds);
  };

  CopyRate best;
  best.memcpy_gb_per_s = rate(
      "cuMemcpyDtoD", [&] { check(cuda, cuda.cuMemcpyDtoDAsync(to.address(), from.address(), bytes, nullptr), "copying on the device"); });
  const SourceSet sources = source_set_of_text("kernelwright_copy.cuh", copy_source);
  for (auto [threads, unroll] : {std::pair{128, 1}, {256, 1}, {512, 1}, {256, 4}, {512, 2}}) {
    const Kernel& kernel = find_kernel(sources, format("copy<%d, %d>", threads, unroll), gpu.arch);
    Params params{from.data(), to.data(), static_cast<long long>(bytes / 16)};
    long long per_block = int64_t{threads} * unroll;
    kw_launch launch{};
    launch.grid[0] = static_cast<uint32_t>((params.vectors + per_block - 1) / per_block);
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.block[0] = static_cast<uint32_t>(threads);
    launch.params_bytes = sizeof params;
    std::memcpy(launch.params, &params, sizeof params);
    double here = rate(kernel.expression, [&] { enqueue(cuda, "copy", kernel, launch, device, gpu, nullptr); });
    if (here > best.kernel_gb_per_s) best.kernel_gb_per_s = here, best.kernel = kernel.expression;
  }
  return best;
}

}  // namespace kw
