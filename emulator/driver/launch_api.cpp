// Kernels: attributes, occupancy, launches. A launch runs at the call and returns what its detectors found.
#include <algorithm>

#include "emulator/driver/driver.h"

using namespace kwemu;
namespace {
CUresult kernel_attribute(int* value, CUfunction_attribute attribute, const void* handle) {
  Kernel* k = known_kernel(handle);
  if (!k) return CUDA_ERROR_INVALID_HANDLE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = (int)k->module->static_shared;
      break;  // of the whole module
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = (int)k->max_dynamic;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;  // a host library has none to count
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = (int)k->module->arch;
      break;
    default:
      *value = 0;
      break;
  }
  return CUDA_SUCCESS;
}
CUresult set_kernel_attribute(const void* handle, CUfunction_attribute attribute, int value) {
  Kernel* k = known_kernel(handle);
  if (!k) return CUDA_ERROR_INVALID_HANDLE;
  switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || (u64)value + k->module->static_shared > max_shared_per_block(device_model.arch)) return CUDA_ERROR_INVALID_VALUE;
      k->max_dynamic = (u32)value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult check_config(const Kernel& k, const LaunchConfig& c) {
  u64 threads = 1;
  for (int i = 0; i < 3; i++) {
    if (!c.grid[i] || !c.block[i] || c.block[i] > (i == 2 ? 64u : 1024u)) return CUDA_ERROR_INVALID_VALUE;
    if (c.grid[i] > (i ? 65535u : 0x7fffffffu)) return CUDA_ERROR_INVALID_VALUE;
    threads *= c.block[i];
  }
  if (threads > 1024 || c.shared_bytes > k.max_dynamic) return CUDA_ERROR_INVALID_VALUE;
  if (c.cluster > 1 && device_model.arch < 90) return CUDA_ERROR_NOT_SUPPORTED;
  if (c.cluster > 16 || c.grid[0] % c.cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction function, const LaunchConfig& config, void** params, void** extra) {
  Kernel* k = known_kernel(function);
  if (!k) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult r = check_config(*k, config)) return r;
  u32 count = k->entry->parameter_count;
  std::vector<void*> args(count + 1);
  if (extra) {  // one packed buffer
    char* buffer = nullptr;
    size_t bytes = 0;
    for (void** e = extra; *e != CU_LAUNCH_PARAM_END; e += 2) {
      if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = (char*)e[1];
      if (e[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(size_t*)e[1];
    }
    for (u32 i = 0; i < count; i++) {
      const kwemu_parameter& p = k->entry->parameters[i];
      if (!buffer || p.offset + p.bytes > bytes) return CUDA_ERROR_INVALID_VALUE;
      args[i] = buffer + p.offset;
    }
  } else {
    for (u32 i = 0; i < count; i++) {
      if (!params || !params[i]) return CUDA_ERROR_INVALID_VALUE;
      args[i] = params[i];
    }
  }
  return (CUresult)run_launch(*k, config, args.data());
}
}  // namespace

KWEMU_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                     unsigned shared_bytes, CUstream, void** params, void** extra) {
  return with_context([&] {
    LaunchConfig c{{gx, gy, gz}, {bx, by, bz}, shared_bytes};
    return launch(function, c, params, extra);
  });
}
KWEMU_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  return with_context([&] {
    if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
    LaunchConfig c{{config->gridDimX, config->gridDimY, config->gridDimZ},
                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                   config->sharedMemBytes};
    for (unsigned i = 0; i < config->numAttrs; i++) {
      const CUlaunchAttribute& a = config->attrs[i];
      if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        if (a.value.clusterDim.y > 1 || a.value.clusterDim.z > 1) return CUDA_ERROR_NOT_SUPPORTED;
        c.cluster = a.value.clusterDim.x ? a.value.clusterDim.x : 1;
      } else if (a.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        c.cooperative = a.value.cooperative != 0;
      }  // the others change when a kernel runs, not what it does
    }
    return launch(function, c, params, extra);
  });
}
KWEMU_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                                unsigned bz, unsigned shared_bytes, CUstream, void** params) {
  return with_context([&] {
    LaunchConfig c{{gx, gy, gz}, {bx, by, bz}, shared_bytes, 1, true};
    return launch(function, c, params, nullptr);
  });
}
KWEMU_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return with_context([&] { return kernel_attribute(value, attribute, function); });
}
KWEMU_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return with_context([&] { return set_kernel_attribute(function, attribute, value); });
}
KWEMU_EXPORT CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return guarded([&] { return kernel_attribute(value, attribute, kernel); });
}
KWEMU_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return guarded([&] { return set_kernel_attribute(kernel, attribute, value); });
}
KWEMU_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return guarded([&] {
    Kernel* k = known_kernel(kernel);
    if (!k) return CUDA_ERROR_INVALID_HANDLE;
    if (index >= k->entry->parameter_count) return CUDA_ERROR_INVALID_VALUE;
    if (offset) *offset = k->entry->parameters[index].offset;
    if (bytes) *bytes = k->entry->parameters[index].bytes;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return cuKernelGetParamInfo((CUkernel)function, index, offset, bytes);
}
KWEMU_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads, size_t dynamic_bytes) {
  return with_context([&] {
    Kernel* k = known_kernel(function);
    if (!k) return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || threads <= 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
    u64 shared = k->module->static_shared + dynamic_bytes, n = threads_per_sm(device_model.arch) / ((threads + 31) / 32 * 32);
    if (shared) n = std::min(n, shared_per_sm(device_model.arch) / shared);
    *blocks = (int)std::min<u64>(n, 32);
    return CUDA_SUCCESS;
  });
}
