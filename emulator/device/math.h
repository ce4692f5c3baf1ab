// CUDA's arithmetic functions as host C++. The fast approximations (__expf and its kin) are the exact functions here: results differ from
// a GPU's in the last bits.
#pragma once

#ifndef KWEMU_PROGRAM  // which has the host's
#define KWEMU_LIBM1(name)                   \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  KWEMU_INLINE float name(float x) { return name##f(x); }
#define KWEMU_LIBM2(name)                          \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept; \
  KWEMU_INLINE float name(float x, float y) { return name##f(x, y); }
// clang-format off
KWEMU_LIBM1(sqrt) KWEMU_LIBM1(cbrt) KWEMU_LIBM1(exp) KWEMU_LIBM1(exp2) KWEMU_LIBM1(expm1) KWEMU_LIBM1(log)
KWEMU_LIBM1(log2) KWEMU_LIBM1(log10) KWEMU_LIBM1(log1p) KWEMU_LIBM1(sin) KWEMU_LIBM1(cos) KWEMU_LIBM1(tan)
KWEMU_LIBM1(asin) KWEMU_LIBM1(acos) KWEMU_LIBM1(atan) KWEMU_LIBM1(sinh) KWEMU_LIBM1(cosh) KWEMU_LIBM1(tanh)
KWEMU_LIBM1(erf) KWEMU_LIBM1(erfc) KWEMU_LIBM1(floor) KWEMU_LIBM1(ceil) KWEMU_LIBM1(trunc) KWEMU_LIBM1(round)
KWEMU_LIBM1(rint) KWEMU_LIBM1(nearbyint) KWEMU_LIBM1(fabs)
KWEMU_LIBM2(pow) KWEMU_LIBM2(fmod) KWEMU_LIBM2(atan2) KWEMU_LIBM2(hypot) KWEMU_LIBM2(copysign) KWEMU_LIBM2(fmax)
KWEMU_LIBM2(fmin) KWEMU_LIBM2(fdim) KWEMU_LIBM2(nextafter)
extern "C" double fma(double, double, double) noexcept;
// clang-format on
extern "C" float fmaf(float, float, float) noexcept;
KWEMU_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;

#define KWEMU_CLASSIFY(T)                                           \
  KWEMU_INLINE bool isnan(T x) { return x != x; }                   \
  KWEMU_INLINE bool isinf(T x) { return __builtin_isinf(x); }       \
  KWEMU_INLINE bool isfinite(T x) { return __builtin_isfinite(x); } \
  KWEMU_INLINE bool signbit(T x) { return __builtin_signbit(x); }   \
  KWEMU_INLINE T abs(T x) { return fabs(x); }
KWEMU_CLASSIFY(float)
KWEMU_CLASSIFY(double)
KWEMU_INLINE int abs(int x) { return x < 0 ? -x : x; }
KWEMU_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
KWEMU_INLINE long long llabs(long long x) { return x < 0 ? -x : x; }
#endif

#define KWEMU_MINMAX(A, B, R)                                        \
  KWEMU_INLINE R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; } \
  KWEMU_INLINE R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; }
// clang-format off
KWEMU_MINMAX(int, int, int)
KWEMU_MINMAX(unsigned, unsigned, unsigned)
KWEMU_MINMAX(long, long, long)
KWEMU_MINMAX(unsigned long, unsigned long, unsigned long)
KWEMU_MINMAX(long long, long long, long long)
KWEMU_MINMAX(unsigned long long, unsigned long long, unsigned long long)
KWEMU_MINMAX(int, unsigned, unsigned)
KWEMU_MINMAX(unsigned, int, unsigned)
// clang-format on
KWEMU_INLINE float max(float a, float b) { return fmaxf(a, b); }
KWEMU_INLINE float min(float a, float b) { return fminf(a, b); }
KWEMU_INLINE double max(double a, double b) { return fmax(a, b); }
KWEMU_INLINE double min(double a, double b) { return fmin(a, b); }

KWEMU_INLINE float rsqrtf(float x) { return 1.f / sqrtf(x); }
KWEMU_INLINE double rsqrt(double x) { return 1. / sqrt(x); }
KWEMU_INLINE float rsqrt(float x) { return rsqrtf(x); }
#ifndef KWEMU_PROGRAM
KWEMU_INLINE float exp10f(float x) { return powf(10.f, x); }
#endif
KWEMU_INLINE float rcbrtf(float x) { return 1.f / cbrtf(x); }
KWEMU_INLINE float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
KWEMU_INLINE float __saturatef(float x) { return x > 0.f ? (x < 1.f ? x : 1.f) : 0.f; }
// Not static: the host's math.h declares functions of some of these names, which a unit would then define.
#define KWEMU_LIKE_LIBM inline __attribute__((always_inline, unused))
#define KWEMU_F1(name, e) \
  KWEMU_LIKE_LIBM float name(float x) { return e; }
// clang-format off
KWEMU_F1(__expf, expf(x))
KWEMU_F1(__exp10f, exp10f(x))
KWEMU_F1(__logf, logf(x))
KWEMU_F1(__log2f, log2f(x))
KWEMU_F1(__log10f, log10f(x))
KWEMU_F1(__sinf, sinf(x))
KWEMU_F1(__cosf, cosf(x))
KWEMU_F1(__tanf, tanf(x))
KWEMU_F1(__frsqrt_rn, 1.f / sqrtf(x))
// clang-format on
#define KWEMU_F2(name, e) \
  KWEMU_LIKE_LIBM float name(float x, float y) { return e; }
// clang-format off
KWEMU_F2(__fdividef, x / y)
KWEMU_F2(__powf, powf(x, y))
// clang-format on

KWEMU_INLINE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
KWEMU_INLINE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
KWEMU_INLINE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
KWEMU_INLINE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
KWEMU_INLINE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
KWEMU_INLINE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

KWEMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
KWEMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
KWEMU_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
KWEMU_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
KWEMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
KWEMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
KWEMU_INLINE unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1u) << (31 - i);
  return r;
}
KWEMU_INLINE int __mul24(int a, int b) { return a * b; }
KWEMU_INLINE unsigned __umul24(unsigned a, unsigned b) { return a * b; }
KWEMU_INLINE int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
KWEMU_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
KWEMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
KWEMU_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((((unsigned long long)hi << 32) | lo) << (s & 31)) >> 32);
}
KWEMU_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)((((unsigned long long)hi << 32) | lo) >> (s & 31));
}
KWEMU_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long v = ((unsigned long long)b << 32) | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= (unsigned)(v >> (8 * ((s >> (4 * i)) & 7)) & 0xff) << (8 * i);
  return r;
}
