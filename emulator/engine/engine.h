// What the engine knows while a kernel runs: GPU threads as fibers, happens-before clocks, and one shadow cell per four bytes of memory.
//
// A *gang* is the set of blocks that run together: one block, a cluster, or a whole cooperative grid. Gangs run one after another and
// have a sequence number; a *clock* of a GPU thread counts its synchronisation points. An *epoch* (gang, thread, clock) names a moment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/device/abi.h"

namespace kwemu {
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

constexpr u32 kMaxDynamicShared = 227 * 1024;
constexpr u32 kAgents = 64;              // asynchronous engines of a gang (one per mbarrier) get clocks of their own
constexpr u32 kMaxThreads = 16384 - 64;  // of a gang: 14 bits of an epoch, less the agents
constexpr size_t kStackBytes = size_t{128} << 10;
constexpr u64 kDeviceBytes = 8ull << 40;  // reserved address space of the emulated device
constexpr u32 kRedZone = 64 * 1024;       // unmapped for kernels, behind every allocation; also the size of a page of the page table

// ---- epochs: gang (26 bits) | thread (14) | clock (24) ----------------------------------------------------------------------
constexpr u64 kMaxGang = (1u << 26) - 1;
constexpr u32 kMaxClock = (1u << 24) - 2;
inline u64 epoch(u64 gang, u64 thread, u64 clock) { return gang << 38 | thread << 24 | clock; }
inline u64 gang_of(u64 e) { return e >> 38; }
inline u32 thread_of(u64 e) { return e >> 24 & 0x3fff; }
inline u32 clock_of(u64 e) { return e & 0xffffff; }
inline bool other_thread(u64 a, u64 b) { return (a ^ b) >> 24 != 0; }

// ---- memory -----------------------------------------------------------------------------------------------------------------
enum CellFlags : u32 {
  kInit = 1,          // holds a value
  kAtomic = 2,        // last written by an atomic
  kPendingWrite = 4,  // an asynchronous copy is filling it
  kPendingRead = 8,   // an asynchronous copy is reading it
  kManyAtomics = 16   // read2 is another unordered atomic writer
};
struct Cell {
  u64 write, read1, read2;       // epochs
  u32 flags : 5, write_pc : 27;  // places are offsets in the module that runs: those of earlier launches are never asked for
  u32 read_pc;                   // of read1
};
static_assert(sizeof(Cell) == 32);
struct Block;
struct Region {  // one device allocation, one device variable, or the shared memory of one block
  u64 lo = 0, hi = 0;
  u32 shift = 2;  // log2 of the bytes per cell; refined when a smaller access comes
  Cell* cells = nullptr;
  size_t cell_count = 0;
  std::string name;
  bool freed = false, all_init = false, shared = false;
  bool for_host = false;         // managed or pinned: the host may touch it
  void* allocated_at = nullptr;  // in a program
};

struct Symbol {
  u64 lo, hi;
  std::string name;
  bool writable = true;
};
struct Module;
struct Kernel {
  Module* module = nullptr;
  std::string name, expression;  // as looked up; as the user wrote it
  const kwemu_kernel* entry = nullptr;
  u32 max_dynamic = 0;  // bytes of dynamic shared memory that a launch may ask for
};
constexpr u16 kNoUnit = 0xffff, kGuardUnit = 0xfffe;  // nobody's; the compiler's own, which says whether a constructor ran
struct Module {                                       // a loaded host library that g++ made from device code
  void* handle = nullptr;
  int file = -1;                            // its bytes, for addr2line
  u64 bias = 0, lo = 0, hi = 0;             // where it is mapped
  u64 shared_bytes = 0, static_shared = 0;  // thread-local segment, with gaps and without
  u64 dynamic_offset = 0;                   // of the dynamic shared memory in the segment; == shared_bytes if the code has none
  std::vector<Symbol> shared_symbols, variables;
  std::vector<u16> shared_map;  // 16-byte unit of the segment -> symbol, or one of these:
  std::map<u64, std::unique_ptr<Region>> variable_regions;
  std::deque<Kernel> kernels;
  u32 arch = 0;
  bool program = false;  // host code too: a kernel's shared memory is some of the module's
};

// ---- threads, warps, blocks -------------------------------------------------------------------------------------------------
using Clocks = std::vector<u32>;
using Snapshot = std::shared_ptr<Clocks>;
using Acquired = std::map<u64, Snapshot>;  // gang -> what is known of it

struct Copy {  // one asynchronous copy in flight
  char *to, *from;
  u32 bytes, source_bytes;
  Region* shared;
  char value[16] = {};  // what is sent when there is no `from`,
  Clocks release;       // and what its sender knew
};
struct Mbarrier {
  u32 count = 0, pending = 0, phase = 0, agent = 0, agent_clock = 0;
  i64 tx = 0;
  u64 init = 0;
  Clocks clocks;
  std::deque<Copy> queue;
};
enum State : u8 { kReady, kAtBlockBarrier, kAtClusterBarrier, kAtWarpOp, kAtActiveMask, kAtMbarrier, kDone };

struct Thread {
  void* sp;
  char* stack;
  u32 tid, lane, gid, clock, proxy_clock;  // tid: in its block; gid: in its gang
  State state;
  Block* block;
  u32 x, y, z;
  void* pc;                    // where it waits
  u32 warp_clocks[32];         // what it knows of its warp
  Clocks clocks;               // and of the gang, beyond what its block knows; often empty
  alignas(16) char value[16];  // operand and result of a collective
  int warp_op;
  u32 source_lane;
  Snapshot fence;  // what its last fence makes visible with its next atomic
  Acquired pending, acquired;
  std::vector<Copy> open_copies, open_bulk;
  std::deque<std::vector<Copy>> copy_groups, bulk_groups;
  u64 mbarrier;
  u32 parity, spins;
  u32 same_bytes = 0;  // a store that races, harmless if its value equals the one there: looked at in the thread's next event
  u64 same_at, same_other;
  char same_value[16];
  void* same_pc;
};
struct Collective {
  u32 mask = 0, arrived = 0;
};
struct Warp {
  u32 lanes = 0, exited = 0;
  Collective open[8];
};
struct Block {
  u32 bx, by, bz, rank, waiting, done, thread_count;
  u32 votes;
  std::vector<Thread*> threads, ready;
  std::vector<Warp> warps;
  Clocks base;  // what every thread of the block knows
  Acquired acquired, pending;
  Clocks fence;  // what the fences before the last barrier have made visible
  Region shared;
  char* saved = nullptr;  // a cluster: its shared memory while another block runs
  std::map<u64, Mbarrier> mbarriers;
  std::map<u32, u32> remote;  // threads that touched this block's shared memory, and when
};

struct LaunchConfig {
  u32 grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  u32 shared_bytes = 0, cluster = 1;
  bool cooperative = false;
};
enum Schedule { kInOrder, kShuffle, kReverse, kGreedy };

struct Options {
  Schedule schedule = kInOrder;
  bool detect = true;
  bool strict = false;             // warnings and races of equal values are errors
  bool formal = true;              // formal findings are errors
  bool access = false;             // the access report (requests.h)
  u64 sample = 1;                  // run every n-th gang only
  std::string findings;            // a file that gets each finding as a line of JSON
  u32 max_reports = 10;            // of one launch: then it stops
  u64 step_limit = 4'000'000'000;  // observed accesses of one launch, about a minute
  u64 stuck_ms = 5000;             // processor time of a thread that does not touch memory
  u64 only_block = ~0ull;          // run just this block (sparse tensors)
};

struct Engine {
  Options options;
  // this launch
  LaunchConfig launch;
  const Kernel* kernel = nullptr;
  Module* module = nullptr;
  void** args = nullptr;
  size_t argument_bytes = 0;  // of a program's launch: args is one block of memory, and each thread gets a copy on its stack
  bool stopped = false;
  u32 launch_errors = 0;
  int launch_result = 0;  // a CUresult
  u64 steps = 0, switches = 0;
  // this gang
  u64 gang = 0, first_gang = 1;
  u32 thread_count = 0, clock_count = 0, block_count = 1;
  u32 cluster_waiting = 0, cluster_barriers = 0, next_agent = 0;
  std::vector<Thread> threads;
  std::vector<std::unique_ptr<Block>> blocks;
  Block* in_place = nullptr;  // the block whose shared memory lies in the thread-local segment
  void* main_sp = nullptr;
  char* stacks = nullptr;
  size_t stack_count = 0;
  std::mt19937_64 random{1};
  std::unordered_map<u64, Acquired> atomics;  // address -> what its atomics carry
  // memory
  u64 device = 0, device_top = 0;
  u64 shared = 0, shared_bytes = 0, dynamic_offset = 0;  // of the module that runs
  u64 peers = 0, peer_stride = 0, peer_bytes = 0;
  Region** pages = nullptr;
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<Module*> modules;
};
extern Engine engine;
inline u32 short_pc(void* pc) { return (u32)((u64)pc - engine.module->lo) & 0x7ffffff; }
inline void* full_pc(u32 offset) { return (void*)(engine.module->lo + offset); }
extern Thread* current;  // the GPU thread that runs; null on the host

// ---- fibers (fiber.cpp) -----------------------------------------------------------------------------------------------------
extern "C" void kwemu_switch(void** save, void* load);
inline void to_scheduler() { kwemu_switch(&current->sp, engine.main_sp); }
void resume(Thread*);
void prepare_fiber(Thread*, u32 index);
bool reserve_stacks(size_t count);
[[noreturn]] void stop_launch();  // leaves the running GPU thread for good; the launch ends
struct SignalGuard {              // during a launch: faults and endless loops of kernel code become reports
  SignalGuard();
  ~SignalGuard();
};

// ---- scheduler and launch (scheduler.cpp, launch.cpp) -------------------------------------------------------------------------
void run_gang();
inline void make_ready(Thread* t) {
  t->state = kReady;
  t->block->ready.push_back(t);
}
void swap_in(Block*);
int run_launch(const Kernel&, const LaunchConfig&, void** args, size_t argument_bytes = 0);  // a CUresult
void finish_thread();

// ---- collectives (collectives.cpp) --------------------------------------------------------------------------------------------
void try_warp(Block*, u32 warp);
void try_block(Block*);

// ---- asynchronous copies (async_copy.cpp) -------------------------------------------------------------------------------------
bool land_one_bulk_copy(Block*);  // as late as possible: called when no thread can go on
void check_async_at_exit(Thread*);

}  // namespace kwemu
#define KWEMU_EXPORT extern "C" __attribute__((visibility("default")))
#define KWEMU_PC __builtin_return_address(0)
