// Torch's C shim (LibTorch stable ABI, 2.10), spoken without any torch header: the prototypes that we use, found in the torch that the
// process has loaded. Nothing is linked, so the same binary serves every torch from 2.10 on, and a process without torch.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kw/core/abi.h"

namespace kw::torch_face {

using Handle = void*;   // AtenTensorHandle, TorchLibraryHandle, StableListHandle or StringHandle
using Slot = uint64_t;  // StableIValue: one entry of the dispatcher's stack
using BoxedKernel = void (*)(Slot* stack, uint64_t arguments, uint64_t results);

// The ABI that these prototypes were written against, as torch_library_impl wants it: 2.10.
inline constexpr uint64_t abi_version = (2ull << 56) | (10ull << 48);

// X(return type, name, parameters). All exist in 2.10; int results are 0 for success.
#define KW_TORCH_SHIM(X)                                                                                                                 \
  X(int, aoti_torch_library_init_fragment, (const char* ns, const char* file, uint32_t line, Handle* out))                               \
  X(int, aoti_torch_library_init_impl, (const char* ns, const char* key, const char* file, uint32_t line, Handle* out))                  \
  X(int, aoti_torch_library_def, (Handle library, const char* schema))                                                                   \
  X(int, torch_library_impl, (Handle library, const char* name, BoxedKernel kernel, uint64_t version))                                   \
  X(int, torch_call_dispatcher, (const char* op, const char* overload, Slot* stack, uint64_t version))                                   \
  X(void, aoti_torch_check, (bool condition, const char* func, const char* file, uint32_t line, const char* text))                       \
  X(int, aoti_torch_is_defined, (Handle tensor, bool* out))                                                                              \
  X(int, aoti_torch_get_dim, (Handle tensor, int64_t* out))                                                                              \
  X(int, aoti_torch_get_sizes, (Handle tensor, int64_t** out))                                                                           \
  X(int, aoti_torch_get_strides, (Handle tensor, int64_t** out))                                                                         \
  X(int, aoti_torch_get_dtype, (Handle tensor, int32_t* out))                                                                            \
  X(int, aoti_torch_get_device_type, (Handle tensor, int32_t* out))                                                                      \
  X(int, aoti_torch_get_device_index, (Handle tensor, int32_t* out))                                                                     \
  X(int, torch_get_const_data_ptr, (Handle tensor, const void** out))                                                                    \
  X(int, torch_get_mutable_data_ptr, (Handle tensor, void** out))                                                                        \
  X(int, aoti_torch_empty_strided,                                                                                                       \
    (int64_t rank, const int64_t* sizes, const int64_t* strides, int32_t dtype, int32_t device_type, int32_t device_index, Handle* out)) \
  X(int, aoti_torch_delete_tensor_object, (Handle tensor))                                                                               \
  X(int, torch_list_size, (Handle list, size_t* out))                                                                                    \
  X(int, torch_list_get_item, (Handle list, size_t index, Slot* out))                                                                    \
  X(int, torch_delete_list, (Handle list))                                                                                               \
  X(int, torch_string_c_str, (Handle string, const char** out))                                                                          \
  X(int, torch_delete_string, (Handle string))                                                                                           \
  X(int32_t, aoti_torch_device_type_cpu, ())                                                                                             \
  X(int32_t, aoti_torch_device_type_cuda, ())                                                                                            \
  X(int32_t, aoti_torch_memory_format_contiguous_format, ())                                                                             \
  X(int32_t, aoti_torch_dtype_float16, ())                                                                                               \
  X(int32_t, aoti_torch_dtype_bfloat16, ())                                                                                              \
  X(int32_t, aoti_torch_dtype_float32, ())                                                                                               \
  X(int32_t, aoti_torch_dtype_float64, ())                                                                                               \
  X(int32_t, aoti_torch_dtype_int8, ())                                                                                                  \
  X(int32_t, aoti_torch_dtype_uint8, ())                                                                                                 \
  X(int32_t, aoti_torch_dtype_int32, ())                                                                                                 \
  X(int32_t, aoti_torch_dtype_int64, ())                                                                                                 \
  X(int32_t, aoti_torch_dtype_bool, ())                                                                                                  \
  X(int32_t, aoti_torch_dtype_float8_e4m3fn, ())                                                                                         \
  X(int32_t, aoti_torch_dtype_float8_e5m2, ())

struct Shim {
#define KW_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  KW_TORCH_SHIM(KW_DECLARE)
#undef KW_DECLARE
  int (*aoti_torch_get_current_cuda_stream)(int32_t device, void** out) = nullptr;  // null in a torch without CUDA
  int (*torch_delete_stable_ivalue)(Slot* boxed) = nullptr;                         // from 2.13 on
  // at::hasCallbacks(): does a profiler listen? It is not part of the stable ABI; where it is missing, profilers do not see the fast path.
  bool (*has_callbacks)() = nullptr;
  int (*aoti_record_function_start)(const char* name, void* keywords, const void* inputs, uint64_t count, void** out) = nullptr;
  int (*aoti_record_function_end)(void* record) = nullptr;
  int32_t cpu = 0, cuda = 0;            // torch's device types
  int32_t contiguous = 0;               // its memory format
  int32_t dtypes[KW_DTYPE_COUNT] = {};  // torch's number of a kw_dtype
  int8_t from_torch[256] = {};          // and back; -1 for a dtype that no contract has

  int32_t dtype(int32_t torch_dtype) const { return torch_dtype >= 0 && torch_dtype < 256 ? from_torch[torch_dtype] : -1; }
};

// The shim of the torch in this process; throws a sentence when there is none. Found once; thread-safe.
const Shim& load_shim();
// The same after load_shim has succeeded: kernels run only then.
const Shim& shim();

void* find_symbol(const char* name);

}  // namespace kw::torch_face
