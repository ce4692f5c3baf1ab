// Force-included before a whole CUDA program: the host's headers and the toolkit's, then what nvcc would add to them. language.h follows.
#pragma once
#define KWEMU_PROGRAM 1
#include <assert.h>
#include <crt/host_defines.h>  // ours: where the toolkit's headers found their own, __shared__ means nothing by now
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

// ---- launches: the rewriter makes kwemu_start(kwemu_config(grid, block), "kernel", [=](auto... a) { kernel(a...); }, arguments)
// ----------
struct kwemu_program_launch {
  dim3 grid, block;
  size_t shared_bytes = 0;
  unsigned cluster = 1;
  bool cooperative = false;
  const char* name = "kernel";
};
// Every GPU thread gets a copy of the arguments on its own stack, where `run` finds them.
extern "C" cudaError_t kwemu_start_kernel(const kwemu_program_launch* launch, cudaStream_t stream, void (*run)(void*),
                                          const void* arguments, size_t bytes);

struct kwemu_configured {
  kwemu_program_launch launch;
  cudaStream_t stream;
};
static inline kwemu_configured kwemu_config(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return {{grid, block, shared_bytes}, stream};
}
template <class F, class... A>
inline cudaError_t kwemu_start(kwemu_configured c, const char* name, F kernel, const A&... arguments) {
  struct Packed {
    F kernel;
    std::tuple<std::decay_t<const A>...> arguments;
  } packed{kernel, {arguments...}};
  c.launch.name = name;
  const auto run = [](void* p) {
    auto* own = static_cast<Packed*>(p);
    std::apply(own->kernel, own->arguments);
  };
  return kwemu_start_kernel(&c.launch, c.stream, run, &packed, sizeof packed);
}

// ---- what the runtime's headers give only to nvcc
// ----------------------------------------------------------------------------------------
template <class... E, class... A>
inline cudaError_t kwemu_launch_ex(const cudaLaunchConfig_t* config, void (*kernel)(E...), A&&... arguments) {
  kwemu_configured c = kwemu_config(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttribute& a = config->attrs[i];
    if (a.id == cudaLaunchAttributeClusterDimension) c.launch.cluster = a.val.clusterDim.x * a.val.clusterDim.y * a.val.clusterDim.z;
    if (a.id == cudaLaunchAttributeCooperative) c.launch.cooperative = a.val.cooperative != 0;
  }
  return kwemu_start(c, "kernel", [kernel](auto... a) { kernel(a...); }, static_cast<std::decay_t<E>>(arguments)...);
}
template <class... E>
inline cudaError_t kwemu_launch_pointers(void (*kernel)(E...), dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                         cudaStream_t stream, bool cooperative) {
  kwemu_configured c = kwemu_config(grid, block, shared_bytes, stream);
  c.launch.cooperative = cooperative;
  size_t i = 0;
  std::tuple<std::decay_t<E>...> values{*static_cast<std::decay_t<E>*>(arguments[i++])...};
  return std::apply([&](auto... v) { return kwemu_start(c, "kernel", [kernel](auto... a) { kernel(a...); }, v...); }, values);
}
// A kernel's address as void*: the rewriter puts this in place of such a cast, so that the address is enough to launch it.
extern "C" void kwemu_register_kernel(const void* kernel, cudaError_t (*start)(const void*, const cudaKernelNodeParams*));
extern "C" cudaError_t (*kwemu_kernel_starter(const void* kernel))(const void*, const cudaKernelNodeParams*);
template <class... E>
inline void* kwemu_kernel_address(void (*kernel)(E...)) {
  const auto start = [](const void* k, const cudaKernelNodeParams* p) {
    return kwemu_launch_pointers(reinterpret_cast<void (*)(E...)>(const_cast<void*>(k)), p->gridDim, p->blockDim, p->kernelParams,
                                 p->sharedMemBytes, nullptr, false);
  };
  kwemu_register_kernel(reinterpret_cast<void*>(kernel), start);
  return reinterpret_cast<void*>(kernel);
}
inline cudaError_t cudaLaunchKernel(void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                                    cudaStream_t = nullptr) {
  auto* start = kwemu_kernel_starter(kernel);
  cudaKernelNodeParams p = {};
  p.func = kernel, p.gridDim = grid, p.blockDim = block, p.kernelParams = arguments, p.sharedMemBytes = (unsigned)shared_bytes;
  return start ? start(kernel, &p) : cudaErrorInvalidDeviceFunction;
}
template <class... E>
inline cudaError_t cudaLaunchKernel(void (*kernel)(E...), dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                                    cudaStream_t stream = nullptr) {
  return kwemu_launch_pointers(kernel, grid, block, arguments, shared_bytes, stream, false);
}
template <class... E>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(E...), dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                                               cudaStream_t stream = nullptr) {
  return kwemu_launch_pointers(kernel, grid, block, arguments, shared_bytes, stream, true);
}

#define cudaLaunchKernelEx kwemu_launch_ex  // the toolkit's own hands on pointers, without their sizes

template <class T>
inline cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class T>
inline cudaError_t cudaFuncSetCacheConfig(T* kernel, cudaFuncCache config) {
  return cudaFuncSetCacheConfig(reinterpret_cast<const void*>(kernel), config);
}
template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* kernel) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T* kernel, int threads, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return cudaMemcpy(const_cast<char*>(reinterpret_cast<const volatile char*>(&symbol)) + offset, from, bytes, kind);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return cudaMemcpy(to, const_cast<char*>(reinterpret_cast<const volatile char*>(&symbol)) + offset, bytes, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** p, const T& symbol) {
  *p = const_cast<char*>(reinterpret_cast<const volatile char*>(&symbol));
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}
