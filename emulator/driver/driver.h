// The driver's stand-in: what its functions share. Everything runs at the call; one lock is held by whoever is inside.
#pragma once
#include <cuda.h>

#include <mutex>

#include "emulator/engine/engine.h"

namespace kwemu {
extern std::recursive_mutex driver_lock;
extern bool driver_started;
extern thread_local CUcontext context_now;

struct DeviceModel {
  u32 arch = 90;
  u32 sm_count = 4;  // few, so that small tests already give a block several tiles
};
extern DeviceModel device_model;
u32 max_shared_per_block(u32 arch);  // bytes, the opt-in limit
u32 threads_per_sm(u32 arch);
u32 shared_per_sm(u32 arch);

CUcontext primary_context();
bool context_is_live();

// A module's bytes: this header, then the shared library that g++ made. The driver gets a pointer without a size.
struct ImageHeader {
  char magic[8];
  u64 build;  // of the emulator that made it: another one's images are refused, like a cubin of another architecture
  u64 bytes;  // of the library
};
constexpr char kImageMagic[8] = {'K', 'W', 'E', 'M', 'U', 'S', 'O', '1'};
u64 build_id();

CUresult load_module(const void* image, Module**);
Module* load_program(const std::string& path);  // a whole program as a shared library; null: it cannot be loaded
CUresult unload_module(Module*);
Module* known_module(const void* handle);
Kernel* known_kernel(const void* handle);
CUresult find_kernel(Module*, const char* name, Kernel**);

// Runs the body of a driver function: started, locked, no C++ exception across the border.
template <class F>
CUresult guarded(F body) {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  if (!driver_started) return CUDA_ERROR_NOT_INITIALIZED;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}
template <class F>
CUresult with_context(F body) {
  return guarded([&] { return context_now && context_is_live() ? body() : CUDA_ERROR_INVALID_CONTEXT; });
}
}  // namespace kwemu
