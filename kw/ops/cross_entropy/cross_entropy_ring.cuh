// For longer rows of which a block, or its share of the cluster, can hold one and a part: blocks stay for many rows, and each vector makes
// room for one of the next row the moment its gradient is written. So while a row is worked on, the next is on its way. From sm_80 on, for
// rows aligned to 16 bytes; the bits are those of cross_entropy_long.cuh.
#pragma once
#include "kw/device/ring.cuh"
#include "kw/ops/cross_entropy/cross_entropy_row.cuh"

namespace kw::ops::cross_entropy {

// slots: of the ring; more than Tile::vectors, at most twice as many. Only the last of a thread's vectors may lie beyond the end of the row:
// the tile is no longer than it has to be.
template <class T, class I, class W, bool gradient, bool smooth, bool capped, class Tile, int blocks, int slots>
__global__ void __launch_bounds__(Tile::block, blocks) forward_ring(const ForwardParams p) {
  using A = acc_t<T>;
  constexpr int vectors = Tile::vectors, lanes = Tile::lanes, ahead = slots - vectors;
  static_assert(gradient && Tile::rows == 1 && ahead > 0 && ahead <= vectors);
  Tile tile;
  Ring<slots, 1, Tile::block> ring;
  struct Source {  // a row to fetch from; nothing of it where it has no target, or does not exist
    const T* logits;
    int64_t n;
  };
  const int64_t step = tile.teams();
  int64_t row = tile.team();
  const auto target_of = [&](int64_t row) { return row < p.rows ? int64_t{*as<I>(p.target, row)} : p.ignore_index; };
  const auto source = [&](int64_t row, int64_t target) -> Source {
    return {as<T>(p.logits, row), target == p.ignore_index ? 0 : p.length};
  };
  const auto fetch = [&](int place, const T* logits, int64_t n, int vector) {
    ring.fetch(place, 0, logits + tile.start(vector), tile.start(vector) < n);
    ring.sent();
  };
  const auto x = [&](int i) { return unpack(ring.template at<T, Tile::vec>(i, 0)); };

  int64_t index = target_of(row), next = target_of(row + step), after = target_of(row + 2 * step);
  const Source mine = source(row, index), second = source(row + step, next);
#pragma unroll 4
  for (int i = 0; i < vectors; i++) fetch(i, mine.logits, mine.n, i);
#pragma unroll 4
  for (int i = 0; i < ahead; i++) fetch(vectors + i, second.logits, second.n, i);
  const Cap<A, capped> cap(p.softcap);
  const A scale = A(1) / value_of<A>(p.divisor);
  const auto weights = tile.view(as<W>(p.weight), p.length);
  tile.begin();

  for (; row < p.rows; row += step) {
    const T* logits = as<T>(p.logits, row);
    T* dlogits = as<T>(p.dlogits, row);
    const Target<A, I, W> target(p, index, {});
    const Source near = source(row + step, next), far = source(row + 2 * step, after);
    index = next, next = after, after = target_of(row + 3 * step);
    const bool owner = tile.thread() == target.owner(tile), counts = target.kind == Kind::counts;
    const A at_target = owner && counts ? cap(to_acc(logits[target.index])) : A(0);

    ring.template wait<ahead>();
    Finish<A> f{};
    A base = 0;
    if (target.kind != Kind::ignored) {  // all of the cluster, or none
      auto peaks = tile.sums(Peak<A>::none());
      auto sums = tile.sums(Vec<A, 2>{});
      const A first = smooth ? cap(to_acc(logits[0])) : A(0), from = first - first == 0 ? first : A(0);
      const auto add = [&](int i, int lane) {
        auto l = x(i);
        if constexpr (capped)
          for (int j = 0; j < Tile::vec; j++) l[j] = cap(l[j]);
        peaks[lane].add(l);
        if constexpr (smooth) {
          const auto w = weights.at(i);
          auto& sum = sums[lane];
          for (int j = 0; j < Tile::vec; j++) sum[0] = fused(A(w[j]), from - l[j], sum[0]), sum[1] = sum[1] + A(w[j]);
        }
      };
      // Whole rounds of the virtual lanes, so that the compiler knows which of them it is. Four vectors at once hide the exponentials'
      // latency, unless there is a branch between them.
      constexpr int rounds = lanes >= 4 ? 1 : 4 / lanes, whole = (vectors - 1) / lanes * lanes;
#pragma unroll rounds
      for (int at = 0; at < whole; at += lanes)
#pragma unroll
        for (int lane = 0; lane < lanes; lane++) add(at + lane, lane);
#pragma unroll
      for (int i = whole; i < vectors; i++)
        if (i < vectors - 1 || tile.start(i) < p.length) add(i, i - whole);
      const Peak<A> peak = tile.total(peaks);
      base = exp_base(peak.top);
      A distance = 0, all = 0;
      if constexpr (smooth) {
        const auto sum = tile.total(sums);
        all = sum[1];
        distance = fused(all, base - from, sum[0]);
      }
      f = Finish<A>::template of<smooth>(p, target, base, peak.sum, distance, all, at_target, scale);
    }
    if (owner) *as<A>(p.loss, row) = f.loss;

    const Gradient<A, capped> of{f, base, cap};
#pragma unroll 4
    for (int i = 0; i < vectors; i++) {
      const auto l = x(i);
      const bool wraps = i >= vectors - ahead;
      fetch(i, wraps ? far.logits : near.logits, wraps ? far.n : near.n, i + ahead - (wraps ? vectors : 0));
      if constexpr (smooth)
        tile.store(i, dlogits, p.length, of, l, weights.at(i));
      else
        tile.store(i, dlogits, p.length, of, l);
    }
    ring.advance(vectors);
    // Over what the same thread has written.
    if (owner && counts) from_acc(of.at_target(at_target, target.weight), dlogits[target.index]);
  }
  ring.template wait<0>();
}

}  // namespace kw::ops::cross_entropy
