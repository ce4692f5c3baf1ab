// A cluster: up to 16 blocks that run at the same time and reach each other's shared memory. From sm_90 on.
#pragma once
#include "kw/device/reduce.cuh"

namespace kw {

namespace detail {
struct Two {
  uint64_t low, high;
};
template <class To, class From>
KW_WORD To bits_of(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
KW_WORD unsigned shared_address(const void* p) {
#ifdef KW_EMULATED
  return 0;
#else
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
#endif
}
}  // namespace detail

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

// Two mbarriers of this block, for what the cluster sends it: each is complete when as many bytes as expected have come.
KW_WORD uint64_t* mailboxes() {
  __shared__ uint64_t two[2];
  return two;
}
// The cluster's first barrier, after which its blocks may send. Every thread calls it once.
KW_WORD void cluster_begin() {
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
#ifdef KW_EMULATED
      kwemu_mbarrier_init(mailboxes() + i, 1);
#else
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(detail::shared_address(mailboxes() + i)) : "memory");
#endif
    }
#ifndef KW_EMULATED
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
  }
  cluster_barrier();
}
// One thread says how many bytes are to come; then all wait for them. A mailbox is complete for the first time with parity 0.
KW_WORD void expect_mail(int box, int bytes) {
#ifdef KW_EMULATED
  kwemu_mbarrier_arrive(mailboxes() + box, static_cast<unsigned>(bytes));
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_address(mailboxes() + box)), "r"(bytes)
               : "memory");
#endif
}
// (The wait acquires at the block's scope, its default: the mail lies in this block's memory. At the cluster's scope it would empty the L1
// cache each time.)
KW_WORD void wait_for_mail(int box, int parity) {
#ifdef KW_EMULATED
  kwemu_mbarrier_wait(mailboxes() + box, static_cast<unsigned>(parity));
#else
  int done;
  do {
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.s32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(detail::shared_address(mailboxes() + box)), "r"(parity)
                 : "memory");
  } while (!done);
#endif
}
// Stores a value of 4, 8 or 16 bytes to what lies at p in block `rank`, and counts its bytes in that block's mailbox. Nothing waits for
// the sender's other stores, as a cluster_barrier would: with rows being written it took 1.5 us (H200, 2026-12-01).
template <class S>
KW_WORD void send(S* p, const S& value, int box, int rank) {
  static_assert(sizeof(S) == 4 || sizeof(S) == 8 || sizeof(S) == 16);
#ifdef KW_EMULATED
  kwemu_send_async(in_block(p, rank), &value, sizeof(S), in_block(mailboxes() + box, rank));
#else
  unsigned to, mailbox;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(detail::shared_address(p)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mailbox) : "r"(detail::shared_address(mailboxes() + box)), "r"(rank));
  if constexpr (sizeof(S) == 4) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
                 "r"(detail::bits_of<unsigned>(value)), "r"(mailbox)
                 : "memory");
  } else if constexpr (sizeof(S) == 8) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to),
                 "l"(detail::bits_of<uint64_t>(value)), "r"(mailbox)
                 : "memory");
  } else {
    const auto bits = detail::bits_of<detail::Two>(value);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(to), "l"(bits.low),
                 "l"(bits.high), "r"(mailbox)
                 : "memory");
  }
#endif
}

// Which of the `threads` lanes of a cluster of `blocks` blocks a thread stands for. A warp holds 8 neighbours from each quarter of the
// tree: 8 vectors of 16 bytes are a whole line of 128, and the tree's first two levels, which add lanes far apart, stay inside the warp.
// The next ones stay inside the block.
template <int threads, int blocks>
KW_WORD int cluster_lane() {
  const int thread = threadIdx.x;
  return thread % 32 / 8 * (threads / 4) + (thread / 32 * blocks + cluster_rank()) * 8 + thread % 8;
}

// The sum over the lanes of a cluster, along the tree of reduce.cuh, given to all threads. All of them call it, after cluster_begin. `turn`
// counts the calls, modulo 4: two inboxes take turns, so that a slow warp may still read the last sum while the next one comes in, and the
// parity of each mailbox alternates. A block that has its sum has had all its mail, so it may end.
template <int threads, int blocks, class S>
KW_WORD S cluster_sum(S v, int turn) {
  constexpr int own = threads / blocks / 4, shared = 8 * blocks;  // values of a block after two levels; of the cluster, when a block has 8
  static_assert(own >= 8 && blocks >= 2 && blocks <= 16);
  __shared__ S values[own], inbox[2][shared];
  const int thread = threadIdx.x, lane = thread % 32, box = turn % 2;
  v = v + shuffle_xor(v, 16);
  v = v + shuffle_xor(v, 8);
  if (lane < 8) values[thread / 32 * 8 + lane] = v;
  __syncthreads();
  if (thread < 32) {
    if (thread == 0) expect_mail(box, shared * sizeof(S));
    constexpr int width = detail::least(own, 32);
    v = strided_sum<own / width>(values + lane % width, width);
#pragma unroll
    for (int mask = width / 2; mask >= 8; mask /= 2) v = v + shuffle_xor(v, mask);
    __syncwarp();  // all its lanes have read `values`, which the next sum may write when this one's mail has come
    for (int block = lane / 8; block < blocks; block += 4) send(&inbox[box][cluster_rank() * 8 + lane % 8], v, box, block);
  }
  wait_for_mail(box, turn / 2);
  constexpr int width = detail::least(shared, 32);
  return warp_sum<width>(strided_sum<shared / width>(inbox[box] + lane % width, width));
}

}  // namespace kw
