// For rows too long to keep in registers. All kernels give the same bits.
#pragma once
#include "kw/device/row_ring.cuh"
#include "kw/device/window.cuh"
#include "kw/ops/cross_entropy/cross_entropy_row.cuh"

namespace kw::ops::cross_entropy {

// Piece by piece, the logits read once for the loss and a second time for the gradient. On every GPU, for rows of any length.
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
  const auto weights = [&](int64_t at) { return tile.view(as<W>(p.weight) + (is_present<W> ? at : 0), p.length - at); };

  Passing<A, Tile, smooth, capped> sums(tile, cap, to_acc(logits[0]));
  for (int64_t at = 0; at < p.length; at += Tile::length) {
    const auto x = tile.load(logits + at, p.length - at, minus_infinity<T>());
#pragma unroll
    for (int i = 0; i < Tile::vectors; i++) {
      const int64_t left = p.length - at - Tile::start(i);
      sums.add(i % Tile::lanes, x.at(i), weights(at).at(i), left < Tile::vec ? static_cast<int>(left) : Tile::vec);
    }
  }
  const A scale = gradient ? A(1) / value_of<A>(p.divisor) : A(1);
  A base;
  const auto f = sums.finish(tile, p, target, at_target, scale, base);

  if (owner) *as<A>(p.loss, row) = f.loss;
  if constexpr (gradient) {
    const Gradient<A, capped> of{f, base, cap};
    for (int64_t at = last; at >= 0; at -= Tile::length) {  // backwards: what was read last may still be in the cache
      const int64_t n = p.length - at;
      const auto x = tile.load(logits + at, n);
      if constexpr (smooth)
        tile.store(dlogits + at, n, of, x, weights(at));
      else
        tile.store(dlogits + at, n, of, x);
    }
    // Over what the same thread has written.
    if (owner && target.kind == Kind::counts) from_acc(of.at_target(at_target, target.weight), dlogits[target.index]);
  }
}

// The row lies in shared memory, of one block or of a cluster of blocks (from sm_90 on), and is read once. Blocks are small and many of
// them share a multiprocessor, so that some read while others write. From sm_80 on.
template <class T, class I, class W, bool gradient, bool smooth, bool capped, class Tile, int blocks>
__global__ void __launch_bounds__(Tile::block, blocks) forward_shared(const ForwardParams p) {
  using A = acc_t<T>;
  static_assert(Tile::rows == 1);
  Tile tile;
  Window<T, Tile> window;
  const int64_t row = tile.team();
  const int n = static_cast<int>(p.length);
  const T* logits = as<T>(p.logits, row);
  T* dlogits = as<T>(p.dlogits, row);

  const Target<A, I, W> target(p, row);
  const bool counts = target.kind == Kind::counts, ignored = target.kind == Kind::ignored;
  window.fetch(logits, n, !ignored);  // nobody in the cluster reads anything then
  const bool owner = tile.thread() == (counts ? window.writer(target.index) : 0);
  const Cap<A, capped> cap(p.softcap);
  const A at_target = owner && counts ? cap(to_acc(logits[target.index])) : A(0);
  const A scale = gradient ? A(1) / value_of<A>(p.divisor) : A(1);
  Passing<A, Tile, smooth, capped> sums(tile, cap, smooth && !ignored ? to_acc(logits[0]) : A(0));
  tile.begin();
  window.wait(minus_infinity<T>());
  sums.add_all(ignored ? 0 : n, [&](int i) { return unpack(window.at(i)); }, tile.view(as<W>(p.weight), n));
  A base;
  const auto f = sums.finish(tile, p, target, at_target, scale, base);
  if (owner) *as<A>(p.loss, row) = f.loss;

  if constexpr (gradient) {
    const Gradient<A, capped> of{f, base, cap};
    window.store(dlogits, [&](A x, int c) {
      if constexpr (smooth) return ignored || c < 0 || c >= n ? A(0) : of(x, A(weight_at(as<W>(p.weight), c)));
      return of(x);
    });
    // Over what the same thread has written.
    if (owner && counts) from_acc(of.at_target(at_target, target.weight), dlogits[target.index]);
  }
}

// Whether a row has a target, so that there is something to read.
template <class I>
struct HasTarget {
  Rows target;
  int64_t ignore_index;
  KW_WORD bool operator()(int64_t row) const { return *as<I>(target, row) != ignore_index; }
};

// The same with blocks that stay for many rows: while a row is worked on, the next ones are on their way. For rows of 16 bytes' alignment.
template <class T, class I, class W, bool gradient, bool smooth, bool capped, class Tile, int blocks, int slots>
__global__ void __launch_bounds__(Tile::block, blocks) forward_ring(const ForwardParams p) {
  using A = acc_t<T>;
  static_assert(gradient && Tile::rows == 1);
  Tile tile;
  RowRing<T, 1, Tile, slots, HasTarget<I>> rows(HasTarget<I>{p.target, p.ignore_index}, tile, p.rows, p.length, p.logits);
  tile.begin();
  const Cap<A, capped> cap(p.softcap);
  const A scale = A(1) / value_of<A>(p.divisor);
  const auto weights = tile.view(as<W>(p.weight), p.length);

  int64_t index = *as<I>(p.target, rows.row());
  for (; rows.any(); rows.next()) {
    const int64_t row = rows.row(), next = row + rows.step();
    const T* logits = as<T>(p.logits, row);
    T* dlogits = as<T>(p.dlogits, row);
    const Target<A, I, W> target(index, p);
    if (next < p.rows) index = *as<I>(p.target, next);
    const auto later = rows.later();
    const bool counts = target.kind == Kind::counts, ignored = target.kind == Kind::ignored;
    const bool owner = tile.thread() == target.owner(tile);
    const T element = owner && counts ? logits[target.index] : T{};
    const T first = smooth && !ignored ? logits[0] : T{};

    rows.wait();
    Passing<A, Tile, smooth, capped> sums(tile, cap, to_acc(first));
    sums.add_all(ignored ? 0 : p.length, [&](int i) { return rows.at(0, i); }, weights);
    A base;
    const A at_target = cap(to_acc(element));
    const auto f = sums.finish(tile, p, target, at_target, scale, base);
    if (owner) *as<A>(p.loss, row) = f.loss;

    const Gradient<A, capped> of{f, base, cap};
#pragma unroll
    for (int i = 0; i < Tile::vectors; i++) {
      const auto x = rows.at(0, i);
      rows.refill(i, later);
      if constexpr (smooth)
        tile.store(i, dlogits, p.length, [&](A x, A w) { return ignored ? A(0) : of(x, w); }, x, weights.at(i));
      else
        tile.store(i, dlogits, p.length, of, x);
    }
    // Over what the same thread has written.
    if (owner && counts) from_acc(of.at_target(at_target, target.weight), dlogits[target.index]);
  }
  rows.drain();
}

}  // namespace kw::ops::cross_entropy
