// One launch: the gangs of its grid, one after another.
#include <cuda.h>
#include <sys/mman.h>

#include <algorithm>

#include "emulator/engine/memory.h"
#include "emulator/engine/requests.h"
#include "emulator/engine/shadow.h"

namespace kwemu {
namespace {
bool reserve_peers() {
  engine.peer_stride = (engine.shared_bytes + 4095) / 4096 * 4096;
  u64 bytes = engine.peer_stride * engine.block_count;
  if (engine.peers) munmap((void*)engine.peers, engine.peer_bytes);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  engine.peers = p == MAP_FAILED ? 0 : (u64)p;
  engine.peer_bytes = bytes;
  return engine.peers != 0;
}

bool prepare_block(Block& b, u32 rank, u64 index, u32 threads) {
  const auto& l = engine.launch;
  b.bx = (u32)(index % l.grid[0]);
  b.by = (u32)(index / l.grid[0] % l.grid[1]);
  b.bz = (u32)(index / l.grid[0] / l.grid[1]);
  b.rank = rank;
  b.waiting = b.done = b.votes = 0;
  b.thread_count = threads;
  b.threads.clear();
  b.ready.clear();
  b.warps.assign((threads + 31) / 32, Warp{});
  b.base.assign(engine.clock_count, 0);
  b.acquired.clear();
  b.pending.clear();
  b.fence.clear();
  b.mbarriers.clear();
  b.remote.clear();
  b.saved = engine.block_count > 1 ? (char*)engine.peers + rank * engine.peer_stride : nullptr;
  Region& s = b.shared;  // its cells carry the gang, so those of other gangs read as never written
  s.shared = true;
  s.lo = engine.shared;
  s.hi = engine.shared + engine.shared_bytes;
  if ((s.cell_count << s.shift) < engine.shared_bytes + 16) {
    unmap_cells(&s);
    s.shift = 2;
    s.cell_count = engine.shared_bytes / 4 + 64;
    s.cells = map_cells(s.cell_count);
  }
  return s.cells != nullptr;
}

void prepare_thread(Thread& t, Block& b, u32 tid, u32 gid) {
  const auto& l = engine.launch;
  t.tid = tid;
  t.lane = tid & 31;
  t.gid = gid;
  t.clock = 1;
  t.proxy_clock = 0;
  t.state = kReady;
  t.block = &b;
  t.x = tid % l.block[0];
  t.y = tid / l.block[0] % l.block[1];
  t.z = tid / l.block[0] / l.block[1];
  t.pc = nullptr;
  memset(t.warp_clocks, 0, sizeof t.warp_clocks);
  t.clocks.clear();
  t.fence.reset();
  t.pending.clear();
  t.acquired.clear();
  t.open_copies.clear();
  t.open_bulk.clear();
  t.copy_groups.clear();
  t.bulk_groups.clear();
  t.spins = t.same_bytes = 0;
  prepare_fiber(&t, gid);
  b.warps[tid >> 5].lanes |= 1u << t.lane;
  b.threads.push_back(&t);
  b.ready.push_back(&t);
}

bool prepare_gang(u64 first, u32 blocks, u32 threads) {
  engine.gang++;
  engine.block_count = blocks;
  engine.thread_count = threads * blocks;
  engine.clock_count = engine.thread_count + kAgents;
  engine.cluster_waiting = engine.cluster_barriers = engine.next_agent = 0;
  engine.in_place = nullptr;
  if (!reserve_stacks(engine.thread_count)) return false;
  if (engine.threads.size() != engine.thread_count) engine.threads = std::vector<Thread>(engine.thread_count);
  while (engine.blocks.size() < blocks) engine.blocks.push_back(std::make_unique<Block>());
  if (blocks > 1 && !reserve_peers()) return false;
  // Shared memory holds NaN patterns at first, whatever the block before left there.
  if (engine.dynamic_offset < engine.shared_bytes) memset((char*)engine.shared + engine.dynamic_offset, 0xff, engine.launch.shared_bytes);
  for (u32 r = 0; r < blocks; r++) {
    if (!prepare_block(*engine.blocks[r], r, first + r, threads)) return false;
    for (u32 i = 0; i < threads; i++) prepare_thread(engine.threads[r * threads + i], *engine.blocks[r], i, r * threads + i);
  }
  return true;
}

// The bases of the module's shared memory, which belong to the calling OS thread.
void place_shared(Module* m) {
  engine.module = m;
  engine.shared_bytes = m->shared_bytes;
  engine.dynamic_offset = m->dynamic_offset;
  engine.shared = shared_base(m);
  if (engine.peers) munmap((void*)engine.peers, engine.peer_bytes);
  engine.peers = engine.peer_bytes = 0;
}
}  // namespace

int run_launch(const Kernel& kernel, const LaunchConfig& config, void** args, size_t argument_bytes) {
  u64 blocks = (u64)config.grid[0] * config.grid[1] * config.grid[2];
  u32 threads = config.block[0] * config.block[1] * config.block[2];
  u64 gang_blocks = config.cooperative ? blocks : config.cluster;
  if (gang_blocks * threads > kMaxThreads) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  if (blocks / gang_blocks > kMaxGang - 1) return CUDA_ERROR_INVALID_VALUE;
  if (engine.gang + blocks / gang_blocks >= kMaxGang) forget_epochs();
  place_shared(kernel.module);
  engine.launch = config;
  engine.kernel = &kernel;
  engine.args = args;
  engine.argument_bytes = argument_bytes;
  engine.stopped = false;
  engine.launch_errors = 0;
  engine.launch_result = CUDA_SUCCESS;
  engine.steps = engine.switches = 0;
  engine.first_gang = engine.gang + 1;
  engine.atomics.clear();
  begin_launch_reports();
  kwemu_regs.nx = config.block[0];
  kwemu_regs.ny = config.block[1];
  kwemu_regs.nz = config.block[2];
  kwemu_regs.gx = config.grid[0];
  kwemu_regs.gy = config.grid[1];
  kwemu_regs.gz = config.grid[2];
  SignalGuard guard;
  u64 gangs = blocks / gang_blocks;
  std::vector<u64> order;
  bool shuffled = engine.options.schedule == kShuffle || engine.options.schedule == kGreedy;
  if (shuffled) {
    for (u64 i = 0; i < gangs; i++) order.push_back(i);
    std::shuffle(order.begin(), order.end(), engine.random);
  }
  for (u64 i = 0; i < gangs && !engine.stopped; i++) {
    u64 g = shuffled ? order[i] : engine.options.schedule == kReverse ? gangs - 1 - i : i;
    if (i % engine.options.sample) continue;
    if (engine.options.only_block != ~0ull && g != engine.options.only_block / gang_blocks) continue;
    if (!prepare_gang(g * gang_blocks, (u32)gang_blocks, threads)) {
      engine.launch_result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    if (engine.options.access) begin_access_gang((u32)gang_blocks, (threads + 31) / 32);
    run_gang();
  }
  if (engine.options.access) end_access_launch();
  engine.kernel = nullptr;
  return engine.launch_result;
}
}  // namespace kwemu
