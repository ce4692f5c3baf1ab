// The CUDA driver, found at run time; cuda.h gives types only. The emulator is another library with the same functions.
#pragma once
#include <cuda.h>

#include <string>

#include "kw/core/error.h"

namespace kw {

// cuda.h renames functions to their current versions by macros (cuMemAlloc is cuMemAlloc_v2); the table and its uses are renamed alike.
// clang-format off
#define KW_DRIVER_FUNCTIONS(F) \
  F(cuInit) F(cuDriverGetVersion) F(cuGetErrorName) F(cuGetErrorString) \
  F(cuDeviceGetCount) F(cuDeviceGet) F(cuDeviceGetName) F(cuDeviceGetAttribute) \
  F(cuDevicePrimaryCtxRetain) F(cuCtxGetCurrent) F(cuCtxSetCurrent) F(cuCtxPushCurrent) F(cuCtxPopCurrent) F(cuCtxSynchronize) \
  F(cuLibraryLoadData) F(cuLibraryGetKernel) F(cuKernelSetAttribute) F(cuKernelGetAttribute) F(cuLaunchKernelEx) \
  F(cuMemAlloc) F(cuMemFree) F(cuMemGetInfo) F(cuMemcpyHtoD) F(cuMemcpyDtoH) F(cuMemcpyDtoDAsync) F(cuMemsetD8Async) \
  F(cuStreamCreate) F(cuStreamDestroy) F(cuStreamSynchronize) \
  F(cuEventCreate) F(cuEventDestroy) F(cuEventRecord) F(cuEventSynchronize)
// Absent in some drivers, and we can do without: null then.
#define KW_DRIVER_OPTIONAL(F) F(cuEventElapsedTime) F(cuKernelGetParamInfo) F(cuFuncGetParamInfo)
// clang-format on

struct Driver {
#define KW_MEMBER(name) decltype(&::name) name = nullptr;
  KW_DRIVER_FUNCTIONS(KW_MEMBER)
  KW_DRIVER_OPTIONAL(KW_MEMBER)
#undef KW_MEMBER
  // The emulator's own: what its checker found, in order; null in a real driver.
  int (*kwemu_report_count)() = nullptr;
  const char* (*kwemu_report)(int index) = nullptr;
  void* handle = nullptr;
  std::string path;          // the file it came from
  int version = 0;           // 13000 for CUDA 13.0
  bool emulator = false;     // a stand-in that compiles kernels itself
  bool synchronous = false;  // a launch returns its own kernel's error, not only earlier ones (emulator, CUDA_LAUNCH_BLOCKING=1)
};

// The driver, initialised. Looks for: KW_DRIVER (a path, or `emulator`), the libcuda.so.1 that is loaded already, the system's.
// Throws KW_ERROR_TOOLCHAIN with what was tried and what to do when there is none, KW_ERROR_DRIVER when it does not start; the next
// call tries again.
const Driver& driver();
// The same without an exception: null and, if asked, the sentence.
const Driver* find_driver(std::string* why = nullptr);

// As if KW_DRIVER=emulator were set. Throws KW_ERROR_INTERNAL when a real driver is in use already.
void use_emulator();
bool emulator_requested();  // by KW_DRIVER or use_emulator()

// "CUDA_ERROR_INVALID_VALUE (invalid argument)".
std::string error_text(const Driver& cuda, CUresult result);
// Errors that a kernel leaves behind when it fails: the context reports them at every later call, and the process has to end. A launch is
// asynchronous, so it never returns its own kernel's; whoever gets one is not the one who did it.
bool is_sticky(CUresult result);
// Throws KW_ERROR_DRIVER: "<not_done>, because the CUDA context already had the error CUDA_ERROR_... from earlier work; ...".
[[noreturn]] void throw_earlier(const Driver& cuda, const std::string& not_done, CUresult result);

// Throws KW_ERROR_DRIVER: "<doing>: CUDA_ERROR_..."; for a sticky error, throw_earlier. Out of memory becomes KW_ERROR_MEMORY.
void check(const Driver& cuda, CUresult result, const char* doing);

}  // namespace kw
