// Shadow cells: who wrote and read these bytes last, and whether they hold a value. The race and initialisation checks.
#pragma once
#include "emulator/engine/clocks.h"

namespace kwemu {
Cell* map_cells(size_t count);
void unmap_cells(Region*);
void refine(Region*, u32 shift);  // smaller cells, same content

// The cells of [address, address + bytes); their number in `count`.
inline Cell* cells_of(Region* r, u64 address, u64 bytes, u64& count) {
  u64 offset = address - r->lo;
  if ((offset | bytes) & ((1u << r->shift) - 1)) [[unlikely]]
    refine(r, (offset | bytes) & 1 ? 0 : 1);
  count = bytes >> r->shift;
  return r->cells + (offset >> r->shift);
}
inline bool is_init(const Region* r, const Cell* c) {
  return r->shared ? gang_of(c->write) == engine.gang : r->all_init || (c->flags & kInit);
}
// Of the running thread. `relaxed`: an atomic or volatile access, which may meet atomics in any order.
void check_read(Region*, u64 address, u64 bytes, void* pc, bool relaxed);
void check_write(Region*, u64 address, u64 bytes, void* pc, bool atomic, u32 flags = kInit);

// The usual case, in line: nobody else of this launch has been here. False: nothing was changed, the full check decides.
inline bool quiet(u64 e, u64 mine) { return !other_thread(e, mine) || gang_of(e) < engine.first_gang; }
inline bool plain_read(Region* r, u64 address, u64 bytes, void* pc) {
  u64 count, mine = now(current);
  Cell* c = cells_of(r, address, bytes, count);
  for (u64 i = 0; i < count; i++) {
    bool calm = !(c[i].flags & (kPendingWrite | kManyAtomics)) && is_init(r, &c[i]) && quiet(c[i].write, mine);
    if (!calm || !(quiet(c[i].read1, mine) || c[i].read2 == mine)) return false;
  }
  for (u64 i = 0; i < count; i++)
    if (c[i].read2 != mine) c[i].read1 = mine, c[i].read_pc = short_pc(pc);
  return true;
}
inline bool plain_write(Region* r, u64 address, u64 bytes, void* pc) {
  u64 count, mine = now(current);
  Cell* c = cells_of(r, address, bytes, count);
  for (u64 i = 0; i < count; i++) {
    if (r->shared && !is_init(r, &c[i])) continue;  // left by a block that has gone
    if (c[i].flags & (kPendingWrite | kPendingRead) || !quiet(c[i].write, mine)) return false;
    if (!quiet(c[i].read1, mine) || !quiet(c[i].read2, mine)) return false;
  }
  for (u64 i = 0; i < count; i++) c[i] = {mine, 0, 0, kInit, short_pc(pc), 0};
  return true;
}
// Several threads of a block may store the same value to one place; whether it is the same is seen after the store.
void check_same_value_now();
inline void check_same_value() {
  if (current->same_bytes) [[unlikely]]
    check_same_value_now();
}
}  // namespace kwemu
