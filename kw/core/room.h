// What a room writes against: names instead of indices, exceptions instead of status codes. Header-only over abi.h, so that a room
// compiled by another g++ brings its own copy and nothing but C crosses the border.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "kw/core/dtype.h"
#include "kw/core/error.h"
#include "kw/core/rows.h"

namespace kw {

namespace detail {
// Names of one contract are few and short: a linear search costs 3-5 ns, a hash more.
inline int find_name(const char* const* names, int32_t count, std::string_view name, const char* op, const char* kind) {
  for (int32_t i = 0; i < count; i++)
    if (name == names[i]) return i;
  throw Error(KW_ERROR_CONTRACT, format("%s: the room asks for the %s '%.*s', which its contract does not have", op, kind,
                                        static_cast<int>(name.size()), name.data()));
}
}  // namespace detail

// The part of a call that may choose a kernel.
class Problem {
 public:
  explicit Problem(const kw_problem& raw) : raw_(raw), names_(*raw.signature) {}
  int64_t dim(std::string_view name) const { return raw_.dims[index(names_.dims, names_.dim_count, name, "dimension")]; }
  DType dtype(std::string_view name) const {
    return static_cast<DType>(raw_.dtypes[index(names_.types, names_.type_count, name, "type variable")]);
  }
  const char* type(std::string_view name) const { return dtype_facts[dtype(name)].device; }  // its name in device code
  bool has(std::string_view input) const { return raw_.present >> index(names_.inputs, names_.input_count, input, "input") & 1u; }
  bool wants(std::string_view result) const { return raw_.results >> index(names_.results, names_.result_count, result, "result") & 1u; }
  bool is_zero(std::string_view attribute) const {  // of a float: its value chooses no kernel
    return raw_.attributes[index(names_.attributes, names_.attribute_count, attribute, "attribute")].f == 0;
  }
  int64_t choice(std::string_view attribute) const {  // int, bool or enumeration
    return raw_.attributes[index(names_.attributes, names_.attribute_count, attribute, "attribute")].i;
  }
  int alignment() const { return raw_.alignment; }  // bytes that divide the address of every row of every tensor: 1 to 16

 private:
  int index(const char* const* list, int32_t count, std::string_view name, const char* kind) const {
    return detail::find_name(list, count, name, names_.name, kind);
  }
  const kw_problem& raw_;
  const kw_signature& names_;
};

// A checked call: views, attributes, dimensions.
class Call {
 public:
  explicit Call(const kw_bound& raw) : raw_(raw), names_(*raw.signature) {}
  // An input or a result; null when it is absent.
  const kw_tensor* tensor(std::string_view name) const {
    for (int32_t i = 0; i < names_.input_count; i++)
      if (name == names_.inputs[i]) return raw_.inputs[i].count ? raw_.inputs[i].tensors : nullptr;
    const kw_argument& a = raw_.results[index(names_.results, names_.result_count, name, "tensor")];
    return a.count ? a.tensors : nullptr;
  }
  bool has(std::string_view name) const { return tensor(name) != nullptr; }
  void* data(std::string_view name) const {
    const kw_tensor* t = tensor(name);
    return t ? t->data : nullptr;
  }
  int64_t dim(std::string_view name) const { return raw_.dims[index(names_.dims, names_.dim_count, name, "dimension")]; }
  DType dtype(std::string_view name) const {
    return static_cast<DType>(raw_.dtypes[index(names_.types, names_.type_count, name, "type variable")]);
  }
  double attr(std::string_view name) const { return attribute(name).f; }
  int64_t choice(std::string_view name) const { return attribute(name).i; }
  // Where the rows of a tensor lie, for a kernel's Params and for CPU kernels: as<T>(p.x, row), rows.at(row). `inner`: how many of its last
  // dimensions make a row. Null and zero distances when the tensor is absent.
  Rows rows(std::string_view name, int32_t inner = 1) const {
    const kw_tensor* t = tensor(name);
    return t ? rows_of(*t, inner) : Rows{};
  }

 private:
  int index(const char* const* list, int32_t count, std::string_view name, const char* kind) const {
    return detail::find_name(list, count, name, names_.name, kind);
  }
  const kw_attribute& attribute(std::string_view name) const {
    return raw_.attributes[index(names_.attributes, names_.attribute_count, name, "attribute")];
  }
  const kw_bound& raw_;
  const kw_signature& names_;
};

// The kernels that `choose` picks, by source file and C++ expression.
class Choice {
 public:
  explicit Choice(kw_choice& raw) : raw_(raw) { raw_.kernel_count = 0; }
  int kernel(const char* source, const std::string& expression) {
    if (raw_.kernel_count == KW_MAX_LAUNCHES) throw Error(KW_ERROR_CONTRACT, "a call has at most 4 kernels");
    kw_kernel& k = raw_.kernels[raw_.kernel_count];
    if (std::strlen(source) >= sizeof k.source || expression.size() >= sizeof k.name)
      throw Error(KW_ERROR_CONTRACT, format("the name of the kernel %s is too long", expression.c_str()));
    std::strcpy(k.source, source);
    std::strcpy(k.name, expression.c_str());
    return raw_.kernel_count++;
  }
  int32_t& tile(int i) { return raw_.tile[i]; }
  // Or all at once, what `fill` gets back through tile_of<Tile>(choice): a small struct of the room's own.
  template <class Tile>
  void tile(const Tile& tile) {
    static_assert(std::is_trivially_copyable_v<Tile> && sizeof(Tile) <= sizeof raw_.tile);
    std::memcpy(raw_.tile, &tile, sizeof tile);
  }

 private:
  kw_choice& raw_;
};
template <class Tile>
Tile tile_of(const kw_choice& choice) {
  Tile tile;
  std::memcpy(&tile, choice.tile, sizeof tile);
  return tile;
}

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};
// As many blocks as `count` things need at `each` of them per block.
inline Grid grid_for(int64_t count, int64_t each) {
  const int64_t blocks = (count + each - 1) / each;
  if (blocks > 0x7fffffff)
    throw Error(KW_ERROR_UNSUPPORTED, format("%lld blocks are more than one launch may have", static_cast<long long>(blocks)));
  return {static_cast<uint32_t>(blocks)};
}

// The launches that `fill` writes down.
class Launches {
 public:
  explicit Launches(kw_plan& raw) : raw_(raw) { raw_.launch_count = 0; }
  template <class Params>
  void add(int kernel, Grid grid, uint32_t threads, const Params& params, uint32_t shared_bytes = 0, uint32_t cluster = 0) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= KW_PARAMS_BYTES);
    if (raw_.launch_count == KW_MAX_LAUNCHES) throw Error(KW_ERROR_CONTRACT, "a call has at most 4 launches");
    kw_launch& l = raw_.launches[raw_.launch_count++];
    l.kernel = kernel;
    l.grid[0] = grid.x, l.grid[1] = grid.y, l.grid[2] = grid.z;
    l.block[0] = threads, l.block[1] = l.block[2] = 1;
    l.cluster = cluster;
    l.shared_bytes = shared_bytes;
    l.params_bytes = sizeof(Params);
    std::memcpy(l.params, &params, sizeof(Params));
  }

 private:
  kw_plan& raw_;
};

namespace detail {
template <class F>
int32_t guarded(kw_message* message, F&& body) noexcept {  // no exception crosses the border
  try {
    body();
    return KW_OK;
  } catch (const Error& e) {
    message->status = e.status();
    std::snprintf(message->text, sizeof message->text, "%s", e.what());
  } catch (const std::exception& e) {
    message->status = KW_ERROR_INTERNAL;
    std::snprintf(message->text, sizeof message->text, "%s", e.what());
  } catch (...) {
    message->status = KW_ERROR_INTERNAL;
    std::snprintf(message->text, sizeof message->text, "a room threw something that is no std::exception");
  }
  return message->status;
}
}  // namespace detail

// An op: its contract and four functions.
//   void choose(const Problem&, const kw_device_facts&, Choice&)                         pure
//   void fill(const Call&, const kw_device_facts&, const kw_choice&, Launches&)          pure
//   void cpu(const Call&)
//   void reference(const Call&)                                                          in double
template <auto choose, auto fill, auto cpu, auto reference>
constexpr kw_op_def make_op(const char* contract, const kw_bench_case* bench, int32_t bench_count) {
  kw_op_def op{};
  op.struct_size = sizeof(kw_op_def);
  op.abi_version = KW_ABI_VERSION;
  op.contract = contract;
  op.choose = [](const kw_problem* p, const kw_device_facts* gpu, kw_choice* out, kw_message* m) -> int32_t {
    return detail::guarded(m, [&] {
      Choice c(*out);
      choose(Problem(*p), *gpu, c);
    });
  };
  op.fill = [](const kw_bound* b, const kw_device_facts* gpu, const kw_choice* c, kw_plan* out, kw_message* m) -> int32_t {
    return detail::guarded(m, [&] {
      Launches l(*out);
      fill(Call(*b), *gpu, *c, l);
    });
  };
  op.cpu = [](const kw_bound* b, kw_message* m) -> int32_t { return detail::guarded(m, [&] { cpu(Call(*b)); }); };
  op.reference = [](const kw_bound* b, kw_message* m) -> int32_t { return detail::guarded(m, [&] { reference(Call(*b)); }); };
  op.bench = bench;
  op.bench_count = bench_count;
  return op;
}
template <auto choose, auto fill, auto cpu, auto reference>
constexpr kw_op_def make_op(const char* contract) {
  return make_op<choose, fill, cpu, reference>(contract, nullptr, 0);
}
template <auto choose, auto fill, auto cpu, auto reference, int32_t count>
constexpr kw_op_def make_op(const char* contract, const kw_bench_case (&bench)[count]) {
  return make_op<choose, fill, cpu, reference>(contract, bench, count);
}

}  // namespace kw

// KW_ROOM(rms_norm, &forward, &backward) closes a room's .cpp: the one symbol that the generated registry refers to.
// The build embeds every .cuh of the folder as kw_room_<name>_sources.
#define KW_ROOM(room, ...)                                                                        \
  extern "C" const kw_source kw_room_##room##_sources[];                                          \
  static constexpr const kw_op_def* kw_room_##room##_ops[] = {__VA_ARGS__};                       \
  extern "C" const kw_room kw_room_##room;                                                        \
  const kw_room kw_room_##room = {sizeof(kw_room),                                                \
                                  KW_ABI_VERSION,                                                 \
                                  #room,                                                          \
                                  kw_room_##room##_ops,                                           \
                                  sizeof(kw_room_##room##_ops) / sizeof(kw_room_##room##_ops[0]), \
                                  kw_room_##room##_sources}
