// Where GPU threads meet: warp collectives, block, cluster and grid barriers.
#include <algorithm>

#include "emulator/engine/requests.h"
#include "emulator/engine/shadow.h"

namespace kwemu {
namespace {
i64 combine(u32 reduction, i64 a, i64 b) {
  switch (reduction) {
    case KWEMU_RED_ADD:
      return a + b;
    case KWEMU_RED_MIN:
      return std::min(a, b);
    case KWEMU_RED_MAX:
      return std::max(a, b);
    case KWEMU_RED_AND:
      return a & b;
    case KWEMU_RED_OR:
      return a | b;
    default:
      return a ^ b;
  }
}

void order_warp(Thread* const lanes[32]) {  // __syncwarp orders memory, the other collectives do not
  u32 clocks[32] = {};
  Clocks more;
  Acquired acquired;
  for (u32 i = 0; i < 32; i++) {
    Thread* t = lanes[i];
    if (!t) continue;
    for (int k = 0; k < 32; k++) clocks[k] = std::max(clocks[k], t->warp_clocks[k]);
    clocks[i] = tick(t);
    if (!t->clocks.empty()) join(more, t->clocks);
    for (auto& [gang, s] : t->acquired) acquired[gang] = s;
  }
  for (u32 i = 0; i < 32; i++) {
    Thread* t = lanes[i];
    if (!t) continue;
    memcpy(t->warp_clocks, clocks, sizeof clocks);
    if (!more.empty()) join(t->clocks, more);
    for (auto& [gang, s] : acquired) t->acquired[gang] = s;
  }
}

void complete_warp(Block* b, u32 warp, Collective& c) {
  Thread* lanes[32];
  char in[32][16];
  u32 ballot = 0, arrived = c.arrived;
  for (u32 i = 0; i < 32; i++) {
    lanes[i] = arrived >> i & 1 ? b->threads[warp * 32 + i] : nullptr;
    if (!lanes[i]) continue;
    memcpy(in[i], lanes[i]->value, 16);
    ballot |= (u32)(in[i][0] & 1) << i;
  }
  int op = lanes[__builtin_ctz(arrived)]->warp_op;
  if (op == KWEMU_SYNC) order_warp(lanes);
  const Warp& w = b->warps[warp];
  if (engine.options.access && arrived == (w.lanes & ~w.exited)) lanes_met(b, warp);
  c = Collective{};
  for (u32 i = 0; i < 32; i++) {
    Thread* t = lanes[i];
    if (!t) continue;
    if (op == KWEMU_SHUFFLE) {
      if (arrived >> t->source_lane & 1) {
        memcpy(t->value, in[t->source_lane], 16);
      } else {
        Thread* saved = current;
        current = t;
        report("shuffle-inactive", t->pc, "the shuffle reads lane %u, which does not take part", t->source_lane);
        current = saved;
      }
    } else if (op == KWEMU_BALLOT) {
      memcpy(t->value, &ballot, 4);
    } else if (op == KWEMU_MATCH) {
      u64 mask = 0;
      for (u32 j = 0; j < 32; j++)
        if (lanes[j] && !memcmp(in[j], in[i], 8)) mask |= 1ull << j;
      memcpy(t->value, &mask, 8);
    } else if (op == KWEMU_REDUCE) {
      i64 sum = 0, x;
      bool first = true;
      for (u32 j = 0; j < 32; j++) {
        if (!lanes[j]) continue;
        memcpy(&x, in[j], 8);
        sum = first ? x : combine(t->source_lane, sum, x);
        first = false;
      }
      memcpy(t->value, &sum, 8);
    }
    if (t->state == kAtWarpOp) make_ready(t);
  }
}
}  // namespace

void try_warp(Block* b, u32 warp) {
  Warp& w = b->warps[warp];
  for (auto& c : w.open) {
    u32 needed = c.mask & w.lanes & ~w.exited;
    if (c.mask && c.arrived && (c.arrived & needed) == needed) complete_warp(b, warp, c);
  }
}

void try_block(Block* b) {
  if (!b->waiting || b->waiting + b->done < b->thread_count) return;
  Thread* first = nullptr;
  for (auto* t : b->threads) {
    if (t->state != kAtBlockBarrier) continue;
    if (!first) {
      first = t;
    } else if (!same_line(t->pc, first->pc)) {
      report("barrier-divergence", first->pc, "%s waits here, but %s waits at %s", name_of(first).c_str(), name_of(t).c_str(),
             place(t->pc).c_str());
      engine.stopped = true;
      return;
    }
  }
  if (b->done) report("exit-before-barrier", first->pc, "%u threads of the block have exited, %u wait here", b->done, b->waiting);
  merge_block(b);
  if (engine.options.access) block_met(b);
  int votes[3] = {(int)b->votes, b->votes == b->waiting, b->votes > 0};
  b->waiting = b->votes = 0;
  for (auto* t : b->threads) {
    if (t->state != kAtBlockBarrier) continue;
    memcpy(t->value, votes, sizeof votes);
    make_ready(t);
  }
}
}  // namespace kwemu

using namespace kwemu;
namespace {
void wait_for_block(void* pc) {
  check_same_value();
  Thread* t = current;
  t->state = kAtBlockBarrier;
  t->pc = pc;
  t->block->waiting++;
  try_block(t->block);
  to_scheduler();
}
void wait_for_cluster(void* pc) {
  check_same_value();
  current->state = kAtClusterBarrier;
  current->pc = pc;
  if (++engine.cluster_waiting == engine.thread_count) {
    Clocks all(engine.clock_count, 0);
    for (u32 r = 0; r < engine.block_count; r++) {
      merge_block(engine.blocks[r].get());
      if (engine.options.access) block_met(engine.blocks[r].get());
      join(all, engine.blocks[r]->base);
    }
    for (u32 r = 0; r < engine.block_count; r++) engine.blocks[r]->base = all;
    for (auto& t : engine.threads)
      if (t.state == kAtClusterBarrier) make_ready(&t);
    engine.cluster_waiting = 0;
    engine.cluster_barriers++;
  }
  to_scheduler();
}
}  // namespace

KWEMU_EXPORT void kwemu_block_barrier() { wait_for_block(KWEMU_PC); }
KWEMU_EXPORT int kwemu_block_vote(int op, int predicate) {
  current->block->votes += predicate != 0;
  wait_for_block(KWEMU_PC);
  int votes[3];
  memcpy(votes, current->value, sizeof votes);
  return votes[op];
}
KWEMU_EXPORT void kwemu_cluster_barrier() { wait_for_cluster(KWEMU_PC); }
KWEMU_EXPORT void kwemu_grid_barrier() {
  if (!engine.launch.cooperative) {
    report("grid-sync", KWEMU_PC, "grid barrier in a kernel that was not launched cooperatively");
    stop_launch();
  }
  wait_for_cluster(KWEMU_PC);
}

static void copy_value(void* to, const void* from, unsigned bytes) {
  if (bytes == 16)
    memcpy(to, from, 16);  // a shuffle, in line
  else if (bytes)
    memcpy(to, from, bytes);
}
KWEMU_EXPORT void kwemu_warp_op(int op, unsigned mask, void* value, unsigned bytes, unsigned source) {
  Thread* t = current;
  Block* b = t->block;
  Warp& w = b->warps[t->tid >> 5];
  check_same_value();
  if (!(mask >> t->lane & 1)) {
    report("shuffle-inactive", KWEMU_PC, "the calling lane %u is not in its own mask 0x%08x", t->lane, mask);
    stop_launch();
  }
  t->warp_op = op;
  t->source_lane = source;
  t->pc = KWEMU_PC;
  copy_value(t->value, value, bytes);
  Collective *mine = nullptr, *empty = nullptr;
  for (auto& c : w.open) {
    if (!c.arrived) {
      if (!empty) empty = &c;
    } else if (c.mask == mask) {
      mine = &c;
    }
  }
  if (mine) {
    Thread* o = b->threads[(t->tid & ~31u) + (u32)__builtin_ctz(mine->arrived)];
    if (o->warp_op != op || !same_line(o->pc, t->pc)) {
      report("warp-divergence", t->pc, "collective with mask 0x%08x, but lane %u waits with the same mask at %s", mask, o->lane,
             place(o->pc).c_str());
      stop_launch();
    }
  } else if (!(mine = empty)) {
    report("warp-divergence", t->pc, "more than eight collectives at once in a warp");
    stop_launch();
  }
  mine->mask = mask;
  mine->arrived |= 1u << t->lane;
  u32 needed = mask & w.lanes & ~w.exited;
  t->state = kAtWarpOp;
  if ((mine->arrived & needed) == needed) {
    t->state = kReady;  // the last one goes on without a switch
    complete_warp(b, t->tid >> 5, *mine);
  } else {
    to_scheduler();
  }
  copy_value(value, t->value, bytes);
}

KWEMU_EXPORT unsigned kwemu_active_mask() {
  current->state = kAtActiveMask;
  current->pc = KWEMU_PC;
  to_scheduler();
  unsigned mask;
  memcpy(&mask, current->value, 4);
  return mask;
}
