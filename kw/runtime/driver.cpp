#include "kw/runtime/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "kw/runtime/library.h"

namespace kw {
namespace {

std::atomic<const Driver*> current{nullptr};  // never freed: late threads may still launch
std::atomic<bool> emulator_wanted{false};
std::mutex loading;

#define KW_STRING_(x) #x
#define KW_STRING(x) KW_STRING_(x)

void* open_emulator() {
  LibrarySearch search;
  const char* path = std::getenv("KW_EMULATOR");
  if (path && *path) {
    if (void* handle = search.open(path)) return handle;
  } else {
    std::string dir = own_dir();
    for (const char* relative : {"/libkwemu.so", "/../libkwemu.so", "/../lib/libkwemu.so"})
      if (void* handle = search.open(dir + relative)) return handle;
  }
  throw Error(KW_ERROR_TOOLCHAIN, "the emulator was asked for, but libkwemu.so was not found (tried " + search.tried() +
                                      "); build it, or set KW_EMULATOR to its path");
}

void* open_driver() {
  if (emulator_requested()) return open_emulator();
  const char* wish = std::getenv("KW_DRIVER");
  LibrarySearch search;
  if (wish && *wish) {
    if (void* handle = search.open(wish)) return handle;
    throw Error(KW_ERROR_TOOLCHAIN, "the CUDA driver that KW_DRIVER names could not be loaded: " + search.tried());
  }
  if (void* handle = search.loaded("libcuda.so.1")) return handle;
  if (void* handle = search.open("libcuda.so.1")) return handle;
  if (void* handle = search.open("/usr/lib/wsl/lib/libcuda.so.1")) return handle;
  throw Error(KW_ERROR_TOOLCHAIN, "no NVIDIA driver was found (tried " + search.tried() +
                                      "): a CUDA call needs a machine with an NVIDIA GPU and its driver; set KW_DRIVER to the library's "
                                      "path if it lies elsewhere, or to 'emulator' to run kernels without a GPU");
}

std::unique_ptr<Driver> load() {
  auto cuda = std::make_unique<Driver>();
  cuda->handle = open_driver();
  std::string missing;
#define KW_LOAD(name) \
  if (!(cuda->name = reinterpret_cast<decltype(cuda->name)>(dlsym(cuda->handle, KW_STRING(name))))) missing += " " KW_STRING(name);
  KW_DRIVER_FUNCTIONS(KW_LOAD)
#undef KW_LOAD
#define KW_LOAD(name) cuda->name = reinterpret_cast<decltype(cuda->name)>(dlsym(cuda->handle, KW_STRING(name)));
  KW_DRIVER_OPTIONAL(KW_LOAD)
  KW_LOAD(kwemu_report_count)
  KW_LOAD(kwemu_report)
#undef KW_LOAD
  if (!cuda->cuEventElapsedTime)  // its _v2 came late in CUDA 12 and has the same signature
    cuda->cuEventElapsedTime = reinterpret_cast<decltype(cuda->cuEventElapsedTime)>(dlsym(cuda->handle, "cuEventElapsedTime"));
  if (!missing.empty()) throw Error(KW_ERROR_TOOLCHAIN, "the CUDA driver lacks" + missing + ": a driver for CUDA 12.0 or newer is needed");

  cuda->path = file_of(reinterpret_cast<const void*>(cuda->cuInit));
  cuda->emulator = dlsym(cuda->handle, "nvrtcCompileProgram") != nullptr;
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  cuda->synchronous = cuda->emulator || (blocking && *blocking == '1');
  if (CUresult r = cuda->cuInit(0)) {
    const char* name = nullptr;
    cuda->cuGetErrorName(r, &name);
    throw Error(KW_ERROR_DRIVER, format("the CUDA driver %s does not start: %s", cuda->path.c_str(), name ? name : "unknown error"));
  }
  cuda->cuDriverGetVersion(&cuda->version);
  return cuda;
}

}  // namespace

const Driver& driver() {
  if (const Driver* ready = current.load(std::memory_order_acquire)) return *ready;
  std::lock_guard lock(loading);
  if (!current.load(std::memory_order_relaxed)) current.store(load().release(), std::memory_order_release);
  return *current.load(std::memory_order_relaxed);
}

const Driver* find_driver(std::string* why) {
  try {
    return &driver();
  } catch (const Error& e) {
    if (why) *why = e.what();
    return nullptr;
  }
}

void use_emulator() {
  std::lock_guard lock(loading);
  if (const Driver* ready = current.load(); ready && !ready->emulator)
    throw Error(KW_ERROR_INTERNAL, "use_emulator() comes too late: the CUDA driver " + ready->path + " is in use");
  emulator_wanted = true;
}

bool emulator_requested() {
  const char* wish = std::getenv("KW_DRIVER");
  return emulator_wanted || (wish && std::string_view(wish) == "emulator");
}

std::string error_text(const Driver& cuda, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  cuda.cuGetErrorName(result, &name);
  cuda.cuGetErrorString(result, &text);
  if (!name) return format("CUDA error %d", static_cast<int>(result));
  return text ? format("%s (%s)", name, text) : name;
}

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

void throw_earlier(const Driver& cuda, const std::string& not_done, CUresult result) {
  throw Error(KW_ERROR_DRIVER,
              not_done + ", because the CUDA context already had the error " + error_text(cuda, result) +
                  " from earlier work; the process has to be started anew. CUDA_LAUNCH_BLOCKING=1 shows which call it was");
}

void check(const Driver& cuda, CUresult result, const char* doing) {
  if (result == CUDA_SUCCESS) return;
  if (is_sticky(result)) throw_earlier(cuda, std::string(doing) + " was not possible", result);
  throw Error(result == CUDA_ERROR_OUT_OF_MEMORY ? KW_ERROR_MEMORY : KW_ERROR_DRIVER, std::string(doing) + ": " + error_text(cuda, result));
}

}  // namespace kw
