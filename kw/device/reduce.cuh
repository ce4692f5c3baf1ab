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

// The sum over each of `groups` runs of `threads` consecutive threads (a power of two), given to all of them. The whole block of
// threads * groups calls it. `turn` (0 or 1) has to alternate from call to call: a slow warp may still read the last sum.
template <int threads, int groups, class S>
KW_WORD S block_sum(S v, int turn) {
  const int group = threadIdx.x / threads, thread = threadIdx.x % threads, lane = threadIdx.x % 32;
  if constexpr (threads > 256) {  // in two steps: were all 32 warps to read 32 values each, that alone would take 1000 cycles of the SM
    __shared__ S values[groups][threads], halfway[groups][128];
    values[group][thread] = v;
    __syncthreads();
    if (thread < 128) halfway[group][thread] = strided_sum<threads / 128>(values[group] + thread, 128);
    __syncthreads();
    v = strided_sum<4>(halfway[group] + lane, 32);
  } else if constexpr (threads > 32) {
    __shared__ S values[2][groups][threads];
    values[turn][group][thread] = v;
    __syncthreads();
    v = strided_sum<threads / 32>(values[turn][group] + lane, 32);
  }
  return warp_sum<detail::least(threads, 32)>(v);
}

}  // namespace kw
