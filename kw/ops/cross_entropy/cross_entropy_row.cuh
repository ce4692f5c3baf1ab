// What the kernels for whole rows share: the target, the cap, and the formula once a row's sums are known.
//
// With l = softcap(logits), w the class weights (ones), t the target, s = label_smoothing, z = z_loss, lse = log(sum of e^l):
//   loss = (1 - s) w_t (lse - l_t) + s / V * sum of w_c (lse - l_c) + z w_t lse^2
//   dl_c = softmax_c ((1 - s) w_t + s / V * sum of w + 2 z w_t lse) - s / V * w_c, and at c = t less (1 - s) w_t
#pragma once
#include "kw/device/softmax.cuh"
#include "kw/ops/cross_entropy/cross_entropy_params.cuh"

namespace kw::ops::cross_entropy {

template <class A>
KW_WORD A weight_at(const A* weight, int64_t i) {
  return weight[i];
}
KW_WORD float weight_at(const One*, int64_t) { return 1; }

// The whole warp calls it.
template <class A>
KW_WORD A value_of(const Divisor& d) {
  if (!d.parts) return 1;
  A sum = 0;
  for (int i = threadIdx.x % 32; i < d.count; i += 32) sum = sum + as<A>(d.parts)[i];
  return warp_sum<32>(sum);
}

// cap * tanh(x / cap), and its slope; without a cap x, and one.
template <class A, bool capped>
struct Cap {
  A cap, inverse;
  KW_WORD explicit Cap(double c) : cap(A(c)), inverse(capped ? A(1) / A(c) : A(0)) {}
  KW_WORD A operator()(A x) const { return capped ? cap * hyperbolic_tangent(x * inverse) : x; }
  KW_WORD A slope(A l) const { return capped ? fused(-l * inverse, l * inverse, A(1)) : A(1); }
};

enum class Kind { counts, ignored, invalid };

// The target of a row, and the thread that writes what depends on it: the one that holds it among its elements.
template <class A, class I, class W>
struct Target {
  int64_t index;
  Kind kind;
  A weight;

  KW_WORD Target(const ForwardParams& p, int64_t row) : Target(*as<I>(p.target, row), p) {}
  KW_WORD Target(int64_t index, const ForwardParams& p) : index(index), weight(0) {
    kind = index == p.ignore_index ? Kind::ignored : index >= 0 && index < p.length ? Kind::counts : Kind::invalid;
    if (kind == Kind::counts) weight = weight_at(as<W>(p.weight), index);
  }
  template <class Tile>
  KW_WORD int owner(const Tile&) const {
    return kind == Kind::counts ? static_cast<int>(index / Tile::vec % Tile::threads) : 0;
  }
};

// What is left to do once a row is known: its loss, and dl_c = (e^(l_c - base) * factor - less * w_c [- hit at the target]) * slope.
template <class A>
struct Finish {
  A loss, factor, less, hit;

  // `far`: sum of w_c (base - l_c), `weights`: sum of w_c, both for label smoothing only. `scale`: of the gradient.
  template <bool smooth, class TargetOfRow>
  KW_WORD static Finish of(const ForwardParams& p, const TargetOfRow& t, A base, A sum, A far, A weights, A at_target, A scale) {
    const A s = A(p.label_smoothing), own = (A(1) - s) * t.weight, share = smooth ? s / A(p.length) : A(0), z = A(p.z_loss) * t.weight;
    const A spread = logarithm(sum), lse = base + spread;
    Finish f;
    f.loss = fused(own, spread + (base - at_target), z * lse * lse);
    if (smooth) f.loss = f.loss + share * fused(weights, spread, far);
    f.factor = scale * (own + (smooth ? share * weights : A(0)) + A(2) * z * lse) / sum;
    f.less = scale * share;
    f.hit = scale * own;
    if (t.kind == Kind::ignored) f = Finish{};  // no loss, and a gradient of zero from the zeros in place of what was not read
    if (t.kind == Kind::invalid) f.loss = f.factor = minus_infinity<A>() * A(0);  // NaN
    return f;
  }
};

// The gradient at a class, from its logit and weight.
template <class A, bool capped>
struct Gradient {
  Finish<A> f;
  A base;
  Cap<A, capped> cap;

  KW_WORD A operator()(A x) const {  // without label smoothing
    const A l = cap(x);
    return exp_difference(l, base) * f.factor * cap.slope(l);
  }
  KW_WORD A operator()(A x, A weight) const {
    const A l = cap(x);
    return fused(exp_difference(l, base), f.factor, -f.less * weight) * cap.slope(l);
  }
  KW_WORD A at_target(A l, A weight) const {  // l: capped already
    return fused(exp_difference(l, base), f.factor, -fused(f.less, weight, f.hit)) * cap.slope(l);
  }
};

// What a longer row adds up while it goes by: Peaks and, for label smoothing, weights and weighted distances. These are taken from an
// element of the row, so that a common offset of its logits does not cost digits.
template <class A, class Tile, bool smooth, bool capped>
struct Passing {
  Cap<A, capped> cap;
  A from;
  Vec<Peak<A>, Tile::lanes> peaks;
  Vec<Vec<A, 2>, Tile::lanes> sums;

  // first: any logit of the row.
  KW_WORD Passing(const Tile& tile, const Cap<A, capped>& c, A first)
      : cap(c), peaks(tile.sums(Peak<A>::none())), sums(tile.sums(Vec<A, 2>{})) {
    const A l = smooth ? cap(first) : A(0);
    from = l - l == 0 ? l : A(0);
  }
  // The first `left` elements of a vector, with their weights; what follows is minus infinity.
  template <class Weights>
  KW_WORD void add(int lane, Vec<A, Tile::vec> l, const Weights& w, int left) {
#pragma unroll
    for (int j = 0; j < Tile::vec; j++) {
      if ((capped || smooth) && j >= left) continue;
      l[j] = cap(l[j]);
      if constexpr (smooth) {
        sums[lane][0] = fused(A(w[j]), from - l[j], sums[lane][0]);
        sums[lane][1] = sums[lane][1] + A(w[j]);
      }
    }
    peaks[lane].add(l);
  }
  // Adds all vectors of the row that `at` gives. Whole rounds of the virtual lanes, so that the compiler knows which of them it is; four
  // vectors at once hide the exponentials' latency, unless there is a branch between them. Only the last two of a thread's vectors may lie
  // beyond the end of the row: the tile is no longer than it has to be.
  template <class At, class Weights>
  KW_WORD void add_all(int64_t n, At at, const Weights& weights) {
    constexpr int lanes = Tile::lanes, rounds = lanes >= 4 ? 1 : 4 / lanes, last = Tile::align < 16 ? 2 : 1;
    constexpr int whole = Tile::vectors > last ? (Tile::vectors - last) / lanes * lanes : 0;
#pragma unroll rounds
    for (int first = 0; first < whole; first += lanes)
#pragma unroll
      for (int lane = 0; lane < lanes; lane++) add(lane, at(first + lane), weights.at(first + lane), Tile::vec);
#pragma unroll
    for (int i = whole; i < Tile::vectors; i++) {
      const int64_t left = n - Tile::start(i);
      if (i >= Tile::vectors - last && left <= 0) break;
      add(i % lanes, at(i), weights.at(i),
          i < Tile::vectors - last || Tile::align == 16 || left > Tile::vec ? Tile::vec : static_cast<int>(left));
    }
  }
  // `base`: what the gradient subtracts.
  template <class TargetOfRow>
  KW_WORD Finish<A> finish(Tile& tile, const ForwardParams& p, const TargetOfRow& target, A at_target, A scale, A& base) {
    const Peak<A> peak = tile.total(peaks);
    base = exp_base(peak.top);
    A far = 0, weights = 0;
    if constexpr (smooth) {
      const auto sum = tile.total(sums);
      weights = sum[1];
      far = fused(weights, base - from, sum[0]);
    }
    return Finish<A>::template of<smooth>(p, target, base, peak.sum, far, weights, at_target, scale);
  }
};

// Whether a row without a target is not even read. That costs every row the time that its target takes to arrive, which only shows where
// rows are short.
template <class T, class Tile>
inline constexpr bool skips_ignored = int64_t{Tile::length} * sizeof(T) >= 32768;

}  // namespace kw::ops::cross_entropy
