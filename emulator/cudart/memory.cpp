// The runtime's memory functions.
#include "emulator/engine/memory.h"

#include <cstdlib>
#include <map>

#include "emulator/cudart/cudart.h"
#include "emulator/cudart/graph.h"

using namespace kwemu;
namespace {
cudaError_t allocate_at(void** p, size_t bytes, void* pc, bool for_host) {
  return runtime([&] {
    if (!p) return cudaErrorInvalidValue;
    if (!bytes) return *p = nullptr, cudaSuccess;
    Region* r = allocate(bytes);
    if (!r) return cudaErrorMemoryAllocation;
    r->allocated_at = pc;
    r->for_host = for_host;
    if (for_host) r->all_init = true;  // the host writes there unobserved
    *p = reinterpret_cast<void*>(r->lo);
    return cudaSuccess;
  });
}
bool on_device(const void* p) { return find_region(reinterpret_cast<u64>(p)) != nullptr; }

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return runtime([&] {
    if (!bytes) return cudaSuccess;
    bool to_device = on_device(to), from_device = on_device(from);
    if ((kind == cudaMemcpyHostToDevice && !to_device) || (kind == cudaMemcpyDeviceToHost && !from_device) ||
        (kind == cudaMemcpyDeviceToDevice && !(to_device && from_device)) || !to || !from)
      return cudaErrorInvalidValue;
    return static_cast<cudaError_t>(cuMemcpy(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes));
  });
}
cudaError_t set(void* to, int value, size_t bytes) {
  return runtime([&] {
    if (!bytes) return cudaSuccess;
    if (on_device(to)) return static_cast<cudaError_t>(cuMemsetD8_v2(reinterpret_cast<CUdeviceptr>(to), static_cast<u8>(value), bytes));
    return cudaErrorInvalidValue;
  });
}
}  // namespace

KWEMU_EXPORT cudaError_t cudaMalloc(void** p, size_t n) { return allocate_at(p, n, KWEMU_PC, false); }
KWEMU_EXPORT cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) { return allocate_at(p, n, KWEMU_PC, false); }
KWEMU_EXPORT cudaError_t cudaMallocManaged(void** p, size_t n, unsigned) { return allocate_at(p, n, KWEMU_PC, true); }
KWEMU_EXPORT cudaError_t cudaMallocHost(void** p, size_t n) { return allocate_at(p, n, KWEMU_PC, true); }
KWEMU_EXPORT cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) { return allocate_at(p, n, KWEMU_PC, true); }
KWEMU_EXPORT cudaError_t cudaMallocPitch(void** p, size_t* pitch, size_t width, size_t height) {
  if (!pitch) return last_error = cudaErrorInvalidValue;
  *pitch = (width + 511) / 512 * 512;
  return allocate_at(p, *pitch * height, KWEMU_PC, false);
}
KWEMU_EXPORT cudaError_t cudaFree(void* p) {
  return runtime([&] { return !p || release(reinterpret_cast<u64>(p)) ? cudaSuccess : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
KWEMU_EXPORT cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
KWEMU_EXPORT cudaError_t cudaHostRegister(void*, size_t, unsigned) {
  return runtime([] { return cudaSuccess; });
}
KWEMU_EXPORT cudaError_t cudaHostUnregister(void*) {
  return runtime([] { return cudaSuccess; });
}
KWEMU_EXPORT cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return runtime([&] { return device && on_device(host) ? (*device = host, cudaSuccess) : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return runtime([&] { return cuMemGetInfo_v2(free_bytes, total); });
}

KWEMU_EXPORT cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) { return copy(to, from, n, kind); }
KWEMU_EXPORT cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t stream) {
  if (captured(stream, cudaGraphNodeTypeMemcpy, [=] { return copy(to, from, n, kind); })) return cudaSuccess;
  return copy(to, from, n, kind);
}
KWEMU_EXPORT cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) { return copy(to, from, n, cudaMemcpyDefault); }
KWEMU_EXPORT cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                      cudaMemcpyKind kind) {
  for (size_t i = 0; i < height; i++)
    if (cudaError_t e = copy(static_cast<char*>(to) + i * to_pitch, static_cast<const char*>(from) + i * from_pitch, width, kind)) return e;
  return cudaSuccess;
}
KWEMU_EXPORT cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                           cudaMemcpyKind kind, cudaStream_t stream) {
  const auto work = [=] { return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind); };
  return captured(stream, cudaGraphNodeTypeMemcpy, work) ? cudaSuccess : work();
}
KWEMU_EXPORT cudaError_t cudaMemset(void* to, int value, size_t n) { return set(to, value, n); }
KWEMU_EXPORT cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t stream) {
  if (captured(stream, cudaGraphNodeTypeMemset, [=] { return set(to, value, n); })) return cudaSuccess;
  return set(to, value, n);
}
KWEMU_EXPORT cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  for (size_t i = 0; i < height; i++)
    if (cudaError_t e = set(static_cast<char*>(to) + i * pitch, value, width)) return e;
  return cudaSuccess;
}
// Three-dimensional copies between pitched memory; arrays (textures) are not supported.
KWEMU_EXPORT cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  if (!p || p->srcArray || p->dstArray) return last_error = cudaErrorNotSupported;
  const auto at = [](const cudaPitchedPtr& m, const cudaPos& pos, size_t y, size_t z) {
    return static_cast<char*>(m.ptr) + ((pos.z + z) * m.ysize + pos.y + y) * m.pitch + pos.x;
  };
  for (size_t z = 0; z < p->extent.depth; z++)
    for (size_t y = 0; y < p->extent.height; y++)
      if (cudaError_t e = copy(at(p->dstPtr, p->dstPos, y, z), at(p->srcPtr, p->srcPos, y, z), p->extent.width, p->kind)) return e;
  return cudaSuccess;
}
KWEMU_EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr* p, cudaExtent extent) {
  if (!p) return last_error = cudaErrorInvalidValue;
  *p = {nullptr, (extent.width + 511) / 512 * 512, extent.width, extent.height};
  return allocate_at(&p->ptr, p->pitch * extent.height * extent.depth, KWEMU_PC, false);
}
KWEMU_EXPORT cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent extent) {
  for (size_t row = 0; row < extent.height * extent.depth; row++)
    if (cudaError_t e = set(static_cast<char*>(p.ptr) + row * p.pitch, value, extent.width)) return e;
  return cudaSuccess;
}
KWEMU_EXPORT cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return runtime([] { return cudaSuccess; });
}
KWEMU_EXPORT cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return runtime([] { return cudaSuccess; });
}
KWEMU_EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  return runtime([&] {
    if (!a) return cudaErrorInvalidValue;
    Region* r = find_region(reinterpret_cast<u64>(p));
    *a = {};
    a->type = !r ? cudaMemoryTypeUnregistered : r->for_host ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
    a->devicePointer = r ? const_cast<void*>(p) : nullptr;
    a->hostPointer = !r || r->for_host ? const_cast<void*>(p) : nullptr;
    return cudaSuccess;
  });
}
