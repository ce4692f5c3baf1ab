#include "faces/torch/shim.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "kw/core/error.h"

namespace kw::torch_face {
namespace {
std::atomic<const Shim*> loaded{nullptr};

template <class F>
bool find(F& function, const char* name) {
  function = reinterpret_cast<F>(find_symbol(name));
  return function != nullptr;
}

std::unique_ptr<Shim> find_shim() {
  auto s = std::make_unique<Shim>();
#define KW_FIND(result, name, parameters) \
  if (!find(s->name, #name))              \
    throw Error(KW_ERROR_UNSUPPORTED, "torch >= 2.10 is not loaded in this process (" #name " was not found): import torch first");
  KW_TORCH_SHIM(KW_FIND)
#undef KW_FIND
  find(s->aoti_torch_get_current_cuda_stream, "aoti_torch_get_current_cuda_stream");
  find(s->torch_delete_stable_ivalue, "torch_delete_stable_ivalue");
  if (find(s->aoti_record_function_start, "aoti_record_function_start") && find(s->aoti_record_function_end, "aoti_record_function_end"))
    find(s->has_callbacks, "_ZN2at12hasCallbacksEv");
  s->cpu = s->aoti_torch_device_type_cpu();
  s->cuda = s->aoti_torch_device_type_cuda();
  s->contiguous = s->aoti_torch_memory_format_contiguous_format();
  s->dtypes[KW_F16] = s->aoti_torch_dtype_float16();
  s->dtypes[KW_BF16] = s->aoti_torch_dtype_bfloat16();
  s->dtypes[KW_F32] = s->aoti_torch_dtype_float32();
  s->dtypes[KW_F64] = s->aoti_torch_dtype_float64();
  s->dtypes[KW_I8] = s->aoti_torch_dtype_int8();
  s->dtypes[KW_U8] = s->aoti_torch_dtype_uint8();
  s->dtypes[KW_I32] = s->aoti_torch_dtype_int32();
  s->dtypes[KW_I64] = s->aoti_torch_dtype_int64();
  s->dtypes[KW_BOOL] = s->aoti_torch_dtype_bool();
  s->dtypes[KW_FP8E4M3] = s->aoti_torch_dtype_float8_e4m3fn();
  s->dtypes[KW_FP8E5M2] = s->aoti_torch_dtype_float8_e5m2();
  std::memset(s->from_torch, -1, sizeof s->from_torch);
  for (int32_t i = 0; i < KW_DTYPE_COUNT; i++) s->from_torch[s->dtypes[i] & 255] = static_cast<int8_t>(i);
  return s;
}
}  // namespace

void* find_symbol(const char* name) {
  // Python loads torch RTLD_LOCAL, so RTLD_DEFAULT finds nothing; a handle to the library that is already there does. Nothing is loaded.
  for (const char* library : {"libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so"})
    if (void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
      void* symbol = dlsym(handle, name);
      dlclose(handle);  // only our reference; torch stays
      if (symbol) return symbol;
    }
  return dlsym(RTLD_DEFAULT, name);  // a program that links torch itself, under other file names
}

const Shim& load_shim() {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!loaded.load()) loaded.store(find_shim().release());  // kept until the process ends: torch keeps calling our kernels
  return *loaded.load();
}

const Shim& shim() { return *loaded.load(std::memory_order_acquire); }

}  // namespace kw::torch_face
