// Asynchronous copies. Their data land as late as the program allows, so that a missing wait reads what was there before.
#include "emulator/engine/access.h"
#include "emulator/engine/requests.h"

namespace kwemu {
namespace {
Copy begin_copy(char* to, const char* from, u32 bytes, u32 source_bytes, u32 alignment, bool bulk, void* pc) {
  if ((u64)to % alignment || (u64)from % alignment) {
    report("misaligned", pc, "asynchronous copy of %u bytes: an address is not %u-byte aligned", bytes, alignment);
    stop_launch();
  }
  if (source_bytes) {
    Region* r = global_region((u64)from, source_bytes, pc, kRead);
    if (engine.options.detect) check_read(r, (u64)from, source_bytes, pc, false);
    if (engine.options.access) note_transfer(r, (u64)from, source_bytes, bulk ? Transfer::bulk_load : Transfer::copy_load, pc);
  }
  Region* shared = shared_region((u64)to, bytes, pc, kWrite);
  if (engine.options.detect) check_write(shared, (u64)to, bytes, pc, false, kInit | kPendingWrite);
  if (engine.options.access && !bulk) note_transfer(shared, (u64)to, bytes, Transfer::copy_store, pc);
  memset(to, 0xff, bytes);
  return {to, const_cast<char*>(from), bytes, source_bytes, shared, {}, {}};
}
void land(const Copy& c, u64 e) {
  memcpy(c.to, c.from ? c.from : c.value, c.source_bytes);
  memset(c.to + c.source_bytes, 0, c.bytes - c.source_bytes);
  u64 count;
  Cell* cell = cells_of(c.shared, (u64)c.to, c.bytes, count);
  for (u64 i = 0; i < count; i++) cell[i] = {e, 0, 0, kInit, 0, 0};
}

bool is_peer(u64 address) { return engine.peers && address - engine.peers < engine.peer_stride * engine.block_count; }
Block* owner_of(u64 address) {
  return is_peer(address) ? engine.blocks[(address - engine.peers) / engine.peer_stride].get() : current->block;
}
// In a block's shared memory.
u64 offset_of(void* p) { return is_peer((u64)p) ? ((u64)p - engine.peers) % engine.peer_stride : (u64)p - engine.shared; }
Mbarrier* find_mbarrier(void* barrier, void* pc, const char* what) {
  Block* b = owner_of((u64)barrier);
  auto i = b->mbarriers.find(offset_of(barrier));
  if (i == b->mbarriers.end()) {
    report("mbarrier", pc, "%s on an mbarrier that was not initialised", what);
    stop_launch();
  }
  if (!ordered(i->second.init, current))
    report("mbarrier", pc, "%s: the mbarrier was initialised by %s, with no barrier between", what, name_of_epoch(i->second.init).c_str());
  return &i->second;
}
void complete_phase(Block* b, u64 offset, Mbarrier* m) {
  if (m->pending || m->tx) return;
  m->phase ^= 1;
  m->pending = m->count;
  for (auto* t : b->threads)
    if (t->state == kAtMbarrier && t->mbarrier == offset && (m->phase & 1) != t->parity) {
      join(t->clocks, m->clocks);
      make_ready(t);
    }
}
}  // namespace

bool land_one_bulk_copy(Block* b) {
  for (auto& [offset, m] : b->mbarriers) {
    if (m.queue.empty()) continue;
    swap_in(b);
    Copy c = m.queue.front();
    m.queue.pop_front();
    land(c, epoch(engine.gang, m.agent, ++m.agent_clock));
    m.clocks[m.agent] = m.agent_clock;
    if (!c.release.empty()) join(m.clocks, c.release);
    m.tx -= c.bytes;
    complete_phase(b, offset, &m);
    return true;
  }
  return false;
}

void check_async_at_exit(Thread* t) {
  if (!t->open_copies.empty() || !t->copy_groups.empty() || !t->open_bulk.empty() || !t->bulk_groups.empty())
    report("async-pending", t->pc, "%s exits with an asynchronous copy that was never waited for", name_of(t).c_str());
}
}  // namespace kwemu

using namespace kwemu;
KWEMU_EXPORT void kwemu_cp_async(void* to, const void* from, unsigned bytes, unsigned source_bytes) {
  current->pc = KWEMU_PC;
  current->open_copies.push_back(begin_copy((char*)to, (const char*)from, bytes, source_bytes, bytes, false, KWEMU_PC));
}
KWEMU_EXPORT void kwemu_cp_async_commit() {
  current->copy_groups.push_back(std::move(current->open_copies));
  current->open_copies.clear();
}
KWEMU_EXPORT void kwemu_cp_async_wait(unsigned left) {
  while (current->copy_groups.size() > left) {
    for (auto& c : current->copy_groups.front()) land(c, now(current));
    current->copy_groups.pop_front();
  }
}
KWEMU_EXPORT void kwemu_mbarrier_init(void* barrier, unsigned count) {
  Region* r = shared_region((u64)barrier, 8, KWEMU_PC, kWrite);
  if (engine.options.detect) check_write(r, (u64)barrier, 8, KWEMU_PC, false);
  Mbarrier& m = current->block->mbarriers[offset_of(barrier)];
  m = Mbarrier{};
  m.count = m.pending = count;
  m.clocks.assign(engine.clock_count, 0);
  m.agent = engine.thread_count + engine.next_agent++ % kAgents;
  m.init = now(current);
}
KWEMU_EXPORT void kwemu_mbarrier_arrive(void* barrier, unsigned expected_bytes) {
  Mbarrier* m = find_mbarrier(barrier, KWEMU_PC, "arrive");
  if (!m->pending) {
    report("mbarrier", KWEMU_PC, "more arrivals than the count %u in this phase", m->count);
    stop_launch();
  }
  m->tx += expected_bytes;
  m->pending--;
  publish(current, m->clocks);
  complete_phase(current->block, offset_of(barrier), m);
}
KWEMU_EXPORT void kwemu_mbarrier_wait(void* barrier, unsigned parity) {
  Mbarrier* m = find_mbarrier(barrier, KWEMU_PC, "wait");
  if ((m->phase & 1) != parity) return join(current->clocks, m->clocks);
  current->state = kAtMbarrier;
  current->pc = KWEMU_PC;
  current->mbarrier = offset_of(barrier);
  current->parity = parity;
  to_scheduler();
}
KWEMU_EXPORT void kwemu_bulk_load(void* to, const void* from, unsigned bytes, void* barrier) {
  if (bytes % 16 || !bytes) {
    report("misaligned", KWEMU_PC, "bulk copy of %u bytes: not a positive multiple of 16", bytes);
    stop_launch();
  }
  Mbarrier* m = find_mbarrier(barrier, KWEMU_PC, "bulk copy");
  m->queue.push_back(begin_copy((char*)to, (const char*)from, bytes, bytes, 16, true, KWEMU_PC));
}
KWEMU_EXPORT void kwemu_send_async(void* to, const void* value, unsigned bytes, void* barrier) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || (u64)to % bytes) {
    report("misaligned", KWEMU_PC, "st.async of %u bytes: 4, 8 or 16 bytes at an address that they divide are possible", bytes);
    stop_launch();
  }
  Mbarrier* m = find_mbarrier(barrier, KWEMU_PC, "st.async");
  Block* b = owner_of((u64)to);
  if (b != owner_of((u64)barrier)) {
    report("mbarrier", KWEMU_PC, "st.async: its destination and its mbarrier lie in different blocks");
    stop_launch();
  }
  access((u64)to, bytes, kWrite, KWEMU_PC);
  Copy c{(char*)engine.shared + offset_of(to), nullptr, bytes, bytes, &b->shared, {}, Clocks(engine.clock_count, 0)};
  memcpy(c.value, value, bytes);
  publish(current, c.release);
  u64 count;
  Cell* cell = cells_of(c.shared, (u64)c.to, bytes, count);
  for (u64 i = 0; i < count; i++) cell[i].flags |= kPendingWrite;
  m->queue.push_back(std::move(c));
}
KWEMU_EXPORT void kwemu_bulk_store(void* to, const void* from, unsigned bytes) {
  if (bytes % 16 || !bytes || (u64)to % 16 || (u64)from % 16) {
    report("misaligned", KWEMU_PC, "bulk store of %u bytes: size and addresses must be multiples of 16", bytes);
    stop_launch();
  }
  Region* global = global_region((u64)to, bytes, KWEMU_PC, kWrite);
  Region* shared = shared_region((u64)from, bytes, KWEMU_PC, kRead);
  if (engine.options.access) note_transfer(global, (u64)to, bytes, Transfer::bulk_store, KWEMU_PC);
  if (engine.options.detect) {
    check_read(shared, (u64)from, bytes, KWEMU_PC, false);
    check_write(global, (u64)to, bytes, KWEMU_PC, false);
    u64 count;
    Cell* c = cells_of(shared, (u64)from, bytes, count);
    for (u64 i = 0; i < count; i++, c++) {
      u32 writer = thread_of(c->write);
      if (writer < engine.thread_count && clock_of(c->write) > engine.threads[writer].proxy_clock) {
        report("proxy-fence", KWEMU_PC, "the bulk store reads shared memory written by %s without fence.proxy.async after the write",
               name_of_epoch(c->write).c_str());
        break;
      }
      c->flags |= kPendingRead;
    }
  }
  current->pc = KWEMU_PC;
  current->open_bulk.push_back({(char*)to, const_cast<char*>((const char*)from), bytes, bytes, shared});
}
KWEMU_EXPORT void kwemu_bulk_commit() {
  current->bulk_groups.push_back(std::move(current->open_bulk));
  current->open_bulk.clear();
}
KWEMU_EXPORT void kwemu_bulk_wait(unsigned left) {
  while (current->bulk_groups.size() > left) {
    for (auto& c : current->bulk_groups.front()) {
      memcpy(c.to, c.from, c.bytes);
      u64 count;
      Cell* cell = cells_of(c.shared, (u64)c.from, c.bytes, count);
      for (u64 i = 0; i < count; i++) cell[i].flags &= ~(u32)kPendingRead;
    }
    current->bulk_groups.pop_front();
  }
}
KWEMU_EXPORT void kwemu_fence_proxy() { current->proxy_clock = tick(current); }
KWEMU_EXPORT void* kwemu_map_shared(void* p, unsigned rank) {
  if (rank >= engine.block_count) {
    report("cluster-rank", KWEMU_PC, "rank %u of a cluster of %u blocks", rank, engine.block_count);
    stop_launch();
  }
  if (rank == current->block->rank) return p;
  return (void*)(engine.peers + rank * engine.peer_stride + ((u64)p - engine.shared));
}
