// Happens-before: is a past epoch known to the running thread?
//
// A thread knows what its block knew at the last barrier (Block::base), what its warp exchanged since (warp_clocks), and what fences,
// mbarriers and clusters brought (clocks, acquired). Gangs of earlier launches are known to all.
#pragma once
#include "emulator/engine/report.h"

namespace kwemu {
inline bool knows(const Thread* t, u32 other, u32 clock) {
  if (other == t->gid || clock <= t->block->base[other]) return true;
  if (other < engine.thread_count && other - t->gid + t->lane < 32u) {
    const Thread& o = engine.threads[other];
    if (o.block == t->block && clock <= t->warp_clocks[o.lane]) return true;
  }
  return !t->clocks.empty() && clock <= t->clocks[other];
}
inline bool ordered(u64 e, const Thread* t) {
  u64 gang = gang_of(e);
  if (gang < engine.first_gang) return true;
  if (gang == engine.gang) return knows(t, thread_of(e), clock_of(e));
  for (const Acquired* a : {&t->acquired, (const Acquired*)&t->block->acquired}) {
    auto i = a->find(gang);
    if (i != a->end() && clock_of(e) <= (*i->second)[thread_of(e)]) return true;
  }
  return false;
}
inline u64 now(const Thread* t) { return epoch(engine.gang, t->gid, t->clock); }
u32 tick(Thread*);                            // the clock before it moves on
void join(Clocks& into, const Clocks& from);  // element-wise maximum
void publish(Thread*, Clocks& into);          // all that the thread knows, and its own moment
void merge_block(Block*);                     // a barrier
void touch_atomic(u64 address, bool release, bool acquire);
}  // namespace kwemu
