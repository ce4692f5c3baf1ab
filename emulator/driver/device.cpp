// The one emulated device: its facts and its primary context.
#include <dlfcn.h>

#include <cstdlib>

#include "emulator/driver/driver.h"
#include "emulator/engine/memory.h"

namespace kwemu {
std::recursive_mutex driver_lock;
bool driver_started = false;
thread_local CUcontext context_now = nullptr;
DeviceModel device_model;

namespace {
int primary_users = 0;
char primary;  // its address is the handle
thread_local std::vector<CUcontext> context_stack;
}  // namespace

CUcontext primary_context() { return (CUcontext)&primary; }
bool context_is_live() { return primary_users > 0; }

// CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
u32 max_shared_per_block(u32 arch) {
  if (arch < 80) return 64 * 1024;
  if (arch == 80 || arch == 87) return 163 * 1024;
  if (arch == 86 || arch == 89 || arch >= 120) return 99 * 1024;
  return 227 * 1024;
}
u32 shared_per_sm(u32 arch) { return max_shared_per_block(arch) + (arch < 80 ? 0 : 1024); }
u32 threads_per_sm(u32 arch) { return arch < 80 ? 1024 : arch == 86 || arch == 89 || arch >= 120 ? 1536 : 2048; }
}  // namespace kwemu

using namespace kwemu;

KWEMU_EXPORT CUresult cuInit(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  if (driver_started) return CUDA_SUCCESS;
  if (!start_memory()) return CUDA_ERROR_OUT_OF_MEMORY;
  driver_started = true;
  return CUDA_SUCCESS;
}
KWEMU_EXPORT CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
KWEMU_EXPORT CUresult cuDeviceGetCount(int* count) {
  return guarded([&] {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return guarded([&] {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return guarded([&] {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!name || size <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)size, "emulated GPU (sm_%u)", device_model.arch);
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return guarded([&] {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, "kwemu-device-000", 16);
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return guarded([&] {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = kTotalMemory;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return guarded([&] {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    u32 arch = device_model.arch;
    switch ((int)attribute) {
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = (int)arch / 10;
        break;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = (int)arch % 10;
        break;
      case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = (int)device_model.sm_count;
        break;
      case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        *value = 1024;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = 64;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = 0x7fffffff;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        *value = 65535;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = (int)threads_per_sm(arch);
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = arch >= 90 || arch == 80 ? 32 : 16;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 48 * 1024;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = (int)max_shared_per_block(arch);
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = (int)shared_per_sm(arch);
        break;
      case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        *value = arch < 80 ? 0 : 1024;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        *value = 65536;
        break;
      case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 32 << 20;
        break;
      case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        *value = 65536;
        break;
      case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        *value = 1'000'000;
        break;
      case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *value = 4096;
        break;
      case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        *value = arch >= 90;
        break;
      case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        *value = 1;
        break;
      default:
        *value = 0;
        break;  // a feature that the emulator lacks
    }
    return CUDA_SUCCESS;
  });
}

// ---- contexts -----------------------------------------------------------------------------------------------------------------
KWEMU_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return guarded([&] {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    primary_users++;
    *context = primary_context();
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return guarded([&] {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!primary_users) return CUDA_ERROR_INVALID_CONTEXT;
    primary_users--;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return guarded([&] {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (flags) *flags = 0;
    if (active) *active = primary_users > 0;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  return guarded([&] {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = context_now;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  return guarded([&] {
    if (context && context != primary_context()) return CUDA_ERROR_INVALID_CONTEXT;
    context_now = context;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return guarded([&] {
    if (context != primary_context()) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack.push_back(context_now);
    context_now = context;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return guarded([&] {
    if (!context_now) return CUDA_ERROR_INVALID_CONTEXT;
    if (context) *context = context_now;
    context_now = context_stack.empty() ? nullptr : context_stack.back();
    if (!context_stack.empty()) context_stack.pop_back();
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  return with_context([&] {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuCtxSynchronize() {
  return with_context([] { return CUDA_SUCCESS; });
}

// ---- names ----------------------------------------------------------------------------------------------------------------------
namespace {
const struct {
  CUresult code;
  const char *name, *text;
} kErrors[] = {
#define KWEMU_ERROR(name, text) {name, #name, text}
    KWEMU_ERROR(CUDA_SUCCESS, "no error"),
    KWEMU_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    KWEMU_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    KWEMU_ERROR(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called"),
    KWEMU_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    KWEMU_ERROR(CUDA_ERROR_INVALID_IMAGE, "not a module of this emulator"),
    KWEMU_ERROR(CUDA_ERROR_INVALID_CONTEXT, "no context is current, or it was released"),
    KWEMU_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "the module was made for another architecture"),
    KWEMU_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid handle"),
    KWEMU_ERROR(CUDA_ERROR_NOT_FOUND, "name not found"),
    KWEMU_ERROR(CUDA_ERROR_NOT_READY, "not ready"),
    KWEMU_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal memory access (the emulator's report is on stderr)"),
    KWEMU_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the kernel did not end (the emulator's report is on stderr)"),
    KWEMU_ERROR(CUDA_ERROR_LAUNCH_FAILED, "a detector found a fault in the kernel (the emulator's report is on stderr)"),
    KWEMU_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address (the emulator's report is on stderr)"),
    KWEMU_ERROR(CUDA_ERROR_ASSERT, "device-side assertion failed (the emulator's report is on stderr)"),
    KWEMU_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "more threads at once than the emulator runs"),
    KWEMU_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
    KWEMU_ERROR(CUDA_ERROR_NOT_SUPPORTED, "not supported by the emulator"),
    KWEMU_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
}  // namespace
KWEMU_EXPORT CUresult cuGetErrorName(CUresult code, const char** name) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  for (auto& e : kErrors)
    if (e.code == code) return *name = e.name, CUDA_SUCCESS;
  return *name = nullptr, CUDA_ERROR_INVALID_VALUE;
}
KWEMU_EXPORT CUresult cuGetErrorString(CUresult code, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  for (auto& e : kErrors)
    if (e.code == code) return *text = e.text, CUDA_SUCCESS;
  return *text = nullptr, CUDA_ERROR_INVALID_VALUE;
}
KWEMU_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult* status) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  static void* self = [] {
    Dl_info info = {};
    dladdr((void*)&cuInit, &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  *function = self ? dlsym(self, (std::string(name) + "_v2").c_str()) : nullptr;
  if (!*function && self) *function = dlsym(self, name);
  if (status) *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
