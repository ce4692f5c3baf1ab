// A registered op, and the registry: the only list of ops there is.
#pragma once
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "kw/core/contract.h"

namespace kw {

struct Op {
  int index = 0;  // in the registry; never changes
  const kw_op_def* def = nullptr;
  const kw_room* room = nullptr;
  Contract contract;
  kw_signature signature{};  // points into `names`
  std::vector<const char*> names;
  mutable std::atomic<uint64_t> calls{0};  // finished calls, on any device: what `kernelwright.calls()` reads
};

// Ops in order of registration: the built-in rooms by name, then those of user libraries. Pointers stay valid for the process.
const std::vector<const Op*>& ops();
const Op* find_op(std::string_view name);  // null when there is none
const Op& get_op(std::string_view name);   // throws, naming what there is
// Parses and adds a room's ops. Throws KW_ERROR_CONTRACT when a contract is malformed, a name is taken or the ABI differs; then nothing is
// added.
void register_room(const kw_room* room);
// Text that device code may include, by path ("kw/device/row.cuh"); null when unknown. KW_KERNEL_PATH is not looked at here.
const kw_source* find_source(std::string_view path);

}  // namespace kw
