// The emulator as a program sees it: through the driver's and NVRTC's functions, looked up in libkwemu.so.
#pragma once
#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace emu {

inline void* library() {
  static void* handle = [] {
    void* h = dlopen(KW_BINARY_DIR "/libkwemu.so", RTLD_NOW | RTLD_LOCAL);
    if (!h) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
    return h;
  }();
  return handle;
}

// EMU(cuInit)(0): the macros of cuda.h give names their versions.
template <class F>
F* function(const char* name) {
  void* p = dlsym(library(), name);
  if (!p) {
    fprintf(stderr, "libkwemu.so has no %s\n", name);
    exit(1);
  }
  return (F*)p;
}
#define EMU_NAME_(name) #name
#define EMU_NAME(name) EMU_NAME_(name)
#define EMU(name) ::emu::function<decltype(name)>(EMU_NAME(name))

inline int report_count() { return function<int()>("kwemu_report_count")(); }
inline std::string report(int i) {
  const char* text = function<const char*(int)>("kwemu_report")(i);
  return text ? text : "";
}
inline void clear_reports() { function<void()>("kwemu_clear_reports")(); }
inline int set(const char* option, const char* value) { return function<int(const char*, const char*)>("kwemu_set")(option, value); }
inline size_t unwritten(CUdeviceptr p) { return function<size_t(const void*)>("kwemu_unwritten")((void*)p); }
inline void poison(CUdeviceptr p, size_t n) { function<void(void*, size_t)>("kwemu_poison")((void*)p, n); }

// "error: global-oob" -> "global-oob"; empty when there is no report.
inline std::string first_kind() {
  std::string text = report(0);
  size_t at = text.find(": ");
  return at == std::string::npos ? "" : text.substr(at + 2, text.find('\n') - at - 2);
}

struct Program {
  nvrtcProgram handle = nullptr;
  nvrtcResult result = NVRTC_SUCCESS;
  std::string log;
  std::vector<char> cubin;
  using Header = std::pair<std::string, std::string>;

  explicit Program(const std::string& source, const std::vector<std::string>& expressions = {}, const std::vector<Header>& headers = {},
                   std::vector<std::string> options = {"--gpu-architecture=sm_90", "--std=c++20"}) {
    std::vector<const char*> texts, names, flags;
    for (auto& h : headers) names.push_back(h.first.c_str()), texts.push_back(h.second.c_str());
    for (auto& o : options) flags.push_back(o.c_str());
    EMU(nvrtcCreateProgram)(&handle, source.c_str(), "folder/test.cu", (int)headers.size(), texts.data(), names.data());
    for (auto& e : expressions) EMU(nvrtcAddNameExpression)(handle, e.c_str());
    result = EMU(nvrtcCompileProgram)(handle, (int)flags.size(), flags.data());
    size_t n = 0;
    EMU(nvrtcGetProgramLogSize)(handle, &n);
    std::vector<char> text(n);
    EMU(nvrtcGetProgramLog)(handle, text.data());
    log = text.data();
    if (result == NVRTC_SUCCESS && EMU(nvrtcGetCUBINSize)(handle, &n) == NVRTC_SUCCESS) {
      cubin.resize(n);
      EMU(nvrtcGetCUBIN)(handle, cubin.data());
    }
  }
  ~Program() { EMU(nvrtcDestroyProgram)(&handle); }
  Program(const Program&) = delete;
  std::string lowered(const char* expression) const {
    const char* name = nullptr;
    return EMU(nvrtcGetLoweredName)(handle, expression, &name) == NVRTC_SUCCESS ? name : "";
  }
};

inline void start() {
  EMU(cuInit)(0);
  CUcontext context = nullptr;
  EMU(cuDevicePrimaryCtxRetain)(&context, 0);
  EMU(cuCtxSetCurrent)(context);
}

struct Library {
  CUlibrary handle = nullptr;
  CUresult result;
  explicit Library(const Program& p) : result(EMU(cuLibraryLoadData)(&handle, p.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)) {}
  ~Library() {
    if (handle) EMU(cuLibraryUnload)(handle);
  }
  Library(const Library&) = delete;
  CUfunction kernel(const std::string& name) const {
    CUkernel k = nullptr;
    CUfunction f = nullptr;
    if (EMU(cuLibraryGetKernel)(&k, handle, name.c_str()) == CUDA_SUCCESS) EMU(cuKernelGetFunction)(&f, k);
    return f;
  }
};

template <class T>
struct Buffer {
  CUdeviceptr at = 0;
  size_t count;
  explicit Buffer(size_t n) : count(n) { EMU(cuMemAlloc)(&at, n * sizeof(T)); }
  explicit Buffer(const std::vector<T>& v) : Buffer(v.size()) { EMU(cuMemcpyHtoD)(at, v.data(), v.size() * sizeof(T)); }
  ~Buffer() { EMU(cuMemFree)(at); }
  Buffer(const Buffer&) = delete;
  std::vector<T> host() const {
    std::vector<T> v(count);
    EMU(cuMemcpyDtoH)(v.data(), at, count * sizeof(T));
    return v;
  }
};

template <class... A>
CUresult launch(CUfunction f, unsigned grid, unsigned block, unsigned shared, A... args) {
  void* pointers[] = {&args..., nullptr};
  return EMU(cuLaunchKernel)(f, grid, 1, 1, block, 1, 1, shared, nullptr, pointers, nullptr);
}
}  // namespace emu
