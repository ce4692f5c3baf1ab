// From a call to its checked form: every dimension and type variable gets its value, every result its shape.
#pragma once
#include "kw/core/op.h"

namespace kw {

struct TensorSpec {  // what the caller has to allocate for one result
  bool present = true;
  DType dtype = KW_F32;
  int32_t rank = 0;
  int64_t sizes[KW_MAX_RANK] = {};
  int64_t elements() const {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++) n *= sizes[i];
    return n;
  }
};

struct Bound {  // fixed capacity: binding a call allocates nothing. Not copied: `raw` points into it
  Bound() = default;
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  const Op* op = nullptr;
  kw_bound raw{};
  int64_t dims[KW_MAX_SYMBOLS];  // 0 where only an absent input would say; of a list's items, the sum over them
  int32_t dtypes[KW_MAX_SYMBOLS];
  TensorSpec results[KW_MAX_ARGUMENTS];  // outputs, saved, scratch
  uint32_t present = 0;                  // inputs
};

// Checks the inputs and attributes against the contract and sizes the results. `inputs` and `attributes` have the contract's length and
// must outlive `out`. Throws KW_ERROR_ARGUMENT with a sentence. Promise: every tensor's rows lie as kw/core/rows.h says
// (needs_copy says beforehand which tensors a face has to copy), all tensors are on one device.
void bind_inputs(const Op& op, const kw_argument* inputs, const kw_attribute* attributes, Bound& out);

// Checks the caller's results (shape, dtype, device, layout) against out.results and takes them in.
void bind_results(const kw_argument* results, Bound& bound);

// True when rooms cannot read this layout as it is: the innermost dimension is not contiguous, or more than three
// distances are needed to say where rows lie. `inner` is the number of trailing dimensions of one row (Contract: those after *B).
bool needs_copy(const kw_tensor& tensor, int32_t inner);
// `inner` for argument i of the op.
int32_t row_rank(const TensorType& type);

}  // namespace kw
