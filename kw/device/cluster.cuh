// A cluster: up to 16 blocks that run at the same time and reach each other's shared memory. From sm_90 on.
#pragma once
#include "kw/device/reduce.cuh"

namespace kw {

KW_WORD int cluster_rank() {  // this block's number in its cluster
#ifdef KW_EMULATED
  return static_cast<int>(kwemu_cluster_rank());
#else
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#endif
}
// Waits for all threads of the cluster; what they wrote before, to any memory, is seen after.
KW_WORD void cluster_barrier() {
#ifdef KW_EMULATED
  kwemu_cluster_barrier();
#else
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// Where block `rank` of the cluster has what lies at p in this block's shared memory. Not before the first cluster_barrier: the block may
// not have started; and a cluster_barrier after the last use: it must not have ended.
template <class T>
KW_WORD T* in_block(T* p, int rank) {
#ifdef KW_EMULATED
  return static_cast<T*>(kwemu_map_shared(p, static_cast<unsigned>(rank)));
#else
  unsigned long long peer;
  asm("mapa.u64 %0, %1, %2;" : "=l"(peer) : "l"(reinterpret_cast<unsigned long long>(p)), "r"(rank));
  return reinterpret_cast<T*>(peer);
#endif
}

// Which of `blocks` * blockDim.x lanes a thread of the cluster stands for: 8 at a time go to each block in turn, so that 8 vectors of 16
// bytes, a whole line of 128, lie side by side, and the first half of the tree, which adds lanes far apart, stays inside a block.
template <int blocks>
KW_WORD int cluster_lane() {
  const int thread = threadIdx.x;
  return thread / 8 * (8 * blocks) + cluster_rank() * 8 + thread % 8;
}

// The sum over the lanes of a cluster of `blocks` blocks, `threads` lanes in all, along the tree of reduce.cuh, given to all threads. All
// of them call it; one cluster_barrier must have been passed before. `turn` (0 or 1) has to alternate from call to call.
template <int threads, int blocks, class S>
KW_WORD S cluster_sum(S v, int turn) {
  constexpr int own = threads / blocks, shared = 8 * blocks;  // lanes of a block; what is left of the tree when a block has 8 values
  static_assert(own >= 32 && blocks >= 2 && blocks <= 16);
  __shared__ S values[own], inbox[2][shared];
  const int thread = threadIdx.x, lane = thread % 32;
  values[thread] = v;
  __syncthreads();
  if (thread < 32) {
    v = strided_sum<own / 32>(values + lane, 32);
    v = v + shuffle_xor(v, 16);
    v = v + shuffle_xor(v, 8);
    for (int block = lane / 8; block < blocks; block += 4) *in_block(&inbox[turn][cluster_rank() * 8 + lane % 8], block) = v;
  }
  cluster_barrier();
  constexpr int width = detail::least(shared, 32);
  return warp_sum<width>(strided_sum<shared / width>(inbox[turn] + lane % width, width));
}

}  // namespace kw
