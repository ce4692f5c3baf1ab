// A row's loss, and its gradient in the same pass, while the row lies in the registers of the threads that share it.
#pragma once
#include "kw/ops/cross_entropy/cross_entropy_row.cuh"

namespace kw::ops::cross_entropy {

template <class T, class I, class W, bool gradient, bool smooth, bool capped, class Tile>
__global__ void __launch_bounds__(Tile::block) forward(const ForwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const int64_t row = int64_t{blockIdx.x} * Tile::rows + tile.group();
  const bool present = row < p.rows;  // a thread beyond the last row reads and writes nothing
  const int64_t n = present ? p.length : 0;
  const T* logits = as<T>(p.logits, row);

  const Target<A, I, W> target(p, present ? row : 0);
  const auto x = tile.load(logits, skips_ignored<T, Tile> && target.kind == Kind::ignored ? 0 : n, minus_infinity<T>());
  const Cap<A, capped> cap(p.softcap);
  const bool owner = present && tile.thread() == target.owner(tile);
  const A at_target = owner && target.kind == Kind::counts ? cap(to_acc(logits[target.index])) : A(0);

  // Capped, an element beyond the end would be one like any other; and it has no weight.
  const A base = exp_base(cap(row_max<T>(tile, x)));
  auto sums = tile.sums(Vec<A, smooth ? 3 : 1>{});
#pragma unroll
  for (int i = 0; i < Tile::vectors; i++) {
    const auto v = x.at(i);
#pragma unroll
    for (int j = 0; j < Tile::vec; j++) {
      const int at = Tile::start(i) + j;
      if ((capped || smooth) && at >= n) continue;
      const A l = cap(v[j]);
      auto& sum = sums[i % Tile::lanes];
      sum[0] = sum[0] + exp_difference(l, base);
      if constexpr (smooth) {
        const A w = weight_at(as<W>(p.weight), at);
        sum[1] = fused(w, base - l, sum[1]);
        sum[2] = sum[2] + w;
      }
    }
  }
  const auto sum = tile.total(sums);
  const A scale = gradient ? A(1) / value_of<A>(p.divisor) : A(1);
  const auto f = Finish<A>::template of<smooth>(p, target, base, sum[0], sum[smooth ? 1 : 0], sum[smooth ? 2 : 0], at_target, scale);

  if (owner) *as<A>(p.loss, row) = f.loss;
  if constexpr (gradient) {
    T* dlogits = as<T>(p.dlogits, row);
    const Gradient<A, capped> of{f, base, cap};
    if (target.kind == Kind::ignored) {
      tile.store(dlogits, n, [](A) { return A(0); }, x);
    } else if constexpr (smooth) {
      tile.store(dlogits, n, of, x, tile.view(as<W>(p.weight), n));
    } else {
      tile.store(dlogits, n, of, x);
    }
    // Over what the same thread has written.
    if (owner && target.kind == Kind::counts) from_acc(of.at_target(at_target, target.weight), dlogits[target.index]);
  }
}

}  // namespace kw::ops::cross_entropy
