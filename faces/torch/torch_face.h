/* What the PyTorch face exports beside the C face. No torch header is needed: tensors are opaque handles of torch's C shim. */
#ifndef KW_FACES_TORCH_TORCH_FACE_H
#define KW_FACES_TORCH_TORCH_FACE_H
#include "faces/c/kernelwright.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Defines every registered op that torch does not know yet, as kernelwright::<op> (results: the outputs) and, where it has saved results,
 * kernelwright::_<op> (those too), with kernels for the CPU and CUDA keys. Call it after `import torch`, and again when ops were added.
 * Returns the number of ops that torch knows now; -1 and a sentence in kw_last_error() when torch >= 2.10 is not loaded in this process. */
KW_API int kw_attach_torch(void);

/* The schema that kw_attach_torch gives to torch; valid until this thread's next call. */
KW_API const char* kw_torch_schema(const kw_op* op, int with_saved);

/* Tensors that the face had to copy for this op since the process started, because rooms could not read their layout as it was. */
KW_API uint64_t kw_torch_copies(const kw_op* op);

/* One call on checked-by-us inputs: outputs (and, with_saved, the saved results) are allocated by torch on the inputs' device, scratch is
 * allocated and given back, the kernel runs on torch's current stream. `results` receives owning handles in contract order, null for an
 * absent one. Returns a kw_status; nothing is left allocated unless it is KW_OK. Needs no GIL. */
KW_API int kw_torch_call(const kw_op* op, const kw_argument* inputs, const kw_attribute* attributes, int with_saved, void** results);

/* A function of the torch that is loaded in this process, wherever it lives; null when this torch lacks it. */
KW_API void* kw_torch_symbol(const char* name);

#ifdef __cplusplus
}
#endif
#endif
