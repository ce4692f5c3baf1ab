// One call of an op on torch's tensors: what the boxed kernels and the fast path share.
#pragma once
#include <atomic>

#include "faces/torch/shim.h"
#include "kw/core/op.h"

namespace kw::torch_face {

inline constexpr int32_t max_ops = 512;  // trampolines: ops that torch can know

struct Wanted {
  bool saved = false;             // the saved results too
  bool empty_for_absent = false;  // a result that is absent with its input comes as a tensor of no elements instead of null
};

// Checks the inputs, lets torch allocate the results, runs the op on torch's current stream. `results` receives owning handles of the
// outputs (and saved results) in contract order. Throws Error; nothing is left allocated then.
void call(const Op& op, const kw_argument* inputs, const kw_attribute* attributes, Wanted wanted, Handle* results);

// A tensor of `spec`'s shape, contiguous, uninitialised.
Handle allocate(const Op& op, const char* name, int32_t dtype, int32_t rank, const int64_t* sizes, int32_t device_type,
                int32_t device_index, int64_t* strides);

// The index of an enumeration's value; throws a sentence that lists the values.
int64_t enumeration_index(const Op& op, const Attribute& attribute, const char* value);

std::atomic<uint64_t>& copies(const Op& op);  // tensors whose layout had to be copied

}  // namespace kw::torch_face
