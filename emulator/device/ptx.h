// What inline PTX becomes: the rewriter puts calls of these in place of asm statements. A register of PTX is untyped, so values go through
// memory of the right size.
#pragma once

using kwemu_f16 = _Float16;
struct kwemu_bf16 {
  unsigned short bits;
  operator float() const { return __builtin_bit_cast(float, (unsigned)bits << 16); }
  kwemu_bf16() = default;
  kwemu_bf16(float x) {
    unsigned b = __builtin_bit_cast(unsigned, x);
    bits = x != x ? 0x7fff : (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
  }
};
template <class T>
struct kwemu_two {
  T x, y;
};
using kwemu_f16x2 = kwemu_two<kwemu_f16>;
using kwemu_bf16x2 = kwemu_two<kwemu_bf16>;
template <class T, int N>
struct alignas(sizeof(T) * N) kwemu_vec {
  T e[N];
};

template <class T, class V>
KWEMU_INLINE T kwemu_get(const V& v) {
  T r{};
  if constexpr (__is_same(T, bool)) {
    return v != 0;
  } else {
    __builtin_memcpy(&r, &v, sizeof(T) < sizeof(V) ? sizeof(T) : sizeof(V));
    return r;
  }
}
// A narrow integer fills a wide register with its sign.
template <class T, class V>
KWEMU_INLINE void kwemu_put(V& v, T x) {
  if constexpr (__is_same(T, bool)) {
    v = V(x);
  } else if constexpr (sizeof(T) < sizeof(V) && T(-1) < T(0) && __is_same(T, signed char)) {
    long long wide = x;
    __builtin_memcpy(&v, &wide, sizeof(V));
  } else if constexpr (sizeof(T) < sizeof(V) && (__is_same(T, short) || __is_same(T, int))) {
    long long wide = x;
    __builtin_memcpy(&v, &wide, sizeof(V));
  } else {
    char bytes[16] = {};
    __builtin_memcpy(bytes, &x, sizeof(T));
    __builtin_memcpy(&v, bytes, sizeof(V));
  }
}

// ---- operations; integers wrap
// ------------------------------------------------------------------------------------------------------------
template <class T>
struct kwemu_unsigned_of {
  using type = T;
};
template <>
struct kwemu_unsigned_of<int> {
  using type = unsigned;
};
template <>
struct kwemu_unsigned_of<short> {
  using type = unsigned;
};
template <>
struct kwemu_unsigned_of<unsigned short> {
  using type = unsigned;
};
template <>
struct kwemu_unsigned_of<long long> {
  using type = unsigned long long;
};
template <class T>
using kwemu_wrapping = typename kwemu_unsigned_of<T>::type;
template <class T>
struct kwemu_wide_of;
// clang-format off
template <> struct kwemu_wide_of<int> { using type = long long; };
template <> struct kwemu_wide_of<unsigned> { using type = unsigned long long; };
template <> struct kwemu_wide_of<short> { using type = int; };
template <> struct kwemu_wide_of<unsigned short> { using type = unsigned; };
template <> struct kwemu_wide_of<long long> { using type = __int128; };
template <> struct kwemu_wide_of<unsigned long long> { using type = unsigned __int128; };
// clang-format on
template <class T>
using kwemu_wide = typename kwemu_wide_of<T>::type;
template <class T>
constexpr bool kwemu_is_two = false;
template <class T>
constexpr bool kwemu_is_two<kwemu_two<T>> = true;

#define KWEMU_PTX2(name, e)                                             \
  template <class T>                                                    \
  KWEMU_INLINE T kwemu_ptx_##name(T a, T b) {                           \
    if constexpr (kwemu_is_two<T>) {                                    \
      return T{kwemu_ptx_##name(a.x, b.x), kwemu_ptx_##name(a.y, b.y)}; \
    } else {                                                            \
      using U = kwemu_wrapping<T>;                                      \
      return (void)sizeof(U), T(e);                                     \
    }                                                                   \
  }
#define KWEMU_PTX1(name, e)                                   \
  template <class T>                                          \
  KWEMU_INLINE T kwemu_ptx_##name(T a) {                      \
    if constexpr (kwemu_is_two<T>) {                          \
      return T{kwemu_ptx_##name(a.x), kwemu_ptx_##name(a.y)}; \
    } else {                                                  \
      using U = kwemu_wrapping<T>;                            \
      return (void)sizeof(U), T(e);                           \
    }                                                         \
  }
#define KWEMU_PTX_BITS2(name, e)              \
  template <class T>                          \
  KWEMU_INLINE T kwemu_ptx_##name(T a, T b) { \
    return T(e);                              \
  }
// The precision of double is spared for double.
#define KWEMU_PTX_MATH(name, libm) KWEMU_PTX1(name, sizeof(T) == 8 ? (double)::libm((double)a) : (double)::libm##f((float)a))
// clang-format off
KWEMU_PTX2(add, U(a) + U(b))
KWEMU_PTX2(sub, U(a) - U(b))
KWEMU_PTX2(mul_lo, U(a) * U(b))
KWEMU_PTX2(div, a / b)
KWEMU_PTX_BITS2(rem, a % b)
KWEMU_PTX2(min, a != a ? b : b != b ? a : b < a ? b : a)
KWEMU_PTX2(max, a != a ? b : b != b ? a : a < b ? b : a)
KWEMU_PTX_BITS2(and, a & b)
KWEMU_PTX_BITS2(or, a | b)
KWEMU_PTX_BITS2(xor, a ^ b)
KWEMU_PTX2(copysign, __builtin_copysign((double)b, (double)a))
KWEMU_PTX1(neg, U(0) - U(a))
KWEMU_PTX1(abs, a < T(0) ? U(0) - U(a) : a)
KWEMU_PTX_MATH(sqrt, sqrt)
KWEMU_PTX_MATH(ex2, exp2)
KWEMU_PTX_MATH(lg2, log2)
KWEMU_PTX_MATH(sin, sin)
KWEMU_PTX_MATH(cos, cos)
KWEMU_PTX_MATH(tanh, tanh)
KWEMU_PTX1(rsqrt, 1 / kwemu_ptx_sqrt(a))
KWEMU_PTX1(rcp, T(1) / a)
KWEMU_PTX1(sat, a > T(0) ? (a < T(1) ? a : T(1)) : T(0))
// clang-format on
template <class T>
KWEMU_INLINE T kwemu_ptx_not(T a) {
  if constexpr (__is_same(T, bool))
    return !a;
  else
    return T(~a);
}
template <class T>
KWEMU_INLINE T kwemu_ptx_cnot(T a) {
  return T(a == 0);
}
template <class T>
KWEMU_INLINE T kwemu_ptx_mov(T a) {
  return a;
}
template <class T>
KWEMU_INLINE T kwemu_ptx_cvta(T a) {
  return a;
}
template <class T>
KWEMU_INLINE T kwemu_ptx_fma(T a, T b, T c) {
  if constexpr (kwemu_is_two<T>)
    return T{kwemu_ptx_fma(a.x, b.x, c.x), kwemu_ptx_fma(a.y, b.y, c.y)};
  else if constexpr (sizeof(T) == 4)
    return fmaf(a, b, c);
  else
    return T(fma((double)a, (double)b, (double)c));
}
template <class T>
KWEMU_INLINE kwemu_wide<T> kwemu_ptx_mul_wide(T a, T b) {
  return (kwemu_wide<T>)a * b;
}
template <class T>
KWEMU_INLINE T kwemu_ptx_mul_hi(T a, T b) {
  return T(((kwemu_wide<T>)a * b) >> (8 * sizeof(T)));
}
template <class T>
KWEMU_INLINE T kwemu_ptx_shl(T a, unsigned n) {
  return n >= 8 * sizeof(T) ? T(0) : T((unsigned long long)a << n);
}
template <class T>
KWEMU_INLINE T kwemu_ptx_shr(T a, unsigned n) {
  constexpr unsigned bits = 8 * sizeof(T);
  return n >= bits ? (T(-1) < T(0) ? T(a >> (bits - 1)) : T(0)) : T(a >> n);
}
template <class T>
KWEMU_INLINE unsigned kwemu_ptx_popc(T a) {
  return (unsigned)__builtin_popcountll((unsigned long long)a);
}
template <class T>
KWEMU_INLINE unsigned kwemu_ptx_clz(T a) {
  return a ? (unsigned)__builtin_clzll((unsigned long long)a) - (64 - 8 * sizeof(T)) : 8 * sizeof(T);
}
template <class T>
KWEMU_INLINE T kwemu_ptx_brev(T a) {
  return T(sizeof(T) == 8 ? __brevll((unsigned long long)a) : __brev((unsigned)a));
}
template <class T>
KWEMU_INLINE T kwemu_ptx_sad(T a, T b, T c) {
  return T(c + (a > b ? a - b : b - a));
}
template <class T>
KWEMU_INLINE T kwemu_ptx_prmt(T a, T b, T s) {
  return T(__byte_perm((unsigned)a, (unsigned)b, (unsigned)s));
}
template <class T>
KWEMU_INLINE T kwemu_ptx_bfe(T a, unsigned at, unsigned length) {  // a field beyond the top is filled with the sign, or 0
  constexpr unsigned bits = 8 * sizeof(T);
  at &= 255, length &= 255;
  if (!length) return T(0);
  __int128 wide = at >= bits ? (a < T(0) ? __int128(-1) : __int128(0)) : __int128(a) >> at;
  return length >= bits ? T(wide) : T(T(-1) < T(0) ? (wide << (128 - length)) >> (128 - length) : wide & (((__int128)1 << length) - 1));
}
template <class T>
KWEMU_INLINE T kwemu_ptx_bfi(T field, T into, unsigned at, unsigned length) {
  at &= 255, length &= 255;
  unsigned long long ones = length >= 64 ? ~0ull : (1ull << length) - 1, mask = at >= 64 ? 0 : ones << at;
  return T(((unsigned long long)into & ~mask) | ((at >= 64 ? 0 : (unsigned long long)field << at) & mask));
}
KWEMU_INLINE unsigned kwemu_ptx_lop3(unsigned a, unsigned b, unsigned c, unsigned table) {
  unsigned r = 0;
  for (int i = 0; i < 8; i++)
    if (table >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}
template <class To, class From>
KWEMU_INLINE To kwemu_ptx_cvt(From x, kwemu_rounding mode, bool saturate) {
  constexpr bool to_whole = To(0.5f) == To(0) && !__is_same(To, bool), from_whole = From(0.5f) == From(0);
  if constexpr (to_whole && from_whole) {
    if (!saturate) return To(x);
    return kwemu_to_integer<To>((double)x, kwemu_rz);
  } else if constexpr (to_whole) {
    return kwemu_to_integer<To>((double)x, mode);
  } else if constexpr (from_whole) {
    return To(kwemu_from_integer<float>(x, mode));
  } else if constexpr (sizeof(To) == 8) {
    return To(x);
  } else if constexpr (sizeof(To) == sizeof(From) && sizeof(To) == 4) {
    return To(mode == kwemu_rz ? truncf(x) : mode == kwemu_rd ? floorf(x) : mode == kwemu_ru ? ceilf(x) : rintf(x));
  } else if constexpr (sizeof(To) == 4) {
    return To(kwemu_to_float((double)x, mode));
  } else {
    return To((float)x);
  }
}
template <class To>
KWEMU_INLINE unsigned kwemu_ptx_pack(float high, float low) {
  using Half = decltype(To{}.x);
  To pair{Half(low), Half(high)};
  return __builtin_bit_cast(unsigned, pair);
}

// ---- memory, and what a warp does
// ------------------------------------------------------------------------------------------------------------
template <class V>
KWEMU_INLINE V kwemu_load_strong(const void* p) {  // element by element, so that each is a volatile access
  V v;
  for (unsigned i = 0; i < sizeof v.e / sizeof v.e[0]; i++) v.e[i] = ((const volatile V*)p)->e[i];
  return v;
}
template <class V>
KWEMU_INLINE void kwemu_store_strong(void* p, const V& v) {
  for (unsigned i = 0; i < sizeof v.e / sizeof v.e[0]; i++) ((volatile V*)p)->e[i] = v.e[i];
}
KWEMU_INLINE unsigned kwemu_ptx_warpid() {
  return (kwemu_threadIdx().x + kwemu_blockDim().x * (kwemu_threadIdx().y + kwemu_blockDim().y * kwemu_threadIdx().z)) / 32;
}
KWEMU_INLINE unsigned kwemu_ptx_shfl(int mode, unsigned v, unsigned b, unsigned clamp, unsigned mask, bool& inside) {
  unsigned lane = kwemu_laneid(), segment = clamp >> 8 & 31, most = (lane & segment) | (clamp & 31 & ~segment), least = lane & segment;
  unsigned from = mode == 0 ? lane - b : mode == 1 ? lane + b : mode == 2 ? lane ^ b : least | (b & ~segment & 31);
  inside = mode == 0 ? (int)from >= (int)most : from <= most;
  return kwemu_exchange(mask, v, inside ? from : lane);
}
// Lanes 8i to 8i+7 name the rows of the i-th 8 x 8 matrix of 16-bit elements; a lane gets two neighbours of a row of each.
KWEMU_INLINE void kwemu_ldmatrix(const char* row, int count, bool transposed, unsigned* out) {
  unsigned lane = kwemu_laneid();
  for (int i = 0; i < count; i++) {
    if (!transposed) {
      const char* from = kwemu_exchange(~0u, row, (unsigned)i * 8 + lane / 4);
      out[i] = *(const unsigned*)(from + lane % 4 * 4);
    } else {
      const char* first = kwemu_exchange(~0u, row, (unsigned)i * 8 + lane % 4 * 2);
      const char* second = kwemu_exchange(~0u, row, (unsigned)i * 8 + lane % 4 * 2 + 1);
      out[i] = ((const unsigned short*)first)[lane / 4] | (unsigned)((const unsigned short*)second)[lane / 4] << 16;
    }
  }
}
KWEMU_INLINE float kwemu_element(unsigned pair, int kind, int i) {
  unsigned short bits = (unsigned short)(pair >> (16 * i));
  return kind == 0 ? (float)__builtin_bit_cast(_Float16, bits) : __builtin_bit_cast(float, (unsigned)bits << 16);
}
// D = A B + C of 16 x 8 x k, spread over the lanes of a warp as mma.sync has it. kind: 0 f16, 1 bf16, 2 tf32.
KWEMU_INLINE void kwemu_mma(int k, int kind, bool wide, const unsigned* a, const unsigned* b, const unsigned* c, unsigned* d) {
  unsigned lane = kwemu_laneid(), group = lane / 4, in = lane % 4;
  int per = kind == 2 ? 1 : 2, b_count = k / 4 / per;  // elements of a register; registers of B
  float sum[4];
  for (int i = 0; i < 4; i++) sum[i] = wide ? __builtin_bit_cast(float, c[i]) : kwemu_element(c[i / 2], 0, i % 2);
  for (unsigned t = 0; t < 4; t++)
    for (int r = 0; r < b_count; r++) {
      unsigned upper = kwemu_exchange(~0u, a[2 * r], group * 4 + t), lower = kwemu_exchange(~0u, a[2 * r + 1], group * 4 + t);
      unsigned left = kwemu_exchange(~0u, b[r], in * 8 + t), right = kwemu_exchange(~0u, b[r], in * 8 + 4 + t);
      for (int e = 0; e < per; e++) {
        const auto of = [&](unsigned v) { return kind == 2 ? __builtin_bit_cast(float, v & 0xffffe000u) : kwemu_element(v, kind, e); };
        sum[0] += of(upper) * of(left);
        sum[1] += of(upper) * of(right);
        sum[2] += of(lower) * of(left);
        sum[3] += of(lower) * of(right);
      }
    }
  for (int i = 0; i < 4; i++) {
    if (wide)
      d[i] = __builtin_bit_cast(unsigned, sum[i]);
    else if (i % 2)
      d[i / 2] = kwemu_ptx_pack<kwemu_f16x2>(sum[i], sum[i - 1]);
  }
}
