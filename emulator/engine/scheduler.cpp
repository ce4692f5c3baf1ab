// Runs the fibers of a gang until all have finished, or the launch is stopped.
#include <algorithm>

#include "emulator/engine/shadow.h"

namespace kwemu {
void swap_in(Block* b) {
  if (engine.in_place == b) return;
  if (engine.block_count > 1) {  // the part between the launch's dynamic shared memory and its capacity is never touched
    u64 head = std::min(engine.dynamic_offset + engine.launch.shared_bytes, engine.shared_bytes);
    u64 tail = std::min(engine.dynamic_offset + kMaxDynamicShared, engine.shared_bytes);
    auto move = [&](char* to, const char* from) {
      memcpy(to, from, head);
      memcpy(to + tail, from + tail, engine.shared_bytes - tail);
    };
    if (engine.in_place) move(engine.in_place->saved, (char*)engine.shared);
    move((char*)engine.shared, b->saved);
  }
  engine.in_place = b;
}

void finish_thread() {
  Thread* t = current;
  check_same_value();
  Block* b = t->block;
  if (engine.options.detect) check_async_at_exit(t);
  t->state = kDone;
  b->done++;
  b->warps[t->tid >> 5].exited |= 1u << t->lane;
  try_warp(b, t->tid >> 5);
  try_block(b);
  if (!engine.options.detect || b->done != b->thread_count) return;
  const auto known = [&](u32 thread, u32 clock) {
    return clock <= b->base[thread] || std::any_of(b->threads.begin(), b->threads.end(),
                                                   [&](const Thread* own) { return !own->clocks.empty() && clock <= own->clocks[thread]; });
  };
  for (auto& [thread, clock] : b->remote)
    if (!known(thread, clock)) {
      report("cluster-exit", nullptr, "cluster block %u may exit while another block still uses its shared memory", b->rank);
      break;
    }
}

namespace {
// One warp runs as far as it can while the others stand still: turns a race into wrong results.
void keep_one_warp(Block& b, std::vector<Thread*>& run, u32& warp) {
  auto in_warp = [&](Thread* t) { return t->tid >> 5 == warp; };
  if (std::none_of(run.begin(), run.end(), in_warp)) warp = run[engine.random() % run.size()]->tid >> 5;
  for (auto* t : run)
    if (!in_warp(t)) b.ready.push_back(t);
  std::erase_if(run, [&](Thread* t) { return !in_warp(t); });
}

// __activemask: the lanes of a warp that wait at the same place.
bool release_active_mask(Block& b) {
  bool progress = false;
  for (u32 w = 0; w < b.warps.size() && !progress; w++) {
    u32 mask = 0;
    void* pc = nullptr;
    u32 lanes = std::min<u32>(32, b.thread_count - w * 32);
    for (u32 i = 0; i < lanes; i++) {
      Thread* t = b.threads[w * 32 + i];
      if (t->state != kAtActiveMask || (pc && t->pc != pc)) continue;
      pc = t->pc;
      mask |= 1u << i;
    }
    for (u32 i = 0; i < lanes; i++) {
      if (!(mask >> i & 1)) continue;
      Thread* t = b.threads[w * 32 + i];
      memcpy(t->value, &mask, 4);
      make_ready(t);
      progress = true;
    }
  }
  return progress;
}

void report_deadlock() {
  static const char* const names[] = {"ready",        "the block barrier", "the cluster barrier", "a warp collective",
                                      "__activemask", "an mbarrier"};
  std::map<std::string, u32> waiting;
  bool seen[kDone + 1] = {};
  Thread* first = nullptr;
  for (auto& t : engine.threads) {
    seen[t.state] = true;
    waiting[t.state == kDone ? "have exited" : std::string("wait at ") + names[t.state] + " at " + place(t.pc)]++;
    if (t.state != kDone && !first) first = &t;
  }
  std::string list;
  for (auto& [what, count] : waiting) list += (list.empty() ? "" : ", ") + std::to_string(count) + " threads " + what;
  const char* kind = seen[kAtWarpOp]           ? "shuffle-inactive"
                     : seen[kAtMbarrier]       ? "mbarrier-deadlock"
                     : seen[kAtClusterBarrier] ? "cluster-divergence"
                                               : "barrier-divergence";
  current = first;
  report(kind, first ? first->pc : nullptr, "no thread can go on: %s", list.c_str());
  current = nullptr;
  engine.stopped = true;
}
}  // namespace

void run_gang() {
  std::vector<Thread*> run;
  u32 warp = 0;
  auto& blocks = engine.blocks;
  while (!engine.stopped) {
    bool progress = false;
    u32 done = 0;
    for (u32 r = 0; r < engine.block_count; r++) {
      Block& b = *blocks[r];
      while (!b.ready.empty() && !engine.stopped) {
        progress = true;
        run.swap(b.ready);
        b.ready.clear();
        swap_in(&b);
        kwemu_regs.bx = b.bx;
        kwemu_regs.by = b.by;
        kwemu_regs.bz = b.bz;
        kwemu_regs.rank = b.rank;
        kwemu_regs.cluster = engine.block_count;
        switch (engine.options.schedule) {
          case kInOrder:
            break;
          case kShuffle:
            std::shuffle(run.begin(), run.end(), engine.random);
            break;
          case kReverse:
            std::reverse(run.begin(), run.end());
            break;
          case kGreedy:
            keep_one_warp(b, run, warp);
            break;
        }
        for (auto* t : run) {
          resume(t);
          if (engine.stopped) return;
        }
        if (engine.block_count > 1) break;  // other blocks get a turn
      }
      done += b.done;
    }
    if (progress) continue;
    if (done == engine.thread_count) return;
    for (u32 r = 0; r < engine.block_count && !progress; r++) progress = land_one_bulk_copy(blocks[r].get());
    for (u32 r = 0; r < engine.block_count && !progress; r++) progress = release_active_mask(*blocks[r]);
    if (!progress) report_deadlock();
  }
}
}  // namespace kwemu
