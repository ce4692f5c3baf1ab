#include "emulator/engine/clocks.h"

#include <algorithm>

namespace kwemu {
u32 tick(Thread* t) {
  if (t->clock >= kMaxClock) {
    report("clock-limit", t->pc, "a thread passed %u synchronisation points in one launch: the emulator cannot count further", kMaxClock);
    engine.stopped = true;
    return t->clock;
  }
  return t->clock++;
}

void join(Clocks& into, const Clocks& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (size_t i = 0; i < from.size(); i++) into[i] = std::max(into[i], from[i]);
}

void publish(Thread* t, Clocks& into) {
  join(into, t->block->base);
  join(into, t->clocks);
  u32 first = t->gid - t->lane;
  for (u32 i = 0; i < 32; i++)
    if (first + i < engine.thread_count && engine.threads[first + i].block == t->block)
      into[first + i] = std::max(into[first + i], t->warp_clocks[i]);
  into[t->gid] = tick(t);
}

void merge_block(Block* b) {
  Clocks more;
  for (auto* t : b->threads) {
    if (!t->clocks.empty()) {
      join(more, t->clocks);
      t->clocks.clear();
    }
    for (auto& [gang, s] : t->acquired) b->acquired[gang] = s;
    t->acquired.clear();
    for (auto& [gang, s] : t->pending) b->pending[gang] = s;
    if (t->fence) join(b->fence, *t->fence);
  }
  if (!more.empty()) join(b->base, more);
  for (auto* t : b->threads) b->base[t->gid] = tick(t);
}

// Relaxed atomics carry order only together with fences: a fence before the releasing one, a fence after the acquiring one.
void touch_atomic(u64 address, bool release, bool acquire) {
  Thread* t = current;
  Acquired& carried = engine.atomics[address];
  if (acquire)
    for (auto& [gang, s] : carried) t->pending[gang] = s;
  if (!release || (!t->fence && t->block->fence.empty())) return;
  auto made = std::make_shared<Clocks>();
  if (t->fence) *made = *t->fence;
  join(*made, t->block->fence);
  if (made->size() < engine.clock_count) made->resize(engine.clock_count, 0);
  (*made)[t->gid] = tick(t);  // the atomic itself is part of what is released
  Snapshot& mine = carried[engine.gang];
  if (mine) join(*made, *mine);
  mine = made;
}
}  // namespace kwemu

extern "C" __attribute__((visibility("default"))) void kwemu_fence() {
  using namespace kwemu;
  Thread* t = current;
  if (!t) return;
  for (auto& [gang, s] : t->pending) {
    if (gang == engine.gang)
      join(t->clocks, *s);
    else
      t->acquired[gang] = s;
  }
  for (auto& [gang, s] : t->block->pending)
    if (gang != engine.gang) t->acquired[gang] = s;
  t->pending.clear();
  auto s = std::make_shared<Clocks>(engine.clock_count, 0);
  publish(t, *s);
  t->fence = s;
}
