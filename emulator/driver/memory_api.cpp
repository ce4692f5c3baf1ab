// Memory: allocations, copies, fills. The asynchronous ones are finished on return.
#include <cstdlib>
#include <new>
#include <set>

#include "emulator/driver/driver.h"
#include "emulator/engine/memory.h"

using namespace kwemu;
namespace {
std::set<void*> host_allocations;

CUresult to_device(CUdeviceptr to, const void* from, size_t bytes) {
  if (!bytes) return CUDA_SUCCESS;
  if (!from || !inside(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  memcpy((void*)to, from, bytes);
  host_wrote(to, bytes);
  return CUDA_SUCCESS;
}
CUresult to_host(void* to, CUdeviceptr from, size_t bytes) {
  if (!bytes) return CUDA_SUCCESS;
  if (!to || !inside(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  host_reads(from, bytes);
  memcpy(to, (void*)from, bytes);
  return CUDA_SUCCESS;
}
CUresult on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (!bytes) return CUDA_SUCCESS;
  if (!inside(to, bytes) || !inside(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  memmove((void*)to, (void*)from, bytes);
  device_copied(to, from, bytes);
  return CUDA_SUCCESS;
}
CUresult any_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  bool to_gpu = find_region(to) != nullptr, from_gpu = find_region(from) != nullptr;
  if (to_gpu) return from_gpu ? on_device(to, from, bytes) : to_device(to, (void*)from, bytes);
  if (from_gpu) return to_host((void*)to, from, bytes);
  memmove((void*)to, (void*)from, bytes);
  return CUDA_SUCCESS;
}
template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count) {
  if (!count) return CUDA_SUCCESS;
  if (to % sizeof(T) || !inside(to, count * sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  if (value == 0) {
    zero_fill(to, count * sizeof(T));
  } else {
    for (size_t i = 0; i < count; i++) ((T*)to)[i] = value;
  }
  host_wrote(to, count * sizeof(T));
  return CUDA_SUCCESS;
}
}  // namespace

KWEMU_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return with_context([&] {
    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    Region* r = allocate(bytes);
    if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = r->lo;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  return with_context([&] { return !address || release(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}
KWEMU_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) { return cuMemAlloc_v2(address, bytes); }
KWEMU_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree_v2(address); }
KWEMU_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return with_context([&] {
    if (free_bytes) *free_bytes = kTotalMemory - allocated_bytes();
    if (total) *total = kTotalMemory;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return with_context([&] {
    Region* r = find_region(address);
    if (!r) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = r->lo;
    if (bytes) *bytes = r->hi - r->lo;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuMemAllocHost_v2(void** address, size_t bytes) {
  return with_context([&] {
    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    void* p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    host_allocations.insert(p);
    *address = p;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) { return cuMemAllocHost_v2(address, bytes); }
KWEMU_EXPORT CUresult cuMemFreeHost(void* address) {
  return with_context([&] {
    if (!host_allocations.erase(address)) return CUDA_ERROR_INVALID_VALUE;
    free(address);
    return CUDA_SUCCESS;
  });
}

KWEMU_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t n) {
  return with_context([&] { return to_device(to, from, n); });
}
KWEMU_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t n) {
  return with_context([&] { return to_host(to, from, n); });
}
KWEMU_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return with_context([&] { return on_device(to, from, n); });
}
KWEMU_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return with_context([&] { return any_copy(to, from, n); });
}
KWEMU_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t n, CUstream) { return cuMemcpyHtoD_v2(to, from, n); }
KWEMU_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t n, CUstream) { return cuMemcpyDtoH_v2(to, from, n); }
KWEMU_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) { return cuMemcpyDtoD_v2(to, from, n); }
KWEMU_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) { return cuMemcpy(to, from, n); }
KWEMU_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return with_context([&] { return fill<u8>(to, value, count); });
}
KWEMU_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return with_context([&] { return fill<u16>(to, value, count); });
}
KWEMU_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return with_context([&] { return fill<u32>(to, value, count); });
}
KWEMU_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream) { return cuMemsetD8_v2(to, value, n); }
KWEMU_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream) { return cuMemsetD16_v2(to, value, n); }
KWEMU_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream) { return cuMemsetD32_v2(to, value, n); }

KWEMU_EXPORT CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return with_context([&] {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    Region* r = find_region(address);
    bool host = host_allocations.count((void*)address) > 0;
    if (!r && !host) return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext*)value = primary_context();
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned*)value = r ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr*)value = address;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host) return CUDA_ERROR_INVALID_VALUE;
        *(void**)value = (void*)address;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int*)value = 0;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr*)value = r ? r->lo : address;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t*)value = r ? r->hi - r->lo : 0;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned*)value = 0;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  });
}
