#include "emulator/engine/access.h"

#include <algorithm>

#include "emulator/engine/requests.h"

namespace kwemu {
namespace {
const char* verb(int kind) { return kind == kRead || kind == kVolatileRead ? "read" : kind == kAtomicAccess ? "atomic" : "write"; }
using ull = unsigned long long;

Region* peer_region(u64 address, void* pc) {
  Block* b = engine.blocks[(address - engine.peers) / engine.peer_stride].get();
  if (!engine.cluster_barriers)
    report("cluster-start", pc, "access to shared memory of another block before the first cluster barrier: it may not have started");
  if (b->done == b->thread_count) report("cluster-exit", pc, "access to shared memory of cluster block %u, which has exited", b->rank);
  b->remote[current->gid] = current->clock;
  return &b->shared;
}

void spin() {  // a volatile read or an atomic: others get a turn, so that what it waits for can come
  Thread* t = current;
  if (++t->spins > 2'000'000) {
    report("livelock", t->pc, "%s polls for ever; a block that waits for another needs a cooperative launch", name_of(t).c_str());
    stop_launch();
  }
  if (t->spins % 16 == 0) {
    t->block->ready.push_back(t);
    to_scheduler();
  }
}

// The variable that ends in the gap (assembly.cpp puts 256 bytes between two) where the address lies.
const Symbol* variable_before(u64 address) {
  const Symbol* best = nullptr;
  for (const Symbol& s : engine.module->variables)
    if (s.writable && address - engine.module->bias - s.hi < 256 && (!best || s.hi > best->hi)) best = &s;
  return best;
}

[[noreturn]] void beyond_variable(const Symbol& s, u64 address, u64 bytes, int kind, void* pc) {
  report("global-oob", pc, "%s of %llu bytes at byte %llu of %llu of variable %s", verb(kind), (ull)bytes,
         (ull)(address - engine.module->bias - s.lo), (ull)(s.hi - s.lo), s.name.c_str());
  stop_launch();
}

void other_memory(u64 address, u64 bytes, int kind, void* pc) {
  if (address >= engine.module->lo && address < engine.module->hi) {
    Region* r = variable_region(address);
    if (r && engine.options.access) note_access(r, address, bytes, kind, false, pc);
    if (!engine.options.detect) return;
    if (!r) {
      if (const Symbol* s = variable_before(address)) beyond_variable(*s, address, bytes, kind, pc);
      return;
    }
    if (address + bytes > r->hi) {
      report("global-oob", pc, "%s of %llu bytes at %s", verb(kind), (ull)bytes, name_of_address(r, address).c_str());
      stop_launch();
    }
    bool read = kind == kRead || kind == kVolatileRead;
    if (read)
      check_read(r, address, bytes, pc, kind == kVolatileRead);
    else
      check_write(r, address, bytes, pc, kind != kWrite);
    return;
  }
  if (address - (u64)engine.stacks < engine.stack_count * kStackBytes)
    report("local-oob", pc, "%s of another thread's local memory", verb(kind));
  else if (address < 4096)
    report("null-pointer", pc, "%s at address %llu of a null pointer", verb(kind), (ull)address);
  else if (const Symbol* s = variable_before(address))
    beyond_variable(*s, address, bytes, kind, pc);
  else
    report("host-memory", pc, "%s of %llu bytes at %p, which is not device memory", verb(kind), (ull)bytes, (void*)address);
  stop_launch();
}

void host_access(u64 address, u64 bytes, int kind, void* pc) {
  Region* r = engine.pages ? engine.pages[(address - engine.device) / kRedZone] : nullptr;
  if (!r || !r->for_host) {
    report("host-access", pc, "the host's code %ss %llu bytes at %s", verb(kind), (ull)bytes,
           r ? name_of_address(r, address).c_str() : "an address of the device");
  } else if (r->freed || address < r->lo || address + bytes > r->hi) {
    report(r->freed ? "use-after-free" : "global-oob", pc, "the host's code %ss %llu bytes in %s", verb(kind), (ull)bytes,
           name_of_address(r, address).c_str());
  }
}

[[noreturn]] void step_limit(void* pc) {
  report("step-limit", pc, "stopped after %llu accesses, in %s", (ull)engine.options.step_limit, name_of(current).c_str());
  stop_launch();
}
}  // namespace

Region* variable_region(u64 address) {
  for (Module* m : engine.modules) {
    if (address < m->lo || address >= m->hi) continue;
    auto i = std::upper_bound(m->variables.begin(), m->variables.end(), address - m->bias, [](u64 v, const Symbol& s) { return v < s.lo; });
    if (i == m->variables.begin()) return nullptr;
    --i;
    if (address - m->bias >= i->hi) return nullptr;
    auto& r = m->variable_regions[i->lo];
    if (!r) {
      r = std::make_unique<Region>();
      r->lo = i->lo + m->bias;
      r->hi = i->hi + m->bias;
      r->name = "variable " + i->name;
      r->all_init = true;
      r->cell_count = (r->hi - r->lo + 3) / 4;
      r->cells = map_cells(r->cell_count);
    }
    return r->cells ? r.get() : nullptr;
  }
  return nullptr;
}

inline __attribute__((always_inline)) Region* find_shared(u64 address, u64 bytes) {  // null: out of bounds
  u64 offset = address - engine.shared;
  if (offset >= engine.dynamic_offset && offset < engine.dynamic_offset + kMaxDynamicShared)
    return offset + bytes <= engine.dynamic_offset + engine.launch.shared_bytes ? &engine.in_place->shared : nullptr;
  if (offset >= engine.shared_bytes) return nullptr;
  u16 s = engine.module->shared_map[offset >> 4];
  if (s >= kGuardUnit) return nullptr;
  const Symbol& symbol = engine.module->shared_symbols[s];
  return offset >= symbol.lo && offset + bytes <= symbol.hi ? &engine.in_place->shared : nullptr;
}
inline __attribute__((always_inline)) Region* find_global(u64 address, u64 bytes) {
  Region* r = engine.pages[(address - engine.device) / kRedZone];
  return r && !r->freed && address >= r->lo && address + bytes <= r->hi ? r : nullptr;
}

Region* shared_region(u64 address, u64 bytes, void* pc, int kind) {
  if (Region* found = find_shared(address, bytes)) return found;
  u64 offset = address - engine.shared;
  Region* r = &engine.in_place->shared;
  if (offset >= engine.dynamic_offset && offset < engine.dynamic_offset + kMaxDynamicShared) {
    report("shared-oob", pc, "%s of %llu bytes at byte %llu of dynamic shared memory, of which the launch gave %u", verb(kind), (ull)bytes,
           (ull)(offset - engine.dynamic_offset), engine.launch.shared_bytes);
  } else {
    report("shared-oob", pc, "%s of %llu bytes just outside %s", verb(kind), (ull)bytes, name_of_address(r, address).c_str());
  }
  stop_launch();
}

Region* global_region(u64 address, u64 bytes, void* pc, int kind) {
  Region* r = address - engine.device < kDeviceBytes ? engine.pages[(address - engine.device) / kRedZone] : nullptr;
  if (r && !r->freed && address >= r->lo && address + bytes <= r->hi) return r;
  if (!r)
    report("global-oob", pc, "%s of %llu bytes at %p, outside every allocation", verb(kind), (ull)bytes, (void*)address);
  else
    report(r->freed ? "use-after-free" : "global-oob", pc, "%s of %llu bytes in %s", verb(kind), (ull)bytes,
           name_of_address(r, address).c_str());
  stop_launch();
}

void access(u64 address, u64 bytes, int kind, void* pc) {
  Thread* t = current;
  if (!t) {  // the host: a constructor of the module, or the host code of a program
    if (address - engine.device < kDeviceBytes) [[unlikely]]
      host_access(address, bytes, kind, pc);
    return;
  }
  if (address - (u64)t->stack < kStackBytes) return;
  check_same_value();
  if (++engine.steps > engine.options.step_limit) [[unlikely]]
    step_limit(pc);
  Region* r;
  bool shared = false, peer = false;
  if (address - engine.device < kDeviceBytes) {
    r = find_global(address, bytes);
    if (!r) [[unlikely]]
      global_region(address, bytes, pc, kind);
  } else if (address - engine.shared < engine.shared_bytes) {
    shared = true;
    r = find_shared(address, bytes);
    if (!r) [[unlikely]] {
      if (engine.module->shared_map[(address - engine.shared) >> 4] == kGuardUnit) return;
      shared_region(address, bytes, pc, kind);
    }
  } else if (engine.peers && address - engine.peers < engine.peer_stride * engine.block_count) {
    shared = peer = true;
    r = peer_region(address, pc);
    u64 offset = (address - engine.peers) % engine.peer_stride;
    address = engine.shared + offset;
    bool dynamic = offset >= engine.dynamic_offset && offset < engine.dynamic_offset + kMaxDynamicShared;
    if (dynamic && offset + bytes > engine.dynamic_offset + engine.launch.shared_bytes) {
      report("shared-oob", pc, "%s past the dynamic shared memory of another block", verb(kind));
      stop_launch();
    }
  } else {
    return other_memory(address, bytes, kind, pc);
  }
  if (engine.options.access) [[unlikely]]
    note_access(r, address, bytes, kind, peer, pc);
  bool read = kind == kRead || kind == kVolatileRead;
  if (engine.options.detect) {
    if (kind == kRead ? plain_read(r, address, bytes, pc) : kind == kWrite && plain_write(r, address, bytes, pc)) return;
    if (read)
      check_read(r, address, bytes, pc, kind == kVolatileRead && !shared);
    else
      check_write(r, address, bytes, pc, kind == kAtomicAccess || (kind == kVolatileWrite && !shared));
  }
  if (kind >= kVolatileRead) {
    t->pc = pc;
    if (engine.options.detect && kind == kVolatileRead) touch_atomic(address, false, true);
    if (engine.options.detect && kind == kVolatileWrite) touch_atomic(address, true, false);
    if (kind != kVolatileWrite) spin();
  }
}
}  // namespace kwemu

// ---- the compiler's callbacks; the assembly was edited to call them by these names ------------------------------------------------
using namespace kwemu;
#define KWEMU_ACCESS(n)                                                                                            \
  KWEMU_EXPORT void kwemu_tsan_read##n(void* p) { access((u64)p, n, kRead, KWEMU_PC); }                            \
  KWEMU_EXPORT void kwemu_tsan_write##n(void* p) { access((u64)p, n, kWrite, KWEMU_PC); }                          \
  KWEMU_EXPORT void kwemu_tsan_unaligned_read##n(void* p) { access((u64)p, n, kRead, KWEMU_PC); }                  \
  KWEMU_EXPORT void kwemu_tsan_unaligned_write##n(void* p) { access((u64)p, n, kWrite, KWEMU_PC); }                \
  KWEMU_EXPORT void kwemu_tsan_volatile_read##n(void* p) { access((u64)p, n, kVolatileRead, KWEMU_PC); }           \
  KWEMU_EXPORT void kwemu_tsan_volatile_write##n(void* p) { access((u64)p, n, kVolatileWrite, KWEMU_PC); }         \
  KWEMU_EXPORT void kwemu_tsan_unaligned_volatile_read##n(void* p) { access((u64)p, n, kVolatileRead, KWEMU_PC); } \
  KWEMU_EXPORT void kwemu_tsan_unaligned_volatile_write##n(void* p) { access((u64)p, n, kVolatileWrite, KWEMU_PC); }
KWEMU_ACCESS(1)
KWEMU_ACCESS(2)
KWEMU_ACCESS(4)
KWEMU_ACCESS(8)
KWEMU_ACCESS(16)
KWEMU_EXPORT void kwemu_tsan_init() {}
KWEMU_EXPORT void kwemu_tsan_read_range(void* p, size_t n) { access((u64)p, n, kRead, KWEMU_PC); }
KWEMU_EXPORT void kwemu_tsan_write_range(void* p, size_t n) { access((u64)p, n, kWrite, KWEMU_PC); }
KWEMU_EXPORT void kwemu_tsan_vptr_update(void**, void*) {}
KWEMU_EXPORT void kwemu_tsan_vptr_read(void**) {}
KWEMU_EXPORT void* kwemu_memcpy(void* to, const void* from, size_t n) {
  if (n) access((u64)from, n, kRead, KWEMU_PC), access((u64)to, n, kWrite, KWEMU_PC);
  return memcpy(to, from, n);
}
KWEMU_EXPORT void* kwemu_memmove(void* to, const void* from, size_t n) {
  if (n) access((u64)from, n, kRead, KWEMU_PC), access((u64)to, n, kWrite, KWEMU_PC);
  return memmove(to, from, n);
}
KWEMU_EXPORT void* kwemu_memset(void* to, int value, size_t n) {
  if (n) access((u64)to, n, kWrite, KWEMU_PC);
  return memset(to, value, n);
}
KWEMU_EXPORT unsigned long kwemu_shared_offset(const void* p) { return (u64)p - engine.shared; }
KWEMU_EXPORT char* kwemu_shared_address(unsigned long offset) { return (char*)engine.shared + offset; }
