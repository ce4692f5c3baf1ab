#line 2 "kwemu_half_functions.h"
// What the toolkit's header of a 16-bit float gives only to nvcc: computed in float and rounded. Included once for each such type, with
// KWEMU_H, KWEMU_H2 (the types), KWEMU_NAME (half, bfloat16), KWEMU_TO, KWEMU_FROM, KWEMU_FROM_DOUBLE (conversions),
// KWEMU_PAIR (two to a pair); it undefines them.
#define KWEMU_HF KWEMU_INLINE
KWEMU_HF KWEMU_H2 kwemu_pair(KWEMU_H a, KWEMU_H b) { return KWEMU_PAIR(a, b); }
// clang-format off
#define KWEMU_HALF1(name, e)                                            \
  KWEMU_HF KWEMU_H h##name(const KWEMU_H a) {                           \
    float x = KWEMU_TO(a);                                              \
    return KWEMU_FROM(e);                                               \
  }                                                                     \
  KWEMU_HF KWEMU_H2 h2##name(const KWEMU_H2 a) { return kwemu_pair(h##name(a.x), h##name(a.y)); }
KWEMU_HALF1(trunc, truncf(x))
KWEMU_HALF1(ceil, ceilf(x))
KWEMU_HALF1(floor, floorf(x))
KWEMU_HALF1(rint, rintf(x))
KWEMU_HALF1(sqrt, sqrtf(x))
KWEMU_HALF1(rsqrt, 1 / sqrtf(x))
KWEMU_HALF1(rcp, 1 / x)
KWEMU_HALF1(log, logf(x))
KWEMU_HALF1(log2, log2f(x))
KWEMU_HALF1(log10, log10f(x))
KWEMU_HALF1(exp, expf(x))
KWEMU_HALF1(exp2, exp2f(x))
KWEMU_HALF1(exp10, exp10f(x))
KWEMU_HALF1(cos, cosf(x))
KWEMU_HALF1(sin, sinf(x))
KWEMU_HALF1(tanh, tanhf(x))
KWEMU_HALF1(tanh_approx, tanhf(x))
#undef KWEMU_HALF1
// The product and the sum of 16-bit floats are exact in double; one rounding is left.
KWEMU_HF KWEMU_H kwemu_half_fma(KWEMU_H a, KWEMU_H b, KWEMU_H c) {
  return KWEMU_FROM_DOUBLE((double)KWEMU_TO(a) * KWEMU_TO(b) + KWEMU_TO(c));
}
#define KWEMU_HALF_FMA(suffix, e)                                                                        \
  KWEMU_HF KWEMU_H __hfma##suffix(const KWEMU_H a, const KWEMU_H b, const KWEMU_H c) {                   \
    KWEMU_H r = kwemu_half_fma(a, b, c);                                                                 \
    float x = KWEMU_TO(r);                                                                               \
    return e;                                                                                            \
  }                                                                                                      \
  KWEMU_HF KWEMU_H2 __hfma2##suffix(const KWEMU_H2 a, const KWEMU_H2 b, const KWEMU_H2 c) {              \
    return kwemu_pair(__hfma##suffix(a.x, b.x, c.x), __hfma##suffix(a.y, b.y, c.y));                     \
  }
KWEMU_HALF_FMA(, ((void)x, r))
KWEMU_HALF_FMA(_sat, KWEMU_FROM(x > 0 ? (x < 1 ? x : 1.f) : 0.f))
KWEMU_HALF_FMA(_relu, x != x || x > 0 ? r : KWEMU_FROM(0.f))
#undef KWEMU_HALF_FMA
KWEMU_HF KWEMU_H2 __hcmadd(const KWEMU_H2 a, const KWEMU_H2 b, const KWEMU_H2 c) {
  KWEMU_H re = kwemu_half_fma(a.x, b.x, c.x), im = kwemu_half_fma(a.x, b.y, c.y);
  return kwemu_pair(kwemu_half_fma(KWEMU_FROM(-KWEMU_TO(a.y)), b.y, re), kwemu_half_fma(a.y, b.x, im));
}
#define KWEMU_PASTE4(a, b, c, d) a##b##c##d
#define KWEMU_NAMED(a, b, c, d) KWEMU_PASTE4(a, b, c, d)
#define KWEMU_HALF_TO(name, T, m) \
  KWEMU_HF T KWEMU_NAMED(__, KWEMU_NAME, 2##name##_, m)(const KWEMU_H h) { return (T)kwemu_to_integer<T>(KWEMU_TO(h), kwemu_##m); }
#define KWEMU_HALF_TO_ALL(m)                      \
  KWEMU_HALF_TO(int, int, m)                      \
  KWEMU_HALF_TO(uint, unsigned, m)                \
  KWEMU_HALF_TO(short, short, m)                  \
  KWEMU_HALF_TO(ushort, unsigned short, m)        \
  KWEMU_HALF_TO(ll, long long, m)                 \
  KWEMU_HALF_TO(ull, unsigned long long, m)
KWEMU_HALF_TO_ALL(rn)
KWEMU_HALF_TO_ALL(rd)
KWEMU_HALF_TO_ALL(ru)
#undef KWEMU_HALF_TO_ALL
#undef KWEMU_HALF_TO
#undef KWEMU_NAMED
#undef KWEMU_PASTE4
#undef KWEMU_HF
#undef KWEMU_NAME
#undef KWEMU_H
#undef KWEMU_H2
#undef KWEMU_TO
#undef KWEMU_FROM
#undef KWEMU_FROM_DOUBLE
#undef KWEMU_PAIR
// clang-format on
