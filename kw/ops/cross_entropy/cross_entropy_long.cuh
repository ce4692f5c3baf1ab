// For rows too long to keep in registers: piece by piece, the logits read once for the loss and a second time for the gradient.
#pragma once
#include "kw/ops/cross_entropy/cross_entropy_row.cuh"

namespace kw::ops::cross_entropy {

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
    for (int64_t at = last; at >= 0; at -= Tile::length) {  // backwards: what was read last may still be in the cache
      const int64_t n = p.length - at;
      const auto x = tile.load(logits + at, n);
      if constexpr (smooth) {
        const auto of = [=](A x, A w) {
          const A l = cap(x);
          return fused(exp_difference(l, base), f.factor, -f.less * w) * cap.slope(l);
        };
        const W* weight = is_present<W> ? as<W>(p.weight) + at : as<W>(p.weight);
        tile.store(dlogits + at, n, of, x, tile.view(weight, n));
      } else {
        const auto of = [=](A x) {
          const A l = cap(x);
          return exp_difference(l, base) * f.factor * cap.slope(l);
        };
        tile.store(dlogits + at, n, of, x);
      }
    }
    if (owner && target.kind == Kind::counts) {  // over what the same thread has written
      const A minus = fused(f.less, target.weight, f.hit);
      from_acc(fused(exp_difference(at_target, base), f.factor, -minus) * cap.slope(at_target), dlogits[target.index]);
    }
  }
}

}  // namespace kw::ops::cross_entropy
