#include "faces/torch/kernel.h"

#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "faces/c/guarded.h"
#include "faces/torch/call.h"
#include "kw/core/bind.h"
#include "kw/core/error.h"

namespace kw::torch_face {
namespace {

// What the dispatcher's stack hands over. Everything on it is ours to free, on the error paths too, so it is all taken in before
// anything is looked at.
class Stack {
 public:
  Stack(const Contract& contract, Slot* slots) {
    const Shim& torch = shim();
    for (size_t i = 0; i < contract.inputs.size(); i++) {
      const TensorType& type = contract.inputs[i].type;
      if (type.list) {
        lists_[i] = handle(slots[i]);
      } else if (type.optional) {
        if (!slots[i]) continue;  // None; else a box on the heap that holds the handle
        auto* box = reinterpret_cast<Slot*>(slots[i]);
        tensors_[i] = handle(*box);
        torch.torch_delete_stable_ivalue ? static_cast<void>(torch.torch_delete_stable_ivalue(box)) : ::operator delete(box);
      } else {
        tensors_[i] = handle(slots[i]);
      }
    }
    for (size_t i = 0; i < contract.attributes.size(); i++) {
      Attribute::Type type = contract.attributes[i].type;
      if (type == Attribute::Type::string || type == Attribute::Type::enumeration) strings_[i] = handle(slots[contract.inputs.size() + i]);
    }
    for (size_t i = 0; i < contract.inputs.size(); i++) {
      if (!lists_[i]) continue;
      size_t size = 0;
      torch.torch_list_size(lists_[i], &size);
      first_[i] = elements_.size();
      for (size_t k = 0; k < size; k++) {
        Slot element = 0;
        torch.torch_list_get_item(lists_[i], k, &element);
        elements_.push_back(handle(element));
      }
      size_[i] = size;
    }
  }
  ~Stack() {
    const Shim& torch = shim();
    for (Handle h : tensors_)
      if (h) torch.aoti_torch_delete_tensor_object(h);
    for (Handle h : elements_)
      if (h) torch.aoti_torch_delete_tensor_object(h);
    for (Handle h : lists_)
      if (h) torch.torch_delete_list(h);
    for (Handle h : strings_)
      if (h) torch.torch_delete_string(h);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  Handle& tensor(size_t input) { return tensors_[input]; }
  Handle& element(size_t input, size_t k) { return elements_[first_[input] + k]; }
  size_t size(size_t input) const { return size_[input]; }
  size_t elements() const { return elements_.size(); }
  const char* text(size_t attribute) const {
    const char* text = "";
    shim().torch_string_c_str(strings_[attribute], &text);
    return text;
  }

 private:
  static Handle handle(Slot slot) { return reinterpret_cast<Handle>(slot); }
  Handle tensors_[KW_MAX_ARGUMENTS] = {}, lists_[KW_MAX_ARGUMENTS] = {}, strings_[KW_MAX_ARGUMENTS] = {};
  std::vector<Handle> elements_;
  size_t first_[KW_MAX_ARGUMENTS] = {}, size_[KW_MAX_ARGUMENTS] = {};
};

[[noreturn]] void refuse(const Op& op, const Input& input, const char* why) {
  throw Error(KW_ERROR_ARGUMENT, format("%s: %s %s", op.contract.name.c_str(), input.name.c_str(), why));
}

void describe(Handle h, kw_tensor& view) {
  const Shim& torch = shim();
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  int32_t dtype = 0, device_type = 0;
  torch.aoti_torch_get_dim(h, &rank);
  torch.aoti_torch_get_sizes(h, &sizes);
  torch.aoti_torch_get_strides(h, &strides);
  torch.aoti_torch_get_dtype(h, &dtype);
  torch.aoti_torch_get_device_type(h, &device_type);
  torch.aoti_torch_get_device_index(h, &view.device_index);
  view.sizes = sizes;
  view.strides = strides;
  view.rank = static_cast<int32_t>(rank);
  view.dtype = torch.dtype(dtype);
  view.device_type = device_type == torch.cuda ? KW_CUDA : KW_CPU;
  if (view.device_type == KW_CPU) view.device_index = 0;
}

// A failing shim call prints a page on stderr, so everything that can be asked is asked before.
void read(const Op& op, const Input& input, Handle& h, kw_tensor& view) {
  const Shim& torch = shim();
  bool defined = false;
  torch.aoti_torch_is_defined(h, &defined);
  if (!defined) refuse(op, input, "is None, but the op needs a tensor there");
  describe(h, view);
  if (view.dtype < 0) refuse(op, input, "has a dtype that no contract knows (complex or quantised)");
  if (view.rank > KW_MAX_RANK) refuse(op, input, format("has %d dimensions, but at most %d are supported", view.rank, KW_MAX_RANK).c_str());
  if (needs_copy(view, row_rank(input.type))) {
    if (input.type.written)
      refuse(op, input, "is written in place, so its rows must be contiguous and evenly spaced; call .contiguous() first");
    Slot stack[2] = {reinterpret_cast<Slot>(h), static_cast<Slot>(static_cast<uint32_t>(torch.contiguous))};
    h = nullptr;                                                                  // the dispatcher takes it, also when it fails
    if (torch.torch_call_dispatcher("aten::contiguous", "", stack, abi_version))  // sizes and dtype are fine: nothing else can fail
      throw Error(KW_ERROR_MEMORY,
                  format("%s: torch could not allocate a contiguous copy of %s", op.contract.name.c_str(), input.name.c_str()));
    h = reinterpret_cast<Handle>(stack[0]);
    describe(h, view);
    copies(op).fetch_add(1, std::memory_order_relaxed);
  }
  if (input.type.written) {
    if (torch.torch_get_mutable_data_ptr(h, &view.data)) refuse(op, input, "has no memory of its own");
  } else {
    const void* data = nullptr;
    if (torch.torch_get_const_data_ptr(h, &data)) refuse(op, input, "has no memory of its own");
    view.data = const_cast<void*>(data);
  }
}

kw_attribute read_attribute(const Op& op, size_t i, Slot slot, const Stack& stack) {
  const Attribute& a = op.contract.attributes[i];
  kw_attribute value{};
  switch (a.type) {
    case Attribute::Type::floating:
      std::memcpy(&value.f, &slot, sizeof value.f);
      break;
    case Attribute::Type::integer:
      value.i = static_cast<int64_t>(slot);
      break;
    case Attribute::Type::boolean:
      value.i = static_cast<uint8_t>(slot) != 0;
      break;  // the other seven bytes are not set
    case Attribute::Type::string:
      value.s = stack.text(i);
      break;
    case Attribute::Type::enumeration:
      value.i = enumeration_index(op, a, stack.text(i));
      break;
  }
  return value;
}

void run(const Op& op, Slot* slots, size_t result_count) {
  const Contract& contract = op.contract;
  Stack stack(contract, slots);
  kw_tensor views[KW_MAX_ARGUMENTS];
  std::vector<kw_tensor> elements(stack.elements());
  kw_argument inputs[KW_MAX_ARGUMENTS] = {};
  kw_attribute attributes[KW_MAX_ARGUMENTS];
  size_t used = 0;
  for (size_t i = 0; i < contract.inputs.size(); i++) {
    const Input& input = contract.inputs[i];
    if (input.type.list) {
      inputs[i] = {elements.data() + used, static_cast<int32_t>(stack.size(i))};
      for (size_t k = 0; k < stack.size(i); k++) read(op, input, stack.element(i, k), elements[used++]);
    } else if (stack.tensor(i)) {
      read(op, input, stack.tensor(i), views[i]);
      inputs[i] = {&views[i], 1};
    }
  }
  for (size_t i = 0; i < contract.attributes.size(); i++) attributes[i] = read_attribute(op, i, slots[contract.inputs.size() + i], stack);

  size_t outputs = 0;
  for (const Result& r : contract.results) outputs += r.kind == Result::Kind::output;
  Handle results[KW_MAX_ARGUMENTS] = {};
  call(op, inputs, attributes, {.saved = result_count > outputs, .empty_for_absent = true}, results);
  for (size_t i = 0; i < result_count; i++) slots[i] = reinterpret_cast<Slot>(results[i]);
}

// No exception of ours crosses into torch, and nothing with a destructor lives in a frame that torch's exception crosses: with a static
// libgcc either one ends the process. So `attempt` leaves a sentence in kw_last_error, and `kernel` lets torch throw it.
[[gnu::noinline]] bool attempt(int index, Slot* slots, uint64_t results) noexcept {
  return guarded([&] { run(*ops()[static_cast<size_t>(index)], slots, results); }) == KW_OK;
}

void kernel(int index, Slot* slots, uint64_t results) {
  if (!attempt(index, slots, results)) shim().aoti_torch_check(false, "kernelwright", "", 0, kw_last_error());
}

template <int index>
void slot(Slot* slots, uint64_t, uint64_t results) {
  kernel(index, slots, results);
}

template <int... index>
constexpr std::array<BoxedKernel, sizeof...(index)> make_table(std::integer_sequence<int, index...>) {
  return {&slot<index>...};
}

}  // namespace

BoxedKernel trampoline(int index) {
  static constexpr auto table = make_table(std::make_integer_sequence<int, max_ops>());
  return table.at(static_cast<size_t>(index));
}

}  // namespace kw::torch_face
