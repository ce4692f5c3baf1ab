#include "emulator/engine/memory.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>

#include "emulator/engine/access.h"

namespace kwemu {
namespace {
constexpr u64 kPage = kRedZone;
constexpr u64 kPoisonLimit = 64ull << 20;  // larger allocations stay sparse: zero pages, but still "never written"
constexpr u64 kFineLimit = 64ull << 20;    // and get two-byte cells at once, because refining them would cost
u64 in_use = 0;
u64 round_up(u64 n, u64 to) { return (n + to - 1) / to * to; }
}  // namespace

bool start_memory() {
  if (engine.pages) return true;
  auto reserve = [](u64 bytes, int protection) {
    void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? 0 : (u64)p;
  };
  u64 base = reserve(kDeviceBytes + kPage, PROT_NONE);
  u64 pages = reserve(kDeviceBytes / kPage * sizeof(void*), PROT_READ | PROT_WRITE);
  if (!base || !pages) return false;
  engine.device = round_up(base, kPage);
  engine.device_top = engine.device + kRedZone;
  engine.pages = (Region**)pages;
  return true;
}

Region* allocate(u64 bytes) {
  u64 span = round_up(bytes, kPage);
  if (in_use + span > kTotalMemory || engine.device_top + span + kRedZone > engine.device + kDeviceBytes) return nullptr;
  auto r = std::make_unique<Region>();
  r->lo = engine.device_top;
  r->hi = r->lo + bytes;
  if (bytes > kFineLimit) r->shift = 1;
  r->cell_count = (bytes + 3) >> r->shift;
  r->cells = map_cells(r->cell_count);
  if (!r->cells || mprotect((void*)r->lo, span, PROT_READ | PROT_WRITE)) {
    unmap_cells(r.get());
    return nullptr;
  }
  r->name = "allocation " + std::to_string(engine.regions.size() + 1) + " (" + std::to_string(bytes) + " bytes)";
  if (bytes < kPoisonLimit) memset((void*)r->lo, 0xff, bytes);
  engine.device_top += span + kRedZone;
  // The red zone behind an allocation names it too, and so does the one in front of it if nobody else does.
  for (u64 p = (r->lo - kRedZone - engine.device) / kPage; p < (engine.device_top - engine.device) / kPage; p++)
    if (!engine.pages[p] || p >= (r->lo - engine.device) / kPage) engine.pages[p] = r.get();
  in_use += span;
  engine.regions.push_back(std::move(r));
  return engine.regions.back().get();
}

bool release(u64 address) {
  Region* r = find_region(address);
  if (!r || r->lo != address || address - engine.device >= kDeviceBytes) return false;
  u64 span = round_up(r->hi - r->lo, kPage);
  r->freed = true;  // its addresses are never used again, so that a use after this is seen
  unmap_cells(r);
  madvise((void*)r->lo, span, MADV_DONTNEED);
  mprotect((void*)r->lo, span, PROT_NONE);
  in_use -= span;
  return true;
}
u64 allocated_bytes() { return in_use; }

Region* find_region(u64 address) {
  if (address - engine.device >= kDeviceBytes) return variable_region(address);
  Region* r = engine.pages ? engine.pages[(address - engine.device) / kPage] : nullptr;
  return r && !r->freed && address >= r->lo && address < r->hi ? r : nullptr;
}
bool inside(u64 address, u64 bytes) {
  Region* r = find_region(address);
  return r && bytes <= r->hi - address;
}

void host_wrote(u64 address, u64 bytes) {
  Region* r = find_region(address);
  if (!r || r->all_init) return;
  if (address == r->lo && bytes == r->hi - r->lo) {  // the whole: no need to touch every cell
    r->all_init = true;
    return;
  }
  u64 count;
  Cell* c = cells_of(r, address, bytes, count);
  for (u64 i = 0; i < count; i++) c[i] = {0, 0, 0, kInit, 0, 0};
}

void host_reads(u64 address, u64 bytes) {
  Region* r = find_region(address);
  if (!r || r->all_init || !engine.options.detect) return;
  u64 count, bad = 0, first = 0;
  Cell* c = cells_of(r, address, bytes, count);
  for (u64 i = 0; i < count; i++)
    if (!(c[i].flags & kInit) && !bad++) first = i;
  if (bad)
    report("unwritten-output", nullptr, "the host copies %s: %llu of %llu bytes were never written, the first at byte %llu",
           name_of_address(r, address).c_str(), (unsigned long long)(bad << r->shift), (unsigned long long)bytes,
           (unsigned long long)(first << r->shift));
}

void device_copied(u64 to, u64 from, u64 bytes) {
  Region *a = find_region(to), *b = find_region(from);
  if (!a || !b || a->all_init) return;
  if (b->all_init) return host_wrote(to, bytes);
  u64 count;
  cells_of(a, to, bytes, count);  // both fine enough for these addresses, then both the same
  cells_of(b, from, bytes, count);
  u32 shift = std::min(a->shift, b->shift);
  if (a->shift > shift) refine(a, shift);
  if (b->shift > shift) refine(b, shift);
  Cell* source = cells_of(b, from, bytes, count);
  Cell* target = cells_of(a, to, bytes, count);
  for (u64 i = 0; i < count; i++) target[i] = {0, 0, 0, source[i].flags & (u32)kInit, 0, 0};
}

void zero_fill(u64 address, u64 bytes) {
  u64 lo = round_up(address, 4096), hi = (address + bytes) / 4096 * 4096;
  if (bytes < (1u << 20) || address - engine.device >= kDeviceBytes || lo >= hi) {
    memset((void*)address, 0, bytes);
    return;
  }
  memset((void*)address, 0, lo - address);
  madvise((void*)lo, hi - lo, MADV_DONTNEED);
  memset((void*)hi, 0, address + bytes - hi);
}

void poison(u64 address, u64 bytes) {
  Region* r = find_region(address);
  if (!r) return;
  memset((void*)address, 0xff, bytes);
  u64 count;
  Cell* c = cells_of(r, address, bytes, count);
  if (r->all_init) {
    for (u64 i = 0; i < r->cell_count; i++) r->cells[i].flags |= kInit;
    r->all_init = false;
  }
  for (u64 i = 0; i < count; i++) c[i] = {};
}

u64 unwritten_bytes(u64 address) {
  Region* r = find_region(address);
  if (!r || r->all_init) return 0;
  u64 n = 0, cells = (r->hi - r->lo) >> r->shift;
  for (u64 i = 0; i < cells; i++) n += !(r->cells[i].flags & kInit);
  return n << r->shift;
}

void forget_epochs() {
  auto clear = [](Region* r) {
    for (size_t i = 0; i < r->cell_count; i++)
      if (r->cells[i].write | r->cells[i].read1 | r->cells[i].flags) r->cells[i] = {0, 0, 0, r->cells[i].flags & (u32)kInit, 0, 0};
  };
  for (auto& r : engine.regions)
    if (!r->freed) clear(r.get());
  for (auto* m : engine.modules)
    for (auto& [at, r] : m->variable_regions) clear(r.get());
  for (auto& b : engine.blocks) clear(&b->shared);
  engine.gang = 0;
}

u64 shared_base(Module* m) {
  void* base = nullptr;
  auto* table = (const kwemu_module_table*)dlsym(m->handle, "kwemu_module");
  if (table) table->touch_shared();
  dlinfo(m->handle, RTLD_DI_TLS_DATA, &base);
  return (u64)base;
}
}  // namespace kwemu
