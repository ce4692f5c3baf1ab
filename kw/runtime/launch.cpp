#include "kw/runtime/launch.h"

namespace kw {
namespace {

constexpr uint32_t max_grid_x = 0x7fffffff, max_grid_yz = 65535, max_threads = 1024, max_cluster = 16, portable_cluster = 8;

void check_launch(const char* op, const kw_launch& l, const kw_choice& choice, const kw_device_facts& gpu) {
  auto refuse = [&](kw_status status, const std::string& what) {
    throw Error(status, format("%s: the launch of %s %s", op, choice.kernels[l.kernel].name, what.c_str()));
  };
  if (l.grid[0] > max_grid_x || l.grid[1] > max_grid_yz || l.grid[2] > max_grid_yz)
    refuse(KW_ERROR_UNSUPPORTED, format("needs a grid of %u x %u x %u blocks; the hardware takes %u x %u x %u", l.grid[0], l.grid[1],
                                        l.grid[2], max_grid_x, max_grid_yz, max_grid_yz));
  uint64_t threads = uint64_t{l.block[0]} * l.block[1] * l.block[2];
  if (threads < 1 || threads > max_threads)
    refuse(KW_ERROR_CONTRACT, format("has blocks of %llu threads; 1 to 1024 are possible", static_cast<unsigned long long>(threads)));
  if (l.shared_bytes > static_cast<uint32_t>(gpu.shared_per_block))
    refuse(KW_ERROR_UNSUPPORTED,
           format("needs %u bytes of shared memory; %s has %d per block", l.shared_bytes, gpu.name, gpu.shared_per_block));
  if (l.params_bytes > KW_PARAMS_BYTES)
    refuse(KW_ERROR_CONTRACT, format("has %u bytes of parameters; %d are possible", l.params_bytes, KW_PARAMS_BYTES));
  if (l.cluster <= 1) return;
  if (gpu.arch < 90) refuse(KW_ERROR_UNSUPPORTED, format("uses clusters, which sm_%d does not have", gpu.arch));
  if (l.cluster > max_cluster || l.grid[0] % l.cluster)
    refuse(KW_ERROR_CONTRACT, format("has clusters of %u blocks on a grid of %u: at most 16, and a divisor", l.cluster, l.grid[0]));
}

// What the emulator's checker says about this launch, after as many reports as there were before it.
std::string report(const Driver& cuda, int before) {
  if (!cuda.kwemu_report || cuda.kwemu_report_count() <= before) return "";
  const char* text = cuda.kwemu_report(before);
  return text ? std::string("\n") + text : "";
}

// Attributes that a kernel needs before some launches, set once per device: each costs a driver call.
void prepare(const Driver& cuda, const Kernel& kernel, const kw_launch& launch, int device, const kw_device_facts& gpu) {
  uint64_t bit = uint64_t{1} << device;
  // A kernel has to be told when its own and the launch's shared memory are more than 48 KB together.
  if (launch.shared_bytes > 0 && !(kernel.big_shared.load(std::memory_order_relaxed) & bit)) {
    int fixed = 0;  // all that the kernel's own __shared__ arrays leave: it limits no occupancy, only the launch's own number does
    check(cuda, cuda.cuKernelGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.handle, device),
          "asking a kernel's shared memory");
    check(cuda,
          cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, gpu.shared_per_block - fixed, kernel.handle, device),
          "allowing a kernel its shared memory");
    kernel.big_shared.fetch_or(bit);
  }
  if (launch.cluster > portable_cluster && !(kernel.big_cluster.load(std::memory_order_relaxed) & bit)) {
    check(cuda, cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, kernel.handle, device),
          "allowing a kernel clusters of more than 8 blocks");
    kernel.big_cluster.fetch_or(bit);
  }
}

}  // namespace

void check_launches(const char* op, const kw_plan& plan, const kw_choice& choice, const kw_device_facts& gpu,
                    const Kernel* const* kernels) {
  if (plan.launch_count < 0 || plan.launch_count > KW_MAX_LAUNCHES)
    throw Error(KW_ERROR_CONTRACT,
                format("%s: the room planned %d launches; at most %d are possible", op, plan.launch_count, KW_MAX_LAUNCHES));
  for (int32_t i = 0; i < plan.launch_count; i++) {
    const kw_launch& l = plan.launches[i];
    if (l.kernel < 0 || l.kernel >= choice.kernel_count)
      throw Error(KW_ERROR_CONTRACT, format("%s: launch %d names kernel %d, but the room chose %d", op, i, l.kernel, choice.kernel_count));
    if (is_idle(l)) continue;
    check_launch(op, l, choice, gpu);
    if (kernels && kernels[l.kernel]->params_bytes >= 0 && kernels[l.kernel]->params_bytes != l.params_bytes)
      throw Error(KW_ERROR_CONTRACT,
                  format("%s: the kernel %s takes %lld bytes of parameters, but the room fills %u", op, choice.kernels[l.kernel].name,
                         static_cast<long long>(kernels[l.kernel]->params_bytes), l.params_bytes));
  }
}

void check_no_earlier_error(const Driver& cuda, const char* op) {
  size_t available, total;
  if (CUresult result = cuda.cuMemGetInfo(&available, &total)) throw_earlier(cuda, std::string(op) + ": not run", result);
}

void enqueue(const Driver& cuda, const char* op, const Kernel& kernel, const kw_launch& launch, int device, const kw_device_facts& gpu,
             CUstream stream) {
  prepare(cuda, kernel, launch, device, gpu);
  CUlaunchAttribute cluster;
  CUlaunchConfig config{};
  config.gridDimX = launch.grid[0], config.gridDimY = launch.grid[1], config.gridDimZ = launch.grid[2];
  config.blockDimX = launch.block[0], config.blockDimY = launch.block[1], config.blockDimZ = launch.block[2];
  config.sharedMemBytes = launch.shared_bytes;
  config.hStream = stream;
  if (launch.cluster > 1) {
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {launch.cluster, 1, 1};
    config.attrs = &cluster;
    config.numAttrs = 1;
  }
  int reports = cuda.kwemu_report_count ? cuda.kwemu_report_count() : 0;
  void* params[] = {const_cast<unsigned char*>(launch.params)};
  CUresult result = cuda.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel.handle), params, nullptr);
  if (result == CUDA_SUCCESS) return;
  if (is_sticky(result) && !cuda.synchronous) throw_earlier(cuda, std::string(op) + ": not run", result);
  throw Error(KW_ERROR_DRIVER,
              format("%s: the kernel %s %s: %s%s", op, kernel.expression.c_str(), is_sticky(result) ? "failed" : "could not be launched",
                     error_text(cuda, result).c_str(), report(cuda, reports).c_str()));
}

}  // namespace kw
