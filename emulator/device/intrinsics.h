// CUDA's intrinsic functions as host C++, beyond the elementary ones of math.h: conversions and arithmetic in the four rounding modes,
// integer SIMD in a word, bit operations, and the mathematical functions that a C library lacks. Most lines are rows of tables.
#pragma once

// ---- rounding: the nearest value first, then a step if it lies on the wrong side of the exact one -------------------------------------
enum kwemu_rounding { kwemu_rn, kwemu_rz, kwemu_rd, kwemu_ru };
KWEMU_INLINE float kwemu_next(float x, bool up) { return nextafterf(x, up ? __builtin_inff() : -__builtin_inff()); }
KWEMU_INLINE double kwemu_next(double x, bool up) { return nextafter(x, up ? __builtin_inf() : -__builtin_inf()); }
// `error`: has the sign of (exact - nearest)
template <class F, class E>
KWEMU_INLINE F kwemu_rounded(F nearest, E error, kwemu_rounding mode) {
  bool down = mode == kwemu_rd || (mode == kwemu_rz && nearest > 0), up = mode == kwemu_ru || (mode == kwemu_rz && nearest < 0);
  return error < 0 && down ? kwemu_next(nearest, false) : error > 0 && up ? kwemu_next(nearest, true) : nearest;
}
template <class F>
KWEMU_INLINE F kwemu_add(F a, F b, kwemu_rounding mode) {
  F sum = a + b, part = sum - a;
  return kwemu_rounded(sum, (a - (sum - part)) + (b - part), mode);
}
template <class F>
KWEMU_INLINE F kwemu_mul(F a, F b, kwemu_rounding mode) {
  return kwemu_rounded(F(a * b), (__float128)a * b - (__float128)F(a * b), mode);
}
template <class F>
KWEMU_INLINE F kwemu_div(F a, F b, kwemu_rounding mode) {
  F quotient = a / b;
  __float128 rest = (__float128)a - (__float128)quotient * b;
  return kwemu_rounded(quotient, b < 0 ? -rest : rest, mode);
}
template <class F>
KWEMU_INLINE F kwemu_sqrt(F a, kwemu_rounding mode) {
  F root = (F)(sizeof(F) == 4 ? sqrtf((float)a) : sqrt((double)a));
  return kwemu_rounded(root, (__float128)a - (__float128)root * root, mode);
}
template <class F>
KWEMU_INLINE F kwemu_fma(F a, F b, F c, kwemu_rounding mode) {
  F r = (F)(sizeof(F) == 4 ? fmaf((float)a, (float)b, (float)c) : fma((double)a, (double)b, (double)c));
  return kwemu_rounded(r, (__float128)a * b + c - r, mode);
}
// To an integer: what does not fit becomes the nearest that does, NaN becomes 0 (of 64 bits: the smallest).
template <class I>
KWEMU_INLINE I kwemu_to_integer(double x, kwemu_rounding mode) {
  constexpr bool is_signed = I(-1) < I(0);
  constexpr I most = is_signed ? I(~0ull >> (65 - 8 * sizeof(I))) : I(~0ull >> (64 - 8 * sizeof(I))),
              least = is_signed ? I(-most - 1) : I(0);
  if (x != x) return sizeof(I) == 8 ? I(1ull << 63) : I(0);
  double whole = mode == kwemu_rn ? rint(x) : mode == kwemu_rz ? trunc(x) : mode == kwemu_rd ? floor(x) : ceil(x);
  return whole >= (double)most ? most : whole <= (double)least ? least : (I)whole;
}
template <class F, class I>
KWEMU_INLINE F kwemu_from_integer(I x, kwemu_rounding mode) {
  return kwemu_rounded((F)x, (long double)x - (long double)(F)x, mode);
}
KWEMU_INLINE float kwemu_to_float(double x, kwemu_rounding mode) { return kwemu_rounded((float)x, x - (double)(float)x, mode); }

#define KWEMU_IN_MODE(m)                                                                                \
  KWEMU_INLINE float __fadd_##m(float a, float b) { return kwemu_add(a, b, kwemu_##m); }                \
  KWEMU_INLINE float __fsub_##m(float a, float b) { return kwemu_add(a, -b, kwemu_##m); }               \
  KWEMU_INLINE float __fmul_##m(float a, float b) { return kwemu_mul(a, b, kwemu_##m); }                \
  KWEMU_INLINE float __fdiv_##m(float a, float b) { return kwemu_div(a, b, kwemu_##m); }                \
  KWEMU_INLINE float __frcp_##m(float a) { return kwemu_div(1.f, a, kwemu_##m); }                       \
  KWEMU_INLINE float __fsqrt_##m(float a) { return kwemu_sqrt(a, kwemu_##m); }                          \
  KWEMU_INLINE float __fmaf_##m(float a, float b, float c) { return kwemu_fma(a, b, c, kwemu_##m); }    \
  KWEMU_INLINE double __dadd_##m(double a, double b) { return kwemu_add(a, b, kwemu_##m); }             \
  KWEMU_INLINE double __dsub_##m(double a, double b) { return kwemu_add(a, -b, kwemu_##m); }            \
  KWEMU_INLINE double __dmul_##m(double a, double b) { return kwemu_mul(a, b, kwemu_##m); }             \
  KWEMU_INLINE double __ddiv_##m(double a, double b) { return kwemu_div(a, b, kwemu_##m); }             \
  KWEMU_INLINE double __drcp_##m(double a) { return kwemu_div(1., a, kwemu_##m); }                      \
  KWEMU_INLINE double __dsqrt_##m(double a) { return kwemu_sqrt(a, kwemu_##m); }                        \
  KWEMU_INLINE double __fma_##m(double a, double b, double c) { return kwemu_fma(a, b, c, kwemu_##m); } \
  KWEMU_INLINE float __double2float_##m(double x) { return kwemu_to_float(x, kwemu_##m); }              \
  KWEMU_CONVERSIONS(m, int, int)                                                                        \
  KWEMU_CONVERSIONS(m, uint, unsigned)                                                                  \
  KWEMU_CONVERSIONS(m, ll, long long)                                                                   \
  KWEMU_CONVERSIONS(m, ull, unsigned long long)
#define KWEMU_CONVERSIONS(m, name, T)                                                              \
  KWEMU_INLINE T __float2##name##_##m(float x) { return kwemu_to_integer<T>(x, kwemu_##m); }       \
  KWEMU_INLINE T __double2##name##_##m(double x) { return kwemu_to_integer<T>(x, kwemu_##m); }     \
  KWEMU_INLINE float __##name##2float_##m(T x) { return kwemu_from_integer<float>(x, kwemu_##m); } \
  KWEMU_INLINE double __##name##2double_##m(T x) { return kwemu_from_integer<double>(x, kwemu_##m); }
// clang-format off
KWEMU_IN_MODE(rn)
KWEMU_IN_MODE(rz)
KWEMU_IN_MODE(rd)
KWEMU_IN_MODE(ru)
// clang-format on
KWEMU_INLINE int __double2hiint(double x) { return (int)(__builtin_bit_cast(unsigned long long, x) >> 32); }
KWEMU_INLINE int __double2loint(double x) { return (int)__builtin_bit_cast(unsigned long long, x); }
KWEMU_INLINE double __hiloint2double(int hi, int lo) {
  return __builtin_bit_cast(double, (unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}

// ---- two or four integers in a word ---------------------------------------------------------------------------------------------------
template <class T, class F>
KWEMU_INLINE unsigned kwemu_lanewise(unsigned a, unsigned b, F f) {
  constexpr unsigned bits = 8 * sizeof(T), ones = (1u << bits) - 1;
  unsigned r = 0;
  for (unsigned at = 0; at < 32; at += bits) r |= ((unsigned)f((int)(T)(a >> at), (int)(T)(b >> at)) & ones) << at;
  return r;
}
template <class T>
KWEMU_INLINE int kwemu_clamped(int x) {
  constexpr int most = T(-1) < T(0) ? (1 << (8 * sizeof(T) - 1)) - 1 : (1 << (8 * sizeof(T))) - 1, least = T(-1) < T(0) ? -most - 1 : 0;
  return x > most ? most : x < least ? least : x;
}
KWEMU_INLINE int kwemu_abs(int x) { return x < 0 ? -x : x; }
#define KWEMU_SIMD2(name, S, B2, B4, e)                                              \
  KWEMU_INLINE unsigned __v##name##2(unsigned a, unsigned b) {                       \
    using T = B2;                                                                    \
    return kwemu_lanewise<T>(a, b, [](int x, int y) { return (void)sizeof(T), e; }); \
  }                                                                                  \
  KWEMU_INLINE unsigned __v##name##4(unsigned a, unsigned b) {                       \
    using T = B4;                                                                    \
    return kwemu_lanewise<T>(a, b, [](int x, int y) { return (void)sizeof(T), e; }); \
  }
#define KWEMU_SIMD_S(name, e) KWEMU_SIMD2(name, s, short, signed char, e)
#define KWEMU_SIMD_U(name, e) KWEMU_SIMD2(name, u, unsigned short, unsigned char, e)
#define KWEMU_COMPARE(name, op, B2, B4)             \
  KWEMU_SIMD2(cmp##name, , B2, B4, x op y ? -1 : 0) \
  KWEMU_SIMD2(set##name, , B2, B4, x op y ? 1 : 0)
// clang-format off
KWEMU_SIMD_U(add, x + y)
KWEMU_SIMD_U(sub, x - y)
KWEMU_SIMD_S(addss, kwemu_clamped<T>(x + y))
KWEMU_SIMD_U(addus, kwemu_clamped<T>(x + y))
KWEMU_SIMD_S(subss, kwemu_clamped<T>(x - y))
KWEMU_SIMD_U(subus, kwemu_clamped<T>(x - y))
KWEMU_SIMD_S(maxs, x > y ? x : y)
KWEMU_SIMD_U(maxu, x > y ? x : y)
KWEMU_SIMD_S(mins, x < y ? x : y)
KWEMU_SIMD_U(minu, x < y ? x : y)
KWEMU_SIMD_S(avgs, (x + y + (x + y >= 0)) >> 1)
KWEMU_SIMD_U(avgu, (x + y + 1) >> 1)
KWEMU_SIMD_U(haddu, (x + y) >> 1)
KWEMU_SIMD_S(absdiffs, kwemu_abs(x - y))
KWEMU_SIMD_U(absdiffu, kwemu_abs(x - y))
KWEMU_COMPARE(eq, ==, unsigned short, unsigned char)
KWEMU_COMPARE(ne, !=, unsigned short, unsigned char)
KWEMU_COMPARE(gts, >, short, signed char)
KWEMU_COMPARE(ges, >=, short, signed char)
KWEMU_COMPARE(lts, <, short, signed char)
KWEMU_COMPARE(les, <=, short, signed char)
KWEMU_COMPARE(gtu, >, unsigned short, unsigned char)
KWEMU_COMPARE(geu, >=, unsigned short, unsigned char)
KWEMU_COMPARE(ltu, <, unsigned short, unsigned char)
KWEMU_COMPARE(leu, <=, unsigned short, unsigned char)
// clang-format on
#define KWEMU_SIMD1(bits, T)                                                                   \
  KWEMU_INLINE unsigned __vabs##bits(unsigned a) {                                             \
    return kwemu_lanewise<T>(a, 0, [](int x, int) { return kwemu_abs(x); });                   \
  }                                                                                            \
  KWEMU_INLINE unsigned __vneg##bits(unsigned a) {                                             \
    return kwemu_lanewise<T>(a, 0, [](int x, int) { return -x; });                             \
  }                                                                                            \
  KWEMU_INLINE unsigned __vabsss##bits(unsigned a) {                                           \
    return kwemu_lanewise<T>(a, 0, [](int x, int) { return kwemu_clamped<T>(kwemu_abs(x)); }); \
  }                                                                                            \
  KWEMU_INLINE unsigned __vnegss##bits(unsigned a) {                                           \
    return kwemu_lanewise<T>(a, 0, [](int x, int) { return kwemu_clamped<T>(-x); });           \
  }
KWEMU_SIMD1(2, short)
KWEMU_SIMD1(4, signed char)
template <class T>
KWEMU_INLINE unsigned kwemu_sad(unsigned a, unsigned b, unsigned sum) {
  for (unsigned at = 0; at < 32; at += 8 * sizeof(T)) sum += (unsigned)kwemu_abs((int)(T)(a >> at) - (int)(T)(b >> at));
  return sum;
}
KWEMU_INLINE unsigned __vsads2(unsigned a, unsigned b) { return kwemu_sad<short>(a, b, 0); }
KWEMU_INLINE unsigned __vsadu2(unsigned a, unsigned b) { return kwemu_sad<unsigned short>(a, b, 0); }
KWEMU_INLINE unsigned __vsads4(unsigned a, unsigned b) { return kwemu_sad<signed char>(a, b, 0); }
KWEMU_INLINE unsigned __vsadu4(unsigned a, unsigned b) { return kwemu_sad<unsigned char>(a, b, 0); }
template <class A, class B>
KWEMU_INLINE unsigned kwemu_dp4a(unsigned a, unsigned b, unsigned sum) {
  for (unsigned at = 0; at < 32; at += 8) sum += (unsigned)((int)(A)(a >> at) * (int)(B)(b >> at));
  return sum;
}
KWEMU_INLINE int __dp4a(int a, int b, int c) { return (int)kwemu_dp4a<signed char, signed char>((unsigned)a, (unsigned)b, (unsigned)c); }
KWEMU_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) { return kwemu_dp4a<unsigned char, unsigned char>(a, b, c); }
KWEMU_INLINE int __dp4a(char4 a, char4 b, int c) { return __dp4a(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c); }
KWEMU_INLINE unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), c);
}
KWEMU_INLINE int __dp2a_lo(int a, int b, int c) { return c + (short)a * (signed char)b + (a >> 16) * (signed char)(b >> 8); }
KWEMU_INLINE int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
KWEMU_INLINE unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff); }
KWEMU_INLINE unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }

// ---- bits, and integers -----------------------------------------------------------------------------------------------------------------
KWEMU_INLINE unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
KWEMU_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) { return s >= 32 ? lo : __funnelshift_l(lo, hi, s); }
KWEMU_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) { return s >= 32 ? hi : __funnelshift_r(lo, hi, s); }
KWEMU_INLINE unsigned __fns(unsigned mask, unsigned base, int offset) {  // the offset-th set bit from base on, up or down
  int at = (int)base, step = offset < 0 ? -1 : 1, left = offset < 0 ? -offset : offset ? offset : 1;
  if (!offset) return mask >> base & 1 ? base : ~0u;
  for (; at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && !--left) return (unsigned)at;
  return ~0u;
}
KWEMU_INLINE unsigned __sad(int a, int b, unsigned c) { return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a); }
KWEMU_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
KWEMU_INLINE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
KWEMU_INLINE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
KWEMU_INLINE unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
KWEMU_INLINE unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
KWEMU_INLINE long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
KWEMU_INLINE unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
KWEMU_INLINE unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
KWEMU_INLINE long long llmin(long long a, long long b) { return a < b ? a : b; }
KWEMU_INLINE long long llmax(long long a, long long b) { return a > b ? a : b; }
KWEMU_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
KWEMU_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
template <class T>
KWEMU_INLINE unsigned __match_all_sync(unsigned mask, T x, int* all) {
  unsigned same = __match_any_sync(mask, x);
  *all = same == mask;
  return *all ? mask : 0;
}
KWEMU_INLINE size_t __cvta_generic_to_shared(const void* p) { return kwemu_shared_offset(p); }
KWEMU_INLINE size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
KWEMU_INLINE void* __cvta_shared_to_generic(size_t p) { return kwemu_shared_address(p); }
KWEMU_INLINE void* __cvta_global_to_generic(size_t p) { return (void*)p; }
#define __builtin_assume(x) ((void)0)
#define __brkpt() ((void)0)

// ---- functions that a C library lacks ---------------------------------------------------------------------------------------------------
// sin(pi x): the argument is brought into [-1/4, 1/4] first, where nothing is lost.
KWEMU_INLINE double kwemu_sinpi(double x, int quarter) {
  double whole = rint(2 * x), rest = (x - whole / 2) * 3.14159265358979323846;
  int turn = ((int)fmod(whole, 4.) + quarter) & 3;
  double v = turn & 1 ? cos(rest) : sin(rest);
  return (turn & 2 ? -v : v) + 0.;
}
KWEMU_INLINE double kwemu_erfinv(double y) {  // Newton's method on erf, from a logarithmic first guess
  if (!(y > -1 && y < 1)) return y == 1 ? __builtin_inf() : y == -1 ? -__builtin_inf() : __builtin_nan("");
  double a = log(1 - y * y), b = 4.3307467508 + a / 2, x = sqrt(sqrt(b * b - a / 0.147) - b);
  if (y < 0) x = -x;
  for (int i = 0; i < 4; i++) x -= ((y > 0 ? erfc(-x) - 1 : 1 - erfc(x)) - y) / (1.12837916709551257390 * exp(-x * x));
  return y == 0 ? y : x;
}
KWEMU_INLINE double kwemu_erfcinv(double y) {
  if (y > 0.5) return kwemu_erfinv(1 - y);
  double x = y > 0 ? sqrt(-log(y)) : __builtin_inf();
  for (int i = 0; i < 12 && y > 0; i++) x += (erfc(x) - y) / (1.12837916709551257390 * exp(-x * x));
  return x;
}
#define KWEMU_BOTH1(name, e)                          \
  KWEMU_LIKE_LIBM double name(double x) { return e; } \
  KWEMU_LIKE_LIBM float name##f(float x) { return (float)(e); }
#define KWEMU_BOTH2(name, e)                                    \
  KWEMU_LIKE_LIBM double name(double x, double y) { return e; } \
  KWEMU_LIKE_LIBM float name##f(float x, float y) { return (float)(e); }
// clang-format off
KWEMU_BOTH1(sinpi, kwemu_sinpi(x, 0))
KWEMU_BOTH1(cospi, kwemu_sinpi(x, 1))
KWEMU_BOTH1(tanpi, kwemu_sinpi(x, 0) / kwemu_sinpi(x, 1))
KWEMU_BOTH1(erfinv, kwemu_erfinv(x))
KWEMU_BOTH1(erfcinv, kwemu_erfcinv(x))
KWEMU_BOTH1(normcdfinv, -1.41421356237309504880 * kwemu_erfcinv(2. * x))
KWEMU_BOTH1(erfcx, x < 25. ? exp((double)x * x) * erfc((double)x) : (1 - 0.5 / ((double)x * x)) / (x * 1.77245385090551602730))
KWEMU_BOTH2(rhypot, 1 / hypot((double)x, (double)y))
// clang-format on
KWEMU_LIKE_LIBM double rcbrt(double x) { return 1 / cbrt(x); }
KWEMU_LIKE_LIBM double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
KWEMU_LIKE_LIBM double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
KWEMU_LIKE_LIBM float norm3df(float x, float y, float z) { return (float)norm3d(x, y, z); }
KWEMU_LIKE_LIBM double rnorm3d(double x, double y, double z) { return 1 / norm3d(x, y, z); }
KWEMU_LIKE_LIBM float rnorm3df(float x, float y, float z) { return (float)rnorm3d(x, y, z); }
KWEMU_LIKE_LIBM double norm4d(double x, double y, double z, double w) { return sqrt(x * x + y * y + z * z + w * w); }
KWEMU_LIKE_LIBM float norm4df(float x, float y, float z, float w) { return (float)norm4d(x, y, z, w); }
KWEMU_LIKE_LIBM float rnorm4df(float x, float y, float z, float w) { return (float)(1 / norm4d(x, y, z, w)); }
KWEMU_LIKE_LIBM void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
KWEMU_LIKE_LIBM void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
KWEMU_LIKE_LIBM void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
KWEMU_LIKE_LIBM float __tanhf(float x) { return tanhf(x); }
KWEMU_LIKE_LIBM float fdividef(float x, float y) { return x / y; }
#ifndef KWEMU_PROGRAM
KWEMU_INLINE void sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
KWEMU_INLINE void sincos(double x, double* s, double* c) { *s = sin(x), *c = cos(x); }
KWEMU_INLINE double exp10(double x) { return pow(10., x); }
#endif
