#include "emulator/engine/shadow.h"

#include <sys/mman.h>

#include <new>

namespace kwemu {
// A page more than asked for: an access may straddle the last cell.
Cell* map_cells(size_t count) {
  void* p = mmap(nullptr, count * sizeof(Cell) + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : (Cell*)p;
}
void unmap_cells(Region* r) {
  if (r->cells) munmap(r->cells, r->cell_count * sizeof(Cell) + 4096);
  r->cells = nullptr;
  r->cell_count = 0;
}
void refine(Region* r, u32 shift) {
  size_t factor = size_t(1) << (r->shift - shift), count = r->cell_count * factor;
  Cell* finer = map_cells(count);
  if (!finer) {
    if (!current) throw std::bad_alloc();
    report("out-of-memory", nullptr, "no memory for the shadow of %s", r->name.c_str());
    stop_launch();
  }
  for (size_t i = 0; i < r->cell_count; i++)
    if (r->cells[i].write | r->cells[i].flags | r->cells[i].read1)
      for (size_t j = 0; j < factor; j++) finer[i * factor + j] = r->cells[i];
  unmap_cells(r);
  r->cells = finer;
  r->cell_count = count;
  r->shift = shift;
}

namespace {
const char* uninit_kind(const Region* r) { return r->shared ? "uninit-shared" : "uninit-global"; }
const char* race_kind(const Region* r, u64 e) {
  for (const Acquired* a : {(const Acquired*)&current->pending, (const Acquired*)&current->block->pending}) {
    auto i = a->find(gang_of(e));  // it was released to us; only the fence on our side is missing
    if (i != a->end() && thread_of(e) < i->second->size() && clock_of(e) <= (*i->second)[thread_of(e)]) return "no-acquire-fence";
  }
  return r->shared ? "shared-race" : "global-race";
}
}  // namespace

void check_read(Region* r, u64 address, u64 bytes, void* pc, bool relaxed) {
  u64 count;
  Cell* c = cells_of(r, address, bytes, count);
  Thread* t = current;
  u64 mine = now(t);
  for (u64 i = 0; i < count; i++, c++) {
    if (c->flags & kPendingWrite && (!r->shared || is_init(r, c))) {
      report("async-pending", pc, "read of %s, which an asynchronous copy is still filling (no wait)", name_of_address(r, address).c_str());
      return;
    }
    if (!is_init(r, c)) [[unlikely]] {
      report(uninit_kind(r), pc, "read of %s, which was never written", name_of_address(r, address).c_str());
      return;
    }
    if (c->write && other_thread(c->write, mine) && !(relaxed && (c->flags & kAtomic)) && !ordered(c->write, t)) [[unlikely]] {
      report(race_kind(r, c->write), pc, "read of %s, written by %s at %s with no ordering between", name_of_address(r, address).c_str(),
             name_of_epoch(c->write).c_str(), place(full_pc(c->write_pc)).c_str());
      return;
    }
    if (relaxed) continue;
    if (c->flags & kManyAtomics) {
      if (!ordered(c->read2, t)) {
        report(race_kind(r, c->read2), pc, "read of %s, changed by an atomic of %s with no ordering between",
               name_of_address(r, address).c_str(), name_of_epoch(c->read2).c_str());
        return;
      }
      c->flags &= 31 & ~(u32)kManyAtomics;
      c->read2 = 0;
    }
    if (c->read1 == mine) continue;
    if (!c->read1 || !other_thread(c->read1, mine) || ordered(c->read1, t)) {
      c->read1 = mine;
      c->read_pc = short_pc(pc);
    } else {
      c->read2 = mine;  // two unordered readers are kept
    }
  }
}

void check_write(Region* r, u64 address, u64 bytes, void* pc, bool atomic, u32 flags) {
  u64 count;
  Cell* c = cells_of(r, address, bytes, count);
  Thread* t = current;
  u64 mine = now(t);
  auto unordered = [&](u64 e) { return e && other_thread(e, mine) && !ordered(e, t); };
  for (u64 i = 0; i < count; i++, c++) {
    if (r->shared && !is_init(r, c)) *c = {};  // of a block that has gone
    if (c->flags & (kPendingWrite | kPendingRead)) {
      report("async-pending", pc, "write to %s, which an asynchronous copy still uses", name_of_address(r, address).c_str());
      return;
    }
    bool both_atomic = atomic && (c->flags & kAtomic), write_conflict = !both_atomic && unordered(c->write);
    u64 conflict = 0;
    if (write_conflict) {
      bool may_be_equal = !atomic && !(c->flags & kAtomic) && gang_of(c->write) == engine.gang && bytes <= 16 && !engine.options.strict;
      if (!may_be_equal) {
        conflict = c->write;
      } else if (!t->same_bytes) {
        t->same_bytes = (u32)bytes;
        t->same_at = address;
        t->same_other = c->write;
        t->same_pc = pc;
        memcpy(t->same_value, (void*)address, bytes);
      }
    }
    bool by_write = conflict != 0;
    if (!conflict && !both_atomic) conflict = unordered(c->read1) ? c->read1 : unordered(c->read2) ? c->read2 : 0;
    if (conflict) [[unlikely]] {
      std::string there = by_write               ? place(full_pc(c->write_pc))
                          : conflict == c->read1 ? place(full_pc(c->read_pc))
                                                 : "an unrecorded place";
      report(race_kind(r, conflict), pc, "%s of %s, %s by %s at %s with no ordering between", atomic ? "atomic" : "write",
             name_of_address(r, address).c_str(), by_write ? "written" : "read", name_of_epoch(conflict).c_str(), there.c_str());
      return;
    }
    u64 other_atomic = 0;
    if (both_atomic) other_atomic = unordered(c->write) ? c->write : (c->flags & kManyAtomics) && !ordered(c->read2, t) ? c->read2 : 0;
    c->write = mine;
    c->read1 = 0;
    c->read2 = other_atomic;
    c->flags = (flags | (atomic ? (u32)kAtomic : 0) | (other_atomic ? (u32)kManyAtomics : 0)) & 31;
    c->write_pc = short_pc(pc);
  }
}

void check_same_value_now() {
  Thread* t = current;
  if (memcmp(t->same_value, (void*)t->same_at, t->same_bytes))
    report(t->same_at - engine.shared < engine.shared_bytes ? "shared-race" : "global-race", t->same_pc,
           "write of another value than %s stored, with no ordering between", name_of_epoch(t->same_other).c_str());
  t->same_bytes = 0;
}
}  // namespace kwemu
