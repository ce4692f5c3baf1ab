#include "faces/torch/call.h"

#include "kw/core/bind.h"
#include "kw/core/error.h"
#include "kw/runtime/dispatch.h"

namespace kw::torch_face {
namespace {

struct Owned {  // handles of one call, given back on every way out
  Handle handles[KW_MAX_ARGUMENTS] = {};
  ~Owned() {
    for (Handle h : handles)
      if (h) shim().aoti_torch_delete_tensor_object(h);
  }
};

}  // namespace

Handle allocate(const Op& op, const char* name, int32_t dtype, int32_t rank, const int64_t* sizes, int32_t device_type,
                int32_t device_index, int64_t* strides) {
  int64_t step = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  const Shim& torch = shim();
  Handle handle = nullptr;
  int32_t device = device_type == KW_CUDA ? torch.cuda : torch.cpu;
  if (torch.aoti_torch_empty_strided(rank, sizes, strides, torch.dtypes[dtype], device, device_index, &handle))
    throw Error(KW_ERROR_MEMORY, format("%s: torch could not allocate %s, %lld bytes", op.contract.name.c_str(), name,
                                        static_cast<long long>(step) * dtype_bytes(dtype)));
  return handle;
}

void call(const Op& op, const kw_argument* inputs, const kw_attribute* attributes, Wanted wanted, Handle* out) {
  const Contract& contract = op.contract;
  Bound bound;
  bind_inputs(op, inputs, attributes, bound);
  const int32_t type = bound.raw.device_type, index = bound.raw.device_index;

  Owned owned;
  kw_tensor tensors[KW_MAX_ARGUMENTS];
  kw_argument results[KW_MAX_ARGUMENTS] = {};
  int64_t strides[KW_MAX_ARGUMENTS][KW_MAX_RANK];
  const size_t count = contract.results.size();
  for (size_t i = 0; i < count; i++) {
    const TensorSpec& spec = bound.results[i];
    const Result& result = contract.results[i];
    if (result.kind == Result::Kind::saved && !wanted.saved) continue;
    if (!spec.present) {
      static constexpr int64_t none = 0;
      if (wanted.empty_for_absent && result.kind != Result::Kind::scratch)
        owned.handles[i] = allocate(op, result.name.c_str(), spec.dtype, 1, &none, type, index, strides[i]);
      continue;
    }
    owned.handles[i] = allocate(op, result.name.c_str(), spec.dtype, spec.rank, spec.sizes, type, index, strides[i]);
    tensors[i] = {nullptr, spec.sizes, strides[i], spec.rank, spec.dtype, type, index};
    shim().torch_get_mutable_data_ptr(owned.handles[i], &tensors[i].data);
    results[i] = {&tensors[i], 1};
  }
  bind_results(results, bound);
  if (type == KW_CUDA) {
    auto current_stream = shim().aoti_torch_get_current_cuda_stream;
    if (!current_stream || current_stream(index, &bound.raw.stream))
      throw Error(KW_ERROR_UNSUPPORTED, format("%s: this torch has no CUDA stream to run on", contract.name.c_str()));
  }
  execute(bound);

  for (size_t i = 0; i < count; i++) {
    Result::Kind kind = contract.results[i].kind;
    if (kind == Result::Kind::scratch || (kind == Result::Kind::saved && !wanted.saved)) continue;
    *out++ = owned.handles[i];
    owned.handles[i] = nullptr;
  }
}

int64_t enumeration_index(const Op& op, const Attribute& attribute, const char* value) {
  std::string values;
  for (size_t i = 0; i < attribute.values.size(); i++) {
    if (attribute.values[i] == value) return static_cast<int64_t>(i);
    values += (i ? ", " : "") + attribute.values[i];
  }
  throw Error(KW_ERROR_ARGUMENT,
              format("%s: %s is '%s', but must be one of %s", op.contract.name.c_str(), attribute.name.c_str(), value, values.c_str()));
}

std::atomic<uint64_t>& copies(const Op& op) {
  static std::atomic<uint64_t> counts[max_ops];
  return counts[op.index % max_ops];
}

}  // namespace kw::torch_face
