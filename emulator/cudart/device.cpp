// The runtime's device, error and kernel functions.
#include <algorithm>
#include <cstdio>

#include "emulator/cudart/cudart.h"
#include "emulator/engine/memory.h"

namespace kwemu {
thread_local cudaError_t last_error = cudaSuccess;

bool start_runtime() {
  if (context_now) return true;
  CUcontext context = nullptr;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0)) return false;
  context_now = context;
  return true;
}
}  // namespace kwemu

using namespace kwemu;
namespace {
int attribute(CUdevice_attribute a) {
  int value = 0;
  cuDeviceGetAttribute(&value, a, 0);
  return value;
}
cudaError_t nothing() {
  return runtime([] { return cudaSuccess; });
}
}  // namespace

KWEMU_EXPORT cudaError_t cudaSetDevice(int device) {
  return runtime([&] { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
KWEMU_EXPORT cudaError_t cudaGetDevice(int* device) {
  return runtime([&] { return device ? (*device = 0, cudaSuccess) : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaGetDeviceCount(int* count) {
  return runtime([&] { return count ? (*count = 1, cudaSuccess) : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return runtime([&] {
    if (!p) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *p = {};
    cuDeviceGetName(p->name, sizeof p->name, 0);
    p->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p->maxBlocksPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    p->sharedMemPerBlock = 48 * 1024;
    p->sharedMemPerBlockOptin = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    p->sharedMemPerMultiprocessor = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    p->totalConstMem = 65536;
    p->totalGlobalMem = kTotalMemory;
    p->memPitch = 0x7fffffff;
    p->textureAlignment = 512;
    p->memoryBusWidth = 4096;
    p->cooperativeLaunch = p->managedMemory = p->concurrentManagedAccess = p->unifiedAddressing = p->canMapHostMemory = 1;
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return runtime([&] {  // the driver's numbers
    if (which == cudaDevAttrCooperativeLaunch && value) return *value = 1, CUDA_SUCCESS;
    return cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(which), device);
  });
}
KWEMU_EXPORT cudaError_t cudaDriverGetVersion(int* version) {
  return runtime([&] { return cuDriverGetVersion(version); });
}
KWEMU_EXPORT cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
KWEMU_EXPORT cudaError_t cudaDeviceSynchronize() { return nothing(); }
KWEMU_EXPORT cudaError_t cudaDeviceReset() { return nothing(); }
KWEMU_EXPORT cudaError_t cudaSetDeviceFlags(unsigned) { return nothing(); }
KWEMU_EXPORT cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return nothing(); }
KWEMU_EXPORT cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return nothing(); }
KWEMU_EXPORT cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  return runtime([&] { return can ? (*can = 0, cudaSuccess) : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaProfilerStart() { return nothing(); }
KWEMU_EXPORT cudaError_t cudaProfilerStop() { return nothing(); }

KWEMU_EXPORT cudaError_t cudaGetLastError() {
  cudaError_t e = last_error;
  last_error = cudaSuccess;
  return e;
}
KWEMU_EXPORT cudaError_t cudaPeekAtLastError() { return last_error; }
namespace {
const struct {
  cudaError_t error;
  const char *name, *text;
} kErrors[] = {{cudaSuccess, "cudaSuccess", "no error"},
               {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
               {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
               {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
               {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
               {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
               {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
               {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
               {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
               {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
               {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
               {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
               {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
               {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
               {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"}};
}  // namespace
KWEMU_EXPORT const char* cudaGetErrorName(cudaError_t error) {
  for (auto& e : kErrors)
    if (e.error == error) return e.name;
  return "unrecognized error code";
}
KWEMU_EXPORT const char* cudaGetErrorString(cudaError_t error) {
  for (auto& e : kErrors)
    if (e.error == error) return e.text;
  return "unrecognized error code";
}

// A kernel is a host function here: what the runtime knows of it is what it knows of the program.
KWEMU_EXPORT cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute which, int value) {
  return runtime([&] {
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    return value >= 0 && value <= static_cast<int>(max_shared_per_block(device_model.arch)) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
KWEMU_EXPORT cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return nothing(); }
KWEMU_EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void*) {
  return runtime([&] {
    if (!a) return cudaErrorInvalidValue;
    *a = {};
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    a->binaryVersion = a->ptxVersion = static_cast<int>(device_model.arch);
    a->maxDynamicSharedSizeBytes = 48 * 1024;
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t shared_bytes) {
  return runtime([&] {
    if (!blocks || threads <= 0 || threads > 1024) return cudaErrorInvalidValue;
    u64 n = threads_per_sm(device_model.arch) / static_cast<u32>((threads + 31) / 32 * 32);
    if (shared_bytes) n = std::min<u64>(n, shared_per_sm(device_model.arch) / shared_bytes);
    *blocks = static_cast<int>(std::min<u64>(n, 32));
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                                size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}
