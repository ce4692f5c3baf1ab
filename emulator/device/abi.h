// The border between device code compiled for the emulator and the emulator's library. Force-included before the device code, and
// included by the library itself; it must not include anything.
#pragma once

#define KWEMU_ABI 1

struct kwemu_registers {  // of the running GPU thread; rewritten at every switch
  unsigned tx, ty, tz, bx, by, bz, nx, ny, nz, gx, gy, gz, lane, rank, cluster;
};

struct kwemu_parameter {
  unsigned offset, bytes;
};

struct kwemu_kernel {      // one entry of a module's table
  const char* name;        // by which the driver looks it up
  const char* expression;  // as its author writes it
  void (*run)(void** args);
  const kwemu_parameter* parameters;
  unsigned parameter_count;
};

struct kwemu_module_table {
  unsigned abi, arch, kernel_count;
  const kwemu_kernel* kernels;
  void* (*touch_shared)();  // makes the calling OS thread's thread-local segment exist
};

enum kwemu_warp_ops { KWEMU_SYNC, KWEMU_SHUFFLE, KWEMU_BALLOT, KWEMU_MATCH, KWEMU_REDUCE };
enum kwemu_reductions { KWEMU_RED_ADD, KWEMU_RED_MIN, KWEMU_RED_MAX, KWEMU_RED_AND, KWEMU_RED_OR, KWEMU_RED_XOR };
enum kwemu_atomic_ops {
  KWEMU_ADD,
  KWEMU_SUB,
  KWEMU_MIN,
  KWEMU_MAX,
  KWEMU_EXCHANGE,
  KWEMU_AND,
  KWEMU_OR,
  KWEMU_XOR,
  KWEMU_INC,
  KWEMU_DEC,
  KWEMU_CAS
};
enum kwemu_types { KWEMU_I32, KWEMU_U32, KWEMU_I64, KWEMU_U64, KWEMU_F32, KWEMU_F64, KWEMU_U16 };

extern "C" {
extern kwemu_registers kwemu_regs;
// Barriers, votes (0 count, 1 and, 2 or), warp collectives: the place that a report names is the caller.
void kwemu_block_barrier();
int kwemu_block_vote(int op, int predicate);
void kwemu_cluster_barrier();
void kwemu_grid_barrier();
void kwemu_warp_op(int op, unsigned mask, void* value, unsigned bytes, unsigned source_lane_or_reduction);
unsigned kwemu_active_mask();
void kwemu_fence();
void kwemu_atomic(void* address, int type, int op, const void* operand, const void* compare, void* old);
void* kwemu_map_shared(void* p, unsigned rank);
// A place in shared memory as PTX has it, a number that fits in 32 bits.
unsigned long kwemu_shared_offset(const void* p);
char* kwemu_shared_address(unsigned long offset);
// Asynchronous copies. The source is global, the destination shared memory, but for bulk_store.
void kwemu_cp_async(void* to, const void* from, unsigned bytes, unsigned source_bytes);
void kwemu_cp_async_commit();
void kwemu_cp_async_wait(unsigned groups_left);
void kwemu_mbarrier_init(void* barrier, unsigned count);
void kwemu_mbarrier_arrive(void* barrier, unsigned expected_bytes);
void kwemu_mbarrier_wait(void* barrier, unsigned parity);
void kwemu_bulk_load(void* to, const void* from, unsigned bytes, void* barrier);
void kwemu_bulk_store(void* to, const void* from, unsigned bytes);
void kwemu_bulk_commit();
void kwemu_bulk_wait(unsigned groups_left);
// st.async: 4, 8 or 16 bytes to shared memory of the cluster, counted in an mbarrier of the same block.
void kwemu_send_async(void* to, const void* value, unsigned bytes, void* barrier);
void kwemu_fence_proxy();
long long kwemu_clock();
[[noreturn]] void kwemu_assert_failed(const char* expression, const char* file, int line);
[[noreturn]] void kwemu_trap();
}
