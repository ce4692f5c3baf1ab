// What softmax needs of a row: its largest element, and the sum of e^(x - largest).
//
// A row that lies in registers gives first the one (row_max), then the other (RowTile::sum). For a longer one, a Peak is both at once, for
// what has come by so far; Peaks add up along the tree of row.cuh like any sum, so that the bits are the same for every tile.
#pragma once
#include "kw/device/row.cuh"

namespace kw {

KW_WORD float larger(float a, float b) { return fmaxf(a, b); }  // the other one where one is NaN
KW_WORD double larger(double a, double b) { return fmax(a, b); }
KW_WORD float logarithm(float x) { return logf(x); }
KW_WORD double logarithm(double x) { return ::log(x); }
KW_WORD float hyperbolic_tangent(float x) { return tanhf(x); }
KW_WORD double hyperbolic_tangent(double x) { return ::tanh(x); }

// e^(x - from), for x up to `from`: relative error (x - from) 2^-24 + 2^-22; exactly 1 where they are equal; 0 below 2^-126. The difference
// comes first: x log2(e) - from log2(e) would overflow for logits masked with the lowest number.
KW_WORD float exp_difference(float x, float from) {
  const float y = (x - from) * 1.4426950408889634f;
#ifdef KW_EMULATED
  return exp2f(y);
#else
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(y));
  return e;
#endif
}
KW_WORD double exp_difference(double x, double from) { return ::exp(x - from); }

namespace detail {
KW_WORD f16 minus_infinity(f16) { return f16{0xfc00}; }
KW_WORD bf16 minus_infinity(bf16) { return bf16{0xff80}; }
}  // namespace detail
template <class T>
KW_WORD T minus_infinity() {
  if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, 0xfff0000000000000ull);
  else if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(T, 0xff800000u);
  else
    return detail::minus_infinity(T{});
}

// What to subtract from the elements of a row whose largest is `top`: not minus infinity, from which minus infinity is no number.
template <class A>
KW_WORD A exp_base(A top) {
  return top == minus_infinity<A>() ? A(0) : top;
}

// ---- rows in registers -------------------------------------------------------------------------------------------------------

// The largest of each of `groups` runs of `threads` consecutive threads (a power of two), given to all of them; NaNs count as nothing. The
// whole block of threads * groups calls it, once in a kernel, or with a barrier between two calls.
template <int threads, int groups, class A>
KW_WORD A block_max(A v) {
#pragma unroll
  for (int mask = detail::least(threads, 32) / 2; mask > 0; mask /= 2) v = larger(v, shuffle_xor(v, mask));
  if constexpr (threads > 32) {
    __shared__ A warps[groups][threads / 32];
    const int group = threadIdx.x / threads, thread = threadIdx.x % threads;
    if (thread % 32 == 0) warps[group][thread / 32] = v;
    __syncthreads();
    v = warps[group][thread % (threads / 32)];
#pragma unroll
    for (int mask = threads / 64; mask > 0; mask /= 2) v = larger(v, shuffle_xor(v, mask));
  }
  return v;
}

// The largest element of a row that was loaded with minus infinity beyond its end.
template <class T, class Tile>
KW_WORD acc_t<T> row_max(const Tile&, const typename Tile::template Share<T>& x) {
  acc_t<T> top = minus_infinity<acc_t<T>>();
#pragma unroll
  for (int i = 0; i < Tile::vectors; i++) {
    const auto v = x.at(i);
#pragma unroll
    for (int j = 0; j < Tile::vec; j++) top = larger(top, v[j]);
  }
  return block_max<Tile::threads, Tile::rows>(top);
}

// ---- longer rows -------------------------------------------------------------------------------------------------------------

template <class A>
struct Peak {
  A top, sum;  // sum of e^(x - exp_base(top))

  KW_WORD static Peak none() { return {minus_infinity<A>(), A(0)}; }
  template <int n>
  KW_WORD void add(const Vec<A, n>& x) {
    A higher = top;
#pragma unroll
    for (int j = 0; j < n; j++) higher = larger(higher, x[j]);
    const A base = exp_base(higher);
    sum = sum * exp_difference(top, base);
    top = higher;
#pragma unroll
    for (int j = 0; j < n; j++) sum = sum + exp_difference(x[j], base);
  }
};
template <class A>
KW_WORD Peak<A> operator+(const Peak<A>& a, const Peak<A>& b) {
  const A top = larger(a.top, b.top), base = exp_base(top);
  return {top, a.sum * exp_difference(a.top, base) + b.sum * exp_difference(b.top, base)};
}
template <class A>
KW_WORD Peak<A> shuffle_xor(const Peak<A>& p, int mask) {
  return {shuffle_xor(p.top, mask), shuffle_xor(p.sum, mask)};
}

}  // namespace kw
