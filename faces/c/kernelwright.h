/* The C face of Kernelwright: find an op, ask what its results look like, run it. Everything else (the typed C++ calls, PyTorch, ctypes)
 * goes through these functions. Thread-safe throughout. Functions that return int return a kw_status; the sentence that belongs to a
 * status other than KW_OK is in kw_last_error() of the same thread. */
#ifndef KERNELWRIGHT_H
#define KERNELWRIGHT_H
#include "kw/core/abi.h"
#ifdef __cplusplus
extern "C" {
#endif
#define KW_API __attribute__((visibility("default")))

typedef struct kw_op kw_op; /* a registered op; valid for the process */

typedef struct kw_spec { /* one result to allocate: contiguous, row-major */
  int32_t present, dtype, rank;
  int64_t sizes[KW_MAX_RANK];
} kw_spec;

typedef struct kw_call { /* results may be null for kw_infer */
  const kw_argument* inputs;
  const kw_argument* results; /* outputs, saved, scratch: as kw_infer sized them */
  const kw_attribute* attributes;
  void* stream; /* CUstream of the inputs' device; null is the default stream */
} kw_call;

KW_API const char* kw_version(void);
KW_API const char* kw_last_error(void);    /* of this thread; "" when there was none. A call that succeeds leaves it alone */
KW_API int32_t kw_last_error_status(void); /* the kw_status that belongs to it; KW_OK when there was none */

/* Where warnings go (a damaged cache, a pack that is not for this machine, ...): each sentence once in a process. Null: to stderr, which is
 * where they go before the first call. The function must stay callable until another is set; it is called from any thread that is inside
 * the library, under no lock of the library's, and must not throw. */
KW_API void kw_set_log(kw_log_function function, void* context);

KW_API int32_t kw_op_count(void);
KW_API const kw_op* kw_op_at(int32_t index);                 /* null when out of range */
KW_API const kw_op* kw_op_find(const char* name);            /* null when unknown */
KW_API int32_t kw_op_index(const kw_op* op);                 /* -1 for null */
KW_API const kw_signature* kw_op_signature(const kw_op* op); /* null for null */
KW_API uint64_t kw_op_calls(const kw_op* op);                /* finished calls in this process, on any device */

/* Checks inputs and attributes (their memory is not looked at, so data may be null) and sizes the results: specs[result_count]. */
KW_API int kw_infer(const kw_op* op, const kw_call* call, kw_spec* specs);
/* Checks everything, then runs on the inputs' device: asynchronous on CUDA, finished on return on the CPU. Nothing is written when the
 * status is KW_ERROR_CONTRACT, _ARGUMENT, _UNSUPPORTED or _TOOLCHAIN. A saved result may be left out (count 0): no gradient is wanted. */
KW_API int kw_run(const kw_op* op, const kw_call* call);
/* Finds, or compiles, the kernels of a call on its device and loads them, so that kw_run of such a call (any number of rows, any values)
 * finds them ready. Runs nothing and looks at no memory: data may be null, results are not looked at and taken as contiguous. On the CPU
 * there is nothing to do. Threads that ask for the same kernel share one compile. */
KW_API int kw_warmup(const kw_op* op, const kw_call* call);

typedef struct kw_kernel_counts { /* kernels that calls on CUDA asked for since the process began, by where they were found */
  uint64_t memory, pack, disk, compiled;
} kw_kernel_counts;
KW_API void kw_count_kernels(kw_kernel_counts* counts);

/* 1: copy the tensor to contiguous first; 0: the op reads it as it is; -1: no such input, or a tensor that no op takes. */
KW_API int kw_needs_copy(const kw_op* op, int32_t input, const kw_tensor* tensor);

KW_API const char* kw_manifest(void);             /* JSON, see kw/core/manifest.h; valid for the process. Null when it cannot be made */
KW_API int kw_register_room(const kw_room* room); /* `room` and all that it points to must live as long as the process */
/* dlopen, then registers the rooms that the library exports through `const kw_room* const* kw_rooms(int32_t* count)`: all or none. The
 * library stays loaded. Loading it again changes nothing. */
KW_API int kw_load_library(const char* path);

KW_API void kw_set_threads(int32_t n); /* CPU kernels; 0: as many as OpenMP in this process, else the cores */

/* A folder to look in for NVRTC before the usual ones: one that holds it, or a Python site-packages folder. */
KW_API void kw_add_library_dir(const char* dir);
#ifdef __cplusplus
}
#endif
#endif
