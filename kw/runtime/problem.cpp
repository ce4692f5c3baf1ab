#include "kw/runtime/problem.h"

#include "kw/core/error.h"
#include "kw/core/rows.h"
#include "kw/runtime/dispatch.h"

namespace kw {
namespace {

bool chooses(Attribute::Type type) {
  return type == Attribute::Type::integer || type == Attribute::Type::boolean || type == Attribute::Type::enumeration;
}

bool is_nonzero(const Bound& bound, size_t attribute) {
  return bound.op->contract.attributes[attribute].type == Attribute::Type::floating && bound.raw.attributes[attribute].f != 0;
}

uint32_t present_results(const Bound& bound) {
  uint32_t present = 0;
  for (size_t i = 0; i < bound.op->contract.results.size(); i++) present |= static_cast<uint32_t>(bound.raw.results[i].count > 0) << i;
  return present;
}

int64_t elements(const kw_tensor& t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t.rank; d++) n *= t.sizes[d];
  return n;
}

// The address bits that some row of the tensor has set. A tensor of one number per row has no rows to load as vectors.
uint64_t address_bits(const kw_tensor& t, int32_t inner) {
  if (inner == 0 || elements(t) == 0) return 0;
  uint64_t bits = reinterpret_cast<uintptr_t>(t.data);
  for (int32_t d = 0; d < t.rank - inner; d++)
    if (t.sizes[d] > 1) bits |= static_cast<uint64_t>(t.strides[d]) * static_cast<uint64_t>(dtype_bytes(t.dtype));
  return bits;
}

uint64_t address_bits(const kw_argument& argument, const TensorType& type) {
  uint64_t bits = 0;
  for (int32_t i = 0; i < argument.count; i++) bits |= address_bits(argument.tensors[i], row_rank(type));
  return bits;
}

}  // namespace

int32_t alignment_of(const Bound& bound) {
  const Contract& contract = bound.op->contract;
  uint64_t bits = 16;
  for (size_t i = 0; i < contract.inputs.size(); i++) bits |= address_bits(bound.raw.inputs[i], contract.inputs[i].type);
  for (size_t i = 0; i < contract.results.size(); i++) bits |= address_bits(bound.raw.results[i], contract.results[i].type);
  return static_cast<int32_t>(bits & -bits);
}

bool is_strided(const Bound& bound) {
  const Contract& contract = bound.op->contract;
  const auto strided = [](const kw_argument& argument, const TensorType& type) {
    const int32_t inner = row_rank(type);
    for (int32_t i = 0; i < argument.count; i++) {
      if (argument.tensors[i].rank < inner + 2) continue;
      RowLayout rows;
      fold_rows(argument.tensors[i], inner, rows);
      if (rows.distances > 1) return true;
    }
    return false;
  };
  for (size_t i = 0; i < contract.inputs.size(); i++)
    if (strided(bound.raw.inputs[i], contract.inputs[i].type)) return true;
  for (size_t i = 0; i < contract.results.size(); i++)
    if (strided(bound.raw.results[i], contract.results[i].type)) return true;
  return false;
}

bool is_empty(const Bound& bound) {
  const Contract& contract = bound.op->contract;
  bool any = false;
  auto has_elements = [&](const kw_argument& argument) {
    for (int32_t i = 0; i < argument.count; i++) {
      any = true;
      if (elements(argument.tensors[i])) return true;
    }
    return false;
  };
  for (size_t i = 0; i < contract.results.size(); i++)
    if (contract.results[i].kind != Result::Kind::scratch && has_elements(bound.raw.results[i])) return false;
  for (size_t i = 0; i < contract.inputs.size(); i++)
    if (contract.inputs[i].type.written && has_elements(bound.raw.inputs[i])) return false;
  return any;
}

ProblemKey problem_key(const Bound& bound, int32_t device, int32_t alignment) {
  const Contract& contract = bound.op->contract;
  ProblemKey key;
  auto add = [&](uint64_t word) {
    if (key.words == ProblemKey::capacity) throw Error(KW_ERROR_CONTRACT, bound.op->contract.name + " has too many attributes");
    key.word[key.words++] = word;
  };
  uint32_t nonzero = 0;
  for (size_t i = 0; i < contract.attributes.size(); i++) nonzero |= static_cast<uint32_t>(is_nonzero(bound, i)) << i;
  add(static_cast<uint64_t>(bound.op->index) << 32 | nonzero << 16 | bound.present);
  add(static_cast<uint64_t>(device) << 32 | present_results(bound) << 8 | static_cast<uint64_t>(is_strided(bound)) << 7 |
      static_cast<uint64_t>(alignment));
  for (size_t i = 0; i < contract.dims.size(); i++) add(contract.dim_variadic[i] ? ~uint64_t{0} : static_cast<uint64_t>(bound.dims[i]));
  uint64_t packed = 0;
  for (size_t i = 0; i < contract.types.size(); i++) {
    packed = packed << 8 | static_cast<uint64_t>(bound.dtypes[i]);
    if (i % 8 == 7) add(packed), packed = 0;
  }
  if (contract.types.size() % 8) add(packed);
  for (size_t i = 0; i < contract.attributes.size(); i++)
    if (chooses(contract.attributes[i].type)) add(static_cast<uint64_t>(bound.raw.attributes[i].i));
  return key;
}

void throw_room_error(const Op& op, int32_t status, const kw_message& message) {
  std::string text(message.text, strnlen(message.text, sizeof message.text));
  if (!text.starts_with(op.contract.name)) text = op.contract.name + ": " + text;
  throw Error(static_cast<kw_status>(status), std::move(text));
}

kw_choice choose_kernels(const Bound& bound, int32_t alignment, const kw_device_facts& gpu) {
  const Op& op = *bound.op;
  const Contract& contract = op.contract;
  if (!op.def->choose || !op.def->fill) throw Error(KW_ERROR_UNSUPPORTED, contract.name + " has no CUDA kernel");
  int64_t dims[KW_MAX_SYMBOLS];
  for (size_t i = 0; i < contract.dims.size(); i++) dims[i] = contract.dim_variadic[i] ? -1 : bound.dims[i];
  std::vector<kw_attribute> attributes(contract.attributes.size(), kw_attribute{});
  for (size_t i = 0; i < attributes.size(); i++)
    if (chooses(contract.attributes[i].type))
      attributes[i] = bound.raw.attributes[i];
    else if (contract.attributes[i].type == Attribute::Type::floating)
      attributes[i].f = is_nonzero(bound, i);
  kw_problem problem{&op.signature, dims, bound.dtypes, attributes.data(), bound.present, alignment, present_results(bound)};
  kw_choice choice{};
  kw_message message{};
  if (int32_t status = op.def->choose(&problem, &gpu, &choice, &message)) throw_room_error(op, status, message);
  if (choice.kernel_count < 1 || choice.kernel_count > KW_MAX_LAUNCHES)
    throw Error(KW_ERROR_CONTRACT,
                format("%s: the room chose %d kernels; 1 to %d are possible", contract.name.c_str(), choice.kernel_count, KW_MAX_LAUNCHES));
  return choice;
}

void fill_launches(const Bound& bound, const kw_device_facts& gpu, const kw_choice& choice, kw_plan& plan) {
  kw_message message;
  message.text[0] = '\0';
  plan.launch_count = 0;
  if (int32_t status = bound.op->def->fill(&bound.raw, &gpu, &choice, &plan, &message)) throw_room_error(*bound.op, status, message);
}

}  // namespace kw
