#include "kw/core/registry.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "kw/core/contract_names.h"
#include "kw/core/error.h"
#include "kw/core/rooms.h"

namespace kw {
namespace {

// What a reader sees: never changed once published, so that looking up takes no lock. Registrations are few; old states are kept, because
// somebody may still be reading one.
struct State {
  const State* previous = nullptr;
  std::vector<const Op*> ops;
  std::vector<const kw_room*> rooms;
  std::unordered_map<std::string_view, const Op*> by_name;
  std::unordered_map<std::string_view, const kw_source*> sources;
};

std::mutex writing;
std::atomic<const State*> current{nullptr};

[[noreturn]] void refuse(const std::string& sentence) { throw Error(KW_ERROR_CONTRACT, sentence); }

void add_sources(State& state, const kw_source* sources, const char* room) {
  if (!sources) return;
  for (const kw_source* s = sources; s->path; s++) {
    if (!s->text) refuse(format("the room %s has a source %s without text", room, s->path));
    auto [place, fresh] = state.sources.emplace(s->path, s);
    if (!fresh && place->second != s) refuse(format("the room %s brings a source %s, which is there already", room, s->path));
  }
}

void check_def(const kw_op_def* def, const char* room, int32_t i) {
  if (!def) refuse(format("op %d of the room %s is null", i, room));
  if (def->struct_size < sizeof(kw_op_def))
    refuse(format("op %d of the room %s was built for a smaller kw_op_def (%u bytes, but %zu are needed)", i, room, def->struct_size,
                  sizeof(kw_op_def)));
  if (def->abi_version != KW_ABI_VERSION)
    refuse(format("op %d of the room %s was built for ABI version %u, but this library has %d", i, room, def->abi_version, KW_ABI_VERSION));
  if (!def->contract) refuse(format("op %d of the room %s has no contract", i, room));
}

void check_functions(const Op& op) {
  const kw_op_def& d = *op.def;
  const char* missing = !d.choose ? "choose" : !d.fill ? "fill" : !d.cpu ? "cpu" : !d.reference ? "reference" : nullptr;
  if (missing) refuse(format("%s: the room gives no function '%s'", op.contract.name.c_str(), missing));
  if (d.bench_count < 0 || (d.bench_count > 0 && !d.bench)) refuse(format("%s: the room gives no bench cases", op.contract.name.c_str()));
  for (int32_t i = 0; i < d.bench_count; i++)
    if (!d.bench[i].arguments) refuse(format("%s: bench case %d is null", op.contract.name.c_str(), i));
}

void make_signature(Op& op) {
  const Contract& c = op.contract;
  auto add_all = [&](const auto& list, auto name) {
    for (const auto& item : list) op.names.push_back(name(item));
  };
  auto by_name = [](const auto& item) { return item.name.c_str(); };
  add_all(c.inputs, by_name);
  add_all(c.results, by_name);
  add_all(c.attributes, by_name);
  add_all(c.dims, [](const std::string& s) { return s.c_str(); });
  add_all(c.types, by_name);
  kw_signature& s = op.signature;
  s.name = c.name.c_str();
  const char* const* next = op.names.data();
  auto part = [&](size_t count, const char* const*& list, int32_t& length) {
    list = next;
    length = static_cast<int32_t>(count);
    next += count;
  };
  part(c.inputs.size(), s.inputs, s.input_count);
  part(c.results.size(), s.results, s.result_count);
  part(c.attributes.size(), s.attributes, s.attribute_count);
  part(c.dims.size(), s.dims, s.dim_count);
  part(c.types.size(), s.types, s.type_count);
}

void check_room(const State& state, const kw_room* room) {
  if (!room) refuse("the room is null");
  if (room->struct_size < sizeof(kw_room))
    refuse(format("a room was built for a smaller kw_room (%u bytes, but %zu are needed)", room->struct_size, sizeof(kw_room)));
  if (room->abi_version != KW_ABI_VERSION)
    refuse(format("a room was built for ABI version %u, but this library has %d", room->abi_version, KW_ABI_VERSION));
  if (!room->name) refuse("a room has no name");
  if (auto why = refuse_name(room->name)) refuse(format("the name of the room '%.64s' %s", room->name, why->c_str()));
  for (const kw_room* other : state.rooms)
    if (std::string_view(other->name) == room->name) refuse(format("there is a room %s already", room->name));
  if (room->op_count < 1 || !room->ops) refuse(format("the room %s has no ops", room->name));
}

// A state with the rooms added; owns the new ops until it is published.
struct Draft {
  std::unique_ptr<State> state;
  std::vector<std::unique_ptr<Op>> fresh;
};

Draft draft(const State* base, const std::vector<const kw_room*>& rooms) {
  Draft d;
  d.state = base ? std::make_unique<State>(*base) : std::make_unique<State>();
  State& s = *d.state;
  s.previous = base;
  if (!base) add_sources(s, kw_device_sources, "device");
  for (const kw_room* room : rooms) {
    if (std::find(s.rooms.begin(), s.rooms.end(), room) != s.rooms.end()) continue;
    check_room(s, room);
    s.rooms.push_back(room);
    for (int32_t i = 0; i < room->op_count; i++) {
      check_def(room->ops[i], room->name, i);
      auto op = std::make_unique<Op>();
      op->index = static_cast<int>(s.ops.size());
      op->def = room->ops[i];
      op->room = room;
      op->contract = parse_contract(op->def->contract);
      check_functions(*op);
      if (const auto other = s.by_name.find(op->contract.name); other != s.by_name.end())
        refuse(format("%s: the room %s brings an op of this name, but the room %s has one", op->contract.name.c_str(), room->name,
                      other->second->room->name));
      make_signature(*op);
      s.by_name.emplace(op->contract.name, op.get());
      s.ops.push_back(op.get());
      d.fresh.push_back(std::move(op));
    }
    add_sources(s, room->sources, room->name);
  }
  for (const auto& op : d.fresh) {
    if (!op->contract.gradient) continue;
    const auto backward = s.by_name.find(op->contract.gradient->op);
    if (backward == s.by_name.end())
      refuse(format("%s: its gradient is %s, but there is no such op", op->contract.name.c_str(), op->contract.gradient->op.c_str()));
    check_backward(op->contract, backward->second->contract);
  }
  return d;
}

const State* publish(Draft d) {
  for (auto& op : d.fresh) static_cast<void>(op.release());  // for the life of the process
  const State* state = d.state.release();
  current.store(state, std::memory_order_release);
  return state;
}

const State& registry() {
  if (const State* state = current.load(std::memory_order_acquire)) return *state;
  std::lock_guard lock(writing);
  if (const State* state = current.load(std::memory_order_relaxed)) return *state;
  std::vector<const kw_room*> rooms;
  for (const kw_room* const* room = built_in_rooms; *room; room++) rooms.push_back(*room);
  return *publish(draft(nullptr, rooms));
}

}  // namespace

const std::vector<const Op*>& ops() { return registry().ops; }

const Op* find_op(std::string_view name) {
  const auto& by_name = registry().by_name;
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const Op& get_op(std::string_view name) {
  if (const Op* op = find_op(name)) return *op;
  std::string known;
  for (const Op* op : ops()) known += (known.empty() ? "" : ", ") + op->contract.name;
  throw Error(KW_ERROR_ARGUMENT, format("there is no op '%.*s'; there are: %s", static_cast<int>(std::min<size_t>(name.size(), 64)),
                                        name.data(), known.empty() ? "none" : known.c_str()));
}

void register_room(const kw_room* room) { register_rooms({room}); }

void register_rooms(const std::vector<const kw_room*>& rooms) {
  registry();  // the built-in rooms come first
  std::lock_guard lock(writing);
  publish(draft(current.load(std::memory_order_relaxed), rooms));
}

const kw_source* find_source(std::string_view path) {
  const auto& sources = registry().sources;
  auto found = sources.find(path);
  return found == sources.end() ? nullptr : found->second;
}

}  // namespace kw
