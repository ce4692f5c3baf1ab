#include "emulator/engine/requests.h"

#include <algorithm>

#include "emulator/engine/access.h"
#include "emulator/engine/report.h"
#include "emulator/engine/request_cost.h"

namespace kwemu {
namespace {
const char* const kNames[] = {"global load",  "global store",  "global atomic",    "shared load",    "shared store", "shared atomic",
                              "cluster load", "cluster store", "copy from global", "copy to shared", "bulk load",    "bulk store"};
constexpr u32 kMostOpen = 1u << 15;  // requests of one instruction and warp between two meetings (270 bytes each); later ones are dropped

struct Request {
  u32 mask = 0, bytes = 0;         // bytes: of a lane
  const Region* region = nullptr;  // of its first lane
  u64 address[32];
};
struct Open {  // one instruction in one warp, since its lanes last met
  std::vector<Request> requests;
  u32 done[32] = {};  // how often each lane has executed it
};
struct Site {  // one instruction of the launch
  void* pc;
  Transfer what;
  u64 bytes, requests = 0, lanes = 0, pieces = 0, least = 0, dropped = 0;
};
struct Moved {
  const Region* region = nullptr;
  u64 read = 0, read_sectors = 0, written = 0, written_sectors = 0;
};

std::vector<Site> sites;
std::unordered_map<u64, u32> site_of;  // pc and kind -> sites
std::map<u64, Moved> moved;            // by the region's address
std::vector<std::vector<Open>> warps;  // by warp of the gang, then by site
u32 warps_of_block = 1;

std::vector<SiteCost> all_sites;
std::vector<BufferCost> all_buffers;
std::map<std::string, u64> launches;  // by kernel

bool is_shared(Transfer t) {
  return t == Transfer::shared_load || t == Transfer::shared_store || t == Transfer::shared_atomic || t == Transfer::copy_store;
}
bool is_global_read(Transfer t) {
  return t == Transfer::global_load || t == Transfer::global_atomic || t == Transfer::copy_load || t == Transfer::bulk_load;
}
bool is_global_write(Transfer t) { return t == Transfer::global_store || t == Transfer::global_atomic || t == Transfer::bulk_store; }

void settle(Site& s, const Request& r) {
  static std::vector<Lane> lanes;
  static std::vector<u32> numbers;
  lanes.clear(), numbers.clear();
  for (u32 i = 0; i < 32; i++)
    if (r.mask >> i & 1) lanes.push_back({r.address[i], r.bytes}), numbers.push_back(i);
  s.requests++;
  s.lanes += lanes.size();
  const Cost cost = is_shared(s.what) ? shared_cost(lanes, numbers) : global_cost(lanes);
  s.pieces += cost.pieces;
  s.least += cost.least;
  Moved& m = moved[r.region->lo];
  m.region = r.region;
  if (is_global_read(s.what)) m.read += cost.bytes, m.read_sectors += cost.pieces;
  if (is_global_write(s.what)) m.written += cost.bytes, m.written_sectors += cost.pieces;
}

void settle_warp(size_t warp) {
  auto& open = warps[warp];
  for (u32 s = 0; s < open.size(); s++) {
    for (const Request& r : open[s].requests)
      if (r.mask) settle(sites[s], r);
    open[s].requests.clear();
    memset(open[s].done, 0, sizeof open[s].done);
  }
}

std::string buffer_name(const Region* r) { return r->allocated_at ? r->name + ", allocated at " + place(r->allocated_at, 1) : r->name; }
}  // namespace

void note_transfer(const Region* region, u64 address, u64 bytes, Transfer what, void* pc) {
  const auto [found, is_new] = site_of.try_emplace((u64)pc << 4 | (u64)what, (u32)sites.size());
  if (is_new) sites.push_back({pc, what, bytes});
  const u32 s = found->second;
  const Thread* t = current;
  auto& open = warps[t->block->rank * warps_of_block + (t->tid >> 5)];
  if (open.size() <= s) open.resize(s + 1);
  Open& o = open[s];
  const u32 n = o.done[t->lane]++;
  if (n >= kMostOpen) {
    sites[s].dropped++;
    return;
  }
  if (o.requests.size() <= n) o.requests.resize(n + 1);
  Request& r = o.requests[n];
  if (!r.mask) r.region = region, r.bytes = (u32)bytes;
  r.mask |= 1u << t->lane;
  r.address[t->lane] = address;
}

void note_access(const Region* region, u64 address, u64 bytes, int kind, bool peer, void* pc) {
  const bool read = kind == kRead || kind == kVolatileRead, atomic = kind == kAtomicAccess;
  Transfer what;
  if (peer)
    what = read ? Transfer::cluster_load : Transfer::cluster_store;
  else if (region->shared)
    what = atomic ? Transfer::shared_atomic : read ? Transfer::shared_load : Transfer::shared_store;
  else
    what = atomic ? Transfer::global_atomic : read ? Transfer::global_load : Transfer::global_store;
  note_transfer(region, address, bytes, what, pc);
}

void begin_access_gang(u32 blocks, u32 warps_of_a_block) {
  for (size_t w = 0; w < warps.size(); w++) settle_warp(w);
  warps_of_block = warps_of_a_block;
  warps.resize(size_t{blocks} * warps_of_a_block);
}
void lanes_met(const Block* b, u32 warp) { settle_warp(b->rank * warps_of_block + warp); }
void block_met(const Block* b) {
  for (u32 w = 0; w < warps_of_block; w++) lanes_met(b, w);
}

void end_access_launch() {
  for (size_t w = 0; w < warps.size(); w++) settle_warp(w);
  warps.clear();
  const std::string& kernel = engine.kernel->expression;
  launches[kernel]++;
  for (const Site& s : sites) {
    const std::string at = place(s.pc, 12), what = kNames[(int)s.what];
    auto same = [&](const SiteCost& c) { return c.kernel == kernel && c.place == at && c.what == what && c.bytes == s.bytes; };
    auto c = std::find_if(all_sites.begin(), all_sites.end(), same);
    if (c == all_sites.end()) c = all_sites.insert(c, SiteCost{kernel, at, what, (u32)s.bytes, 0, 0, 0, 0, 0, 0});
    c->requests += s.requests, c->lanes += s.lanes, c->pieces += s.pieces, c->least += s.least, c->dropped += s.dropped;
  }
  for (const auto& [at, m] : moved) {
    if (m.region->shared || !(m.read | m.written)) continue;
    auto same = [&, at = at](const BufferCost& c) { return c.kernel == kernel && c.at == at; };
    auto c = std::find_if(all_buffers.begin(), all_buffers.end(), same);
    if (c == all_buffers.end()) c = all_buffers.insert(c, BufferCost{kernel, buffer_name(m.region), at, m.region->hi - at, 0, 0, 0, 0, 0});
    c->read += m.read, c->read_sectors += m.read_sectors, c->written += m.written, c->written_sectors += m.written_sectors;
  }
  for (auto& c : all_sites) c.launches = launches[c.kernel];
  for (auto& c : all_buffers) c.launches = launches[c.kernel];
  sites.clear(), site_of.clear(), moved.clear();
}

const std::vector<SiteCost>& site_costs() { return all_sites; }
const std::vector<BufferCost>& buffer_costs() { return all_buffers; }
void clear_costs() { all_sites.clear(), all_buffers.clear(), launches.clear(); }
}  // namespace kwemu
