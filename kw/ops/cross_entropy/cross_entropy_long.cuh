// For rows too long to keep in registers. Both kernels give the same bits.
#pragma once
#include "kw/device/ring.cuh"
#include "kw/ops/cross_entropy/cross_entropy_row.cuh"

namespace kw::ops::cross_entropy {

// Piece by piece, the logits read once for the loss and a second time for the gradient.
template <class T, class I, class W, bool gradient, bool smooth, bool capped, class Tile>
__global__ void __launch_bounds__(Tile::block) forward_long(const ForwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const int64_t row = blockIdx.x;
  const T* logits = as<T>(p.logits, row);
  T* dlogits = as<T>(p.dlogits, row);
  const int64_t last = (p.length - 1) / Tile::length * Tile::length;  // where the last piece starts

  const Target<A, I, W> target(p, row);
  if (target.kind == Kind::ignored) {  // nothing to read
    if (threadIdx.x == 0) *as<A>(p.loss, row) = 0;
    if constexpr (gradient) {
      const typename Tile::template Share<T> nothing = {};
      for (int64_t at = 0; at < p.length; at += Tile::length) tile.store(dlogits + at, p.length - at, [](A x) { return x; }, nothing);
    }
    return;
  }
  const Cap<A, capped> cap(p.softcap);
  const bool owner = tile.thread() == target.owner(tile);
  const A at_target = owner && target.kind == Kind::counts ? cap(to_acc(logits[target.index])) : A(0);
  // Distances are summed from an element of the row, so that a common offset of its logits does not cost digits.
  const A first = cap(to_acc(logits[0])), from = first - first == 0 ? first : A(0);

  auto peaks = tile.sums(Peak<A>::none());
  auto sums = tile.sums(Vec<A, 2>{});
  for (int64_t at = 0; at < p.length; at += Tile::length) {
    const auto x = tile.load(logits + at, p.length - at, minus_infinity<T>());
#pragma unroll
    for (int i = 0; i < Tile::vectors; i++) {
      auto l = x.at(i);
#pragma unroll
      for (int j = 0; j < Tile::vec && (capped || smooth); j++) {
        const int64_t c = at + Tile::start(i) + j;
        if (c >= p.length) continue;  // it stays minus infinity
        l[j] = cap(l[j]);
        if constexpr (smooth) {
          const A w = weight_at(as<W>(p.weight), c);
          auto& sum = sums[i % Tile::lanes];
          sum[0] = fused(w, from - l[j], sum[0]);
          sum[1] = sum[1] + w;
        }
      }
      peaks[i % Tile::lanes].add(l);
    }
  }
  const Peak<A> peak = tile.total(peaks);
  const A base = exp_base(peak.top);
  A far = 0, weights = 0;
  if constexpr (smooth) {
    const auto sum = tile.total(sums);
    weights = sum[1];
    far = fused(weights, base - from, sum[0]);
  }
  const A scale = gradient ? A(1) / value_of<A>(p.divisor) : A(1);
  const auto f = Finish<A>::template of<smooth>(p, target, base, peak.sum, far, weights, at_target, scale);

  if (owner) *as<A>(p.loss, row) = f.loss;
  if constexpr (gradient) {
    const Gradient<A, capped> of{f, base, cap};
    for (int64_t at = last; at >= 0; at -= Tile::length) {  // backwards: what was read last may still be in the cache
      const int64_t n = p.length - at;
      const auto x = tile.load(logits + at, n);
      if constexpr (smooth)
        tile.store(dlogits + at, n, of, x, tile.view(as<W>(p.weight) + (is_present<W> ? at : 0), n));
      else
        tile.store(dlogits + at, n, of, x);
    }
    // Over what the same thread has written.
    if (owner && target.kind == Kind::counts) from_acc(of.at_target(at_target, target.weight), dlogits[target.index]);
  }
}

// The row lies in shared memory, of one block or of a cluster of blocks (from sm_90 on), and is read once. Blocks are small and many of
// them share a multiprocessor, so that some read while others write. From sm_80 on, for rows aligned to 16 bytes.
template <class T, class I, class W, bool gradient, bool smooth, bool capped, class Tile, int blocks>
__global__ void __launch_bounds__(Tile::block, blocks) forward_shared(const ForwardParams p) {
  using A = acc_t<T>;
  constexpr int vectors = Tile::vectors;
  static_assert(gradient && Tile::rows == 1);
  constexpr int lanes = Tile::lanes;
  Tile tile;
  Ring<vectors, 1, Tile::block> ring;  // filled once: each thread's vectors of the row
  const int64_t row = tile.team();
  const T* logits = as<T>(p.logits, row);
  T* dlogits = as<T>(p.dlogits, row);

  const Target<A, I, W> target(p, row);
  const bool owner = tile.thread() == target.owner(tile);
  if (target.kind == Kind::ignored) {  // nothing to read, and nobody in the cluster will
    if (owner) *as<A>(p.loss, row) = 0;
    const Vec<A, Tile::vec> nothing = {};
    for (int i = 0; i < vectors; i++) tile.store(i, dlogits, p.length, [](A x) { return x; }, nothing);
    return;
  }
#pragma unroll 4
  for (int i = 0; i < vectors; i++) ring.fetch(i, 0, logits + tile.start(i), tile.start(i) < p.length);
  ring.sent();
  const Cap<A, capped> cap(p.softcap);
  const A at_target = owner && target.kind == Kind::counts ? cap(to_acc(logits[target.index])) : A(0);
  const A first = smooth ? cap(to_acc(logits[0])) : A(0), from = first - first == 0 ? first : A(0);
  const A scale = A(1) / value_of<A>(p.divisor);
  tile.begin();
  const auto weights = tile.view(as<W>(p.weight), p.length);
  const auto x = [&](int i) { return unpack(ring.template at<T, Tile::vec>(i, 0)); };

  ring.template wait<0>();
  auto peaks = tile.sums(Peak<A>::none());
  auto sums = tile.sums(Vec<A, 2>{});
  constexpr int rounds = lanes >= 4 ? 1 : 4 / lanes;  // four vectors at once hide the exponentials' latency
#pragma unroll rounds
  for (int at = 0; at < vectors; at += lanes) {  // a round of the virtual lanes: which of them is known to the compiler
#pragma unroll
    for (int lane = 0; lane < lanes; lane++) {
      const int i = at + lane;
      if (i >= vectors || tile.start(i) >= p.length) break;
      auto l = x(i);
      if constexpr (capped)
        for (int j = 0; j < Tile::vec; j++) l[j] = cap(l[j]);
      peaks[lane].add(l);
      if constexpr (smooth) {
        const auto w = weights.at(i);
        auto& sum = sums[lane];
        for (int j = 0; j < Tile::vec; j++) sum[0] = fused(A(w[j]), from - l[j], sum[0]), sum[1] = sum[1] + A(w[j]);
      }
    }
  }
  const Peak<A> peak = tile.total(peaks);
  const A base = exp_base(peak.top);
  A far = 0, all = 0;
  if constexpr (smooth) {
    const auto sum = tile.total(sums);
    all = sum[1];
    far = fused(all, base - from, sum[0]);
  }
  const auto f = Finish<A>::template of<smooth>(p, target, base, peak.sum, far, all, at_target, scale);
  if (owner) *as<A>(p.loss, row) = f.loss;

  const Gradient<A, capped> of{f, base, cap};
#pragma unroll 4
  for (int i = 0; i < vectors; i++) {
    if constexpr (smooth)
      tile.store(i, dlogits, p.length, of, x(i), weights.at(i));
    else
      tile.store(i, dlogits, p.length, of, x(i));
  }
  // Over what the same thread has written.
  if (owner && target.kind == Kind::counts) from_acc(of.at_target(at_target, target.weight), dlogits[target.index]);
}

}  // namespace kw::ops::cross_entropy
