#line 2 "kwemu_cooperative_groups.h"
// Cooperative groups within one grid, over the emulator's barriers and warp functions. Stands in for the toolkit's header of this name.
#pragma once

namespace cooperative_groups {
namespace detail {
KWEMU_INLINE unsigned lane() { return kwemu_laneid(); }
KWEMU_INLINE unsigned block_rank() {
  return kwemu_threadIdx().x + kwemu_blockDim().x * (kwemu_threadIdx().y + kwemu_blockDim().y * kwemu_threadIdx().z);
}
KWEMU_INLINE unsigned block_size() { return kwemu_blockDim().x * kwemu_blockDim().y * kwemu_blockDim().z; }
KWEMU_INLINE unsigned nth_lane(unsigned mask, unsigned n) {  // of the set bits
  while (n--) mask &= mask - 1;
  return (unsigned)__builtin_ctz(mask);
}
}  // namespace detail

struct thread_block {
  KWEMU_INLINE void sync() { kwemu_block_barrier(); }
  KWEMU_INLINE unsigned thread_rank() { return detail::block_rank(); }
  KWEMU_INLINE unsigned size() { return detail::block_size(); }
  KWEMU_INLINE unsigned num_threads() { return detail::block_size(); }
  KWEMU_INLINE dim3 group_index() { return dim3(kwemu_blockIdx()); }
  KWEMU_INLINE dim3 thread_index() { return dim3(kwemu_threadIdx()); }
  KWEMU_INLINE dim3 group_dim() { return kwemu_blockDim(); }
  KWEMU_INLINE dim3 dim_threads() { return kwemu_blockDim(); }
};
KWEMU_INLINE thread_block this_thread_block() { return {}; }

struct grid_group {
  KWEMU_INLINE void sync() { kwemu_grid_barrier(); }
  KWEMU_INLINE unsigned long long block_rank() {
    return kwemu_blockIdx().x +
           (unsigned long long)kwemu_gridDim().x * (kwemu_blockIdx().y + (unsigned long long)kwemu_gridDim().y * kwemu_blockIdx().z);
  }
  KWEMU_INLINE unsigned long long num_blocks() { return (unsigned long long)kwemu_gridDim().x * kwemu_gridDim().y * kwemu_gridDim().z; }
  KWEMU_INLINE unsigned long long thread_rank() { return block_rank() * detail::block_size() + detail::block_rank(); }
  KWEMU_INLINE unsigned long long size() { return num_blocks() * detail::block_size(); }
  KWEMU_INLINE unsigned long long num_threads() { return size(); }
  KWEMU_INLINE dim3 group_dim() { return kwemu_gridDim(); }
  KWEMU_INLINE dim3 dim_blocks() { return kwemu_gridDim(); }
  KWEMU_INLINE dim3 block_index() { return dim3(kwemu_blockIdx()); }
  KWEMU_INLINE bool is_valid() { return true; }
};
KWEMU_INLINE grid_group this_grid() { return {}; }

struct cluster_group {
  KWEMU_INLINE void sync() { kwemu_cluster_barrier(); }
  KWEMU_INLINE unsigned block_rank() { return kwemu_cluster_rank(); }
  KWEMU_INLINE unsigned num_blocks() { return kwemu_cluster_size(); }
  KWEMU_INLINE unsigned thread_rank() { return block_rank() * detail::block_size() + detail::block_rank(); }
  KWEMU_INLINE unsigned num_threads() { return num_blocks() * detail::block_size(); }
  KWEMU_INLINE unsigned size() { return num_threads(); }
  KWEMU_INLINE dim3 dim_blocks() { return dim3(kwemu_cluster_size()); }
  template <class T>
  KWEMU_INLINE T* map_shared_rank(T* p, unsigned rank) {
    return (T*)kwemu_map_shared((void*)p, rank);
  }
};
KWEMU_INLINE cluster_group this_cluster() { return {}; }

// Lanes of one warp, by their mask: what tiles of up to 32 threads, coalesced and partitioned groups have in common.
struct lanes {
  unsigned mask;
  KWEMU_INLINE unsigned mask_below() { return (1u << detail::lane()) - 1; }
  inline __attribute__((always_inline)) unsigned size() const { return (unsigned)__builtin_popcount(mask); }
  inline __attribute__((always_inline)) unsigned num_threads() const { return size(); }
  inline __attribute__((always_inline)) unsigned thread_rank() const { return (unsigned)__builtin_popcount(mask & mask_below()); }
  inline __attribute__((always_inline)) void sync() const { __syncwarp(mask); }
  template <class T>
  inline __attribute__((always_inline)) T shfl(T v, unsigned rank) const {
    return __shfl_sync(mask, v, (int)detail::nth_lane(mask, rank % size()));
  }
  template <class T>
  inline __attribute__((always_inline)) T shfl_up(T v, unsigned delta) const {
    unsigned rank = thread_rank();
    return shfl(v, rank >= delta ? rank - delta : rank);
  }
  template <class T>
  inline __attribute__((always_inline)) T shfl_down(T v, unsigned delta) const {
    unsigned rank = thread_rank();
    return shfl(v, rank + delta < size() ? rank + delta : rank);
  }
  template <class T>
  inline __attribute__((always_inline)) T shfl_xor(T v, unsigned bits) const {
    unsigned rank = thread_rank() ^ bits;
    return shfl(v, rank < size() ? rank : thread_rank());
  }
  inline __attribute__((always_inline)) unsigned ballot(int p) const {  // bit i: the thread of rank i
    unsigned all = __ballot_sync(mask, p), packed = 0, rank = 0;
    for (unsigned m = mask; m; m &= m - 1, rank++) packed |= (all >> __builtin_ctz(m) & 1u) << rank;
    return packed;
  }
  inline __attribute__((always_inline)) int any(int p) const { return __any_sync(mask, p); }
  inline __attribute__((always_inline)) int all(int p) const { return __all_sync(mask, p); }
  template <class T>
  inline __attribute__((always_inline)) unsigned match_any(T v) const {
    unsigned same = __match_any_sync(mask, v), packed = 0, rank = 0;
    for (unsigned m = mask; m; m &= m - 1, rank++) packed |= (same >> __builtin_ctz(m) & 1u) << rank;
    return packed;
  }
};

template <unsigned N, class Parent = void>
struct thread_block_tile : lanes {
  static_assert(N <= 32 && (N & (N - 1)) == 0, "the emulator has tiles of up to 32 threads");
  inline __attribute__((always_inline)) thread_block_tile()
      : lanes{N == 32 ? 0xffffffffu : ((1u << (N & 31)) - 1) << (detail::lane() & ~(N - 1))} {}
  template <class Other>
  inline __attribute__((always_inline)) thread_block_tile(const thread_block_tile<N, Other>&) : thread_block_tile() {}
  KWEMU_INLINE constexpr unsigned size() { return N; }
  KWEMU_INLINE constexpr unsigned num_threads() { return N; }
  KWEMU_INLINE unsigned thread_rank() { return detail::lane() & (N - 1); }
  KWEMU_INLINE unsigned meta_group_rank() { return detail::block_rank() / N; }
  KWEMU_INLINE unsigned meta_group_size() { return (detail::block_size() + N - 1) / N; }
};

struct coalesced_group : lanes {
  unsigned meta_rank = 0, meta_size = 1;
  inline __attribute__((always_inline)) coalesced_group(unsigned mask, unsigned rank = 0, unsigned count = 1)
      : lanes{mask}, meta_rank(rank), meta_size(count) {}
  template <unsigned N, class P>
  inline __attribute__((always_inline)) coalesced_group(const thread_block_tile<N, P>& t) : lanes{t.mask} {}
  inline __attribute__((always_inline)) unsigned meta_group_rank() const { return meta_rank; }
  inline __attribute__((always_inline)) unsigned meta_group_size() const { return meta_size; }
};
KWEMU_INLINE coalesced_group coalesced_threads() { return {__activemask()}; }

struct thread_group {  // a block, or lanes of a warp, known only at run time
  bool is_block;
  unsigned mask;
  inline __attribute__((always_inline)) thread_group(const thread_block&) : is_block(true), mask(0) {}
  inline __attribute__((always_inline)) thread_group(const lanes& l) : is_block(false), mask(l.mask) {}
  inline __attribute__((always_inline)) void sync() const { is_block ? kwemu_block_barrier() : __syncwarp(mask); }
  inline __attribute__((always_inline)) unsigned size() const { return is_block ? detail::block_size() : lanes{mask}.size(); }
  inline __attribute__((always_inline)) unsigned num_threads() const { return size(); }
  inline __attribute__((always_inline)) unsigned thread_rank() const { return is_block ? detail::block_rank() : lanes{mask}.thread_rank(); }
  template <class T>
  inline __attribute__((always_inline)) T shfl(T v, unsigned rank) const {
    return lanes{mask}.shfl(v, rank);
  }
  template <class T>
  inline __attribute__((always_inline)) T shfl_down(T v, unsigned delta) const {
    return lanes{mask}.shfl_down(v, delta);
  }
};

template <unsigned N, class Group>
KWEMU_INLINE thread_block_tile<N, Group> tiled_partition(const Group&) {
  return {};
}
KWEMU_INLINE coalesced_group tiled_partition(const thread_block&, unsigned n) {
  return {n == 32 ? 0xffffffffu : ((1u << n) - 1) << (detail::lane() & ~(n - 1)), detail::block_rank() / n,
          (detail::block_size() + n - 1) / n};
}
template <class Group>
KWEMU_INLINE coalesced_group binary_partition(const Group& g, bool predicate) {
  unsigned yes = __ballot_sync(g.mask, predicate);
  return {predicate ? yes : g.mask & ~yes, predicate, 2};
}
template <class Group, class Label>
KWEMU_INLINE coalesced_group labeled_partition(const Group& g, Label label) {
  return {__match_any_sync(g.mask, label)};
}

template <class Group>
KWEMU_INLINE void sync(const Group& g) {
  g.sync();
}
template <class Group>
KWEMU_INLINE unsigned long long thread_rank(const Group& g) {
  return g.thread_rank();
}
template <class Group>
KWEMU_INLINE unsigned long long group_size(const Group& g) {
  return g.size();
}

// ---- reduce, scan: along the group's ranks -------------------------------------------------------------------------------------------
#define KWEMU_GROUP_OP(name, e)                                                      \
  template <class T = void>                                                          \
  struct name {                                                                      \
    inline __attribute__((always_inline)) T operator()(T a, T b) const { return e; } \
  };
// clang-format off
KWEMU_GROUP_OP(plus, a + b)
KWEMU_GROUP_OP(less, a < b ? a : b)
KWEMU_GROUP_OP(greater, a > b ? a : b)
KWEMU_GROUP_OP(bit_and, a & b)
KWEMU_GROUP_OP(bit_or, a | b)
KWEMU_GROUP_OP(bit_xor, a ^ b)
// clang-format on
template <class Group, class T, class Op>
KWEMU_INLINE T reduce(const Group& g, T v, Op op) {
  unsigned n = g.size();
  if ((n & (n - 1)) == 0) {
    for (unsigned d = n / 2; d > 0; d /= 2) v = op(v, g.shfl_xor(v, d));
    return v;
  }
  T all = g.shfl(v, 0);
  for (unsigned i = 1; i < n; i++) all = op(all, g.shfl(v, i));
  return all;
}
template <class Group, class T, class Op>
KWEMU_INLINE T inclusive_scan(const Group& g, T v, Op op) {
  for (unsigned d = 1; d < g.size(); d *= 2) {
    T before = g.shfl_up(v, d);
    if (g.thread_rank() >= d) v = op(before, v);
  }
  return v;
}
template <class Group, class T>
KWEMU_INLINE T inclusive_scan(const Group& g, T v) {
  return inclusive_scan(g, v, plus<T>());
}
template <class Group, class T, class Op>
KWEMU_INLINE T exclusive_scan(const Group& g, T v, Op op) {
  T before = g.shfl_up(inclusive_scan(g, v, op), 1);
  return g.thread_rank() ? before : T{};
}
template <class Group, class T>
KWEMU_INLINE T exclusive_scan(const Group& g, T v) {
  return exclusive_scan(g, v, plus<T>());
}

// ---- copies by a group: every thread takes its share at once; wait is the barrier that makes it seen ------------------------------------
template <class Group, class T>
KWEMU_INLINE void memcpy_async(const Group& g, T* to, const T* from, size_t bytes) {
  for (size_t i = g.thread_rank(); i < bytes / sizeof(T); i += g.size()) to[i] = from[i];
}
template <class Group>
KWEMU_INLINE void wait(const Group& g) {
  g.sync();
}
template <unsigned, class Group>
KWEMU_INLINE void wait_prior(const Group& g) {
  g.sync();
}
template <class Group, class F>
KWEMU_INLINE void invoke_one(const Group& g, F f) {
  if (g.thread_rank() == 0) f();
}
}  // namespace cooperative_groups
