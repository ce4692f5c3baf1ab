// Sums over threads, always along the same tree: at each level, the upper half is added to the lower half, so that thread t meets t + 512,
// then t + 256, ... then t + 1. A smaller group is the same tree with zeros above, which is why every tile of a row kernel
// (kw/device/row.cuh) gives the same bits.
#pragma once
#include "kw/device/vector.cuh"

namespace kw {

KW_WORD float shuffle_xor(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
KW_WORD double shuffle_xor(double v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
template <class T, int N>
KW_WORD Vec<T, N> shuffle_xor(const Vec<T, N>& v, int mask) {
  Vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; i++) out[i] = shuffle_xor(v[i], mask);
  return out;
}

// v[0] + ... + v[N-1] in place of a full tree of `width` values, of which those from N on are zero. The result is in v[0].
template <int width, class S, int N>
KW_WORD void tree_sum(Vec<S, N>& v) {
  if constexpr (width > 1) {
    constexpr int half = width / 2;
#pragma unroll
    for (int i = 0; i < half; i++)
      if (i + half < N) v[i] = v[i] + v[i + half];
    tree_sum<half>(v);
  }
}

// The sum over each aligned group of `threads` lanes (a power of two up to 32), given to all of them. The whole warp calls it.
template <int threads, class S>
KW_WORD S warp_sum(S v) {
#pragma unroll
  for (int mask = threads / 2; mask > 0; mask /= 2) v = v + shuffle_xor(v, mask);
  return v;
}

// p[0] + p[step] + ... over `count` values, along the tree.
template <int count, class S>
KW_WORD S strided_sum(const S* p, int step) {
  Vec<S, count> values;
#pragma unroll
  for (int i = 0; i < count; i++) values[i] = p[i * step];
  tree_sum<count>(values);
  return values[0];
}

// Which lane of a tree a thread stands for, one of `threads` in `blocks` blocks. A warp holds 8 neighbours from each quarter of the tree:
// 8 vectors of 16 bytes are a whole line of 128, and the first two levels, which add lanes far apart, stay inside the warp; the next ones
// stay inside the block.
template <int threads, int blocks>
KW_WORD int tree_lane(int thread, int rank) {
  if constexpr (threads <= 32) return thread;
  return thread % 32 / 8 * (threads / 4) + (thread / 32 * blocks + rank) * 8 + thread % 8;
}

namespace detail {
// Shared memory for sums that are under way.
template <class S, int count>
KW_WORD S* sums_under_way() {
  __shared__ S values[count];
  return values;
}
// The sum of `count` values (a power of two, at least 8) along the tree, given to all lanes of a warp; or, if `last` is 8, its last 8
// summands, to lanes that are equal modulo 8.
template <int count, int last, class S>
KW_WORD S warp_tree(const S* values) {
  constexpr int width = detail::least(count, 32);
  S v = strided_sum<count / width>(values + threadIdx.x % 32 % width, width);
#pragma unroll
  for (int mask = width / 2; mask >= last; mask /= 2) v = v + shuffle_xor(v, mask);
  return v;
}
}  // namespace detail

// The sum over each of `groups` runs of `threads` consecutive threads (a power of two), along the tree with tree_lane<threads, 1>, given to
// all of them, in two halves: what lies between them need not wait for the slowest warp. The whole block of threads * groups calls both,
// the halves in the same order; at most one other block_post may come between a sum's two. `turn` counts the sums, modulo 4: a slow warp
// may still read a sum when two later ones are under way.
template <int threads, int groups, class S>
KW_WORD S block_post(S v, int turn) {
  if constexpr (threads > 32) {
    constexpr int count = threads / 4;
    const int group = threadIdx.x / threads, thread = threadIdx.x % threads, lane = thread % 32;
    v = v + shuffle_xor(v, 16);
    v = v + shuffle_xor(v, 8);
    S* values = detail::sums_under_way<S, 4 * groups * count>() + (turn * groups + group) * count;
    if (lane < 8) values[thread / 32 * 8 + lane] = v;
  }
  return v;
}
template <int threads, int groups, class S>
KW_WORD S block_collect(S posted, int turn) {
  if constexpr (threads > 32) {
    constexpr int count = threads / 4;
    __syncthreads();
    const int group = threadIdx.x / threads;
    return detail::warp_tree<count, 1>(detail::sums_under_way<S, 4 * groups * count>() + (turn * groups + group) * count);
  } else {
    return warp_sum<threads>(posted);
  }
}
template <int threads, int groups, class S>
KW_WORD S block_sum(S v, int turn) {
  return block_collect<threads, groups>(block_post<threads, groups>(v, turn), turn);
}

}  // namespace kw
