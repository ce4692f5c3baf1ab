// Element types of 16 bits, the type that sums are kept in, and conversions between the two that give the same bits everywhere.
#pragma once
#include "kw/device/params.cuh"

#define KW_WORD __device__ __forceinline__  // forced: the emulator cannot see memory that a struct argument is copied from

namespace kw {

struct bf16 {
  unsigned short bits;
};
struct f16 {
  unsigned short bits;
};

namespace detail {
template <class T>
struct Accumulator {
  using type = float;
};
template <>
struct Accumulator<double> {
  using type = double;
};
}  // namespace detail
template <class T>
using acc_t = typename detail::Accumulator<T>::type;  // acc(T) of the contracts: f32, and f64 for f64

// Reads a Params pointer as elements: as<bf16>(p.x).
template <class T>
KW_WORD const T* as(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
KW_WORD T* as(void* p) {
  return static_cast<T*>(p);
}
// Row `r` of a tensor: as<bf16>(p.x, row).
template <class T>
KW_WORD T* as(const Rows& rows, int64_t r) {
  return static_cast<T*>(rows.data) + rows.at(r);
}

// a * b + c, rounded once. Kernels say where they fuse: left to the compiler, two tiles of one kernel could round differently.
KW_WORD float fused(float a, float b, float c) { return fmaf(a, b, c); }
KW_WORD double fused(double a, double b, double c) { return ::fma(a, b, c); }

// 1 / sqrt(x) within 2 units in the last place. Correctly rounded (1.0f / sqrtf(x)) it costs 20 ms of compile time and two branches.
KW_WORD float inverse_sqrt(float x) { return rsqrtf(x); }
KW_WORD double inverse_sqrt(double x) { return 1.0 / ::sqrt(x); }

// 1 / x within 1 unit in the last place, for x whose reciprocal is a normal number: one instruction, where a division is about ten and a
// branch.
KW_WORD float reciprocal(float x) {
#ifdef KW_EMULATED
  return 1.0f / x;
#else
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
KW_WORD double reciprocal(double x) { return 1.0 / x; }

// e^x to 2 units in the last place, for any x.
KW_WORD float exponential(float x) { return expf(x); }
KW_WORD double exponential(double x) { return ::exp(x); }

// ---- to the accumulator: exact ----
KW_WORD float to_acc(float x) { return x; }
KW_WORD double to_acc(double x) { return x; }
KW_WORD float to_acc(bf16 x) { return __builtin_bit_cast(float, static_cast<unsigned>(x.bits) << 16); }
KW_WORD float to_acc(f16 x) {
#ifdef KW_EMULATED
  return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
#else
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#endif
}

// ---- from the accumulator: to the nearest, ties to even; overflow to infinity; NaN to the hardware's one NaN, 0x7fff ----
KW_WORD unsigned bf16_bits(float x) {
  const unsigned u = __builtin_bit_cast(unsigned, x);
  return x != x ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
KW_WORD unsigned bf16_pair(float low, float high) {  // low in bits 0-15
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(KW_EMULATED)
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return bf16_bits(low) | bf16_bits(high) << 16;
#endif
}
KW_WORD unsigned f16_bits(float x) {
#ifdef KW_EMULATED
  return x != x ? 0x7fffu : __builtin_bit_cast(unsigned short, static_cast<_Float16>(x));
#else
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#endif
}
KW_WORD void from_acc(float x, float& y) { y = x; }
KW_WORD void from_acc(double x, double& y) { y = x; }
KW_WORD void from_acc(double x, float& y) { y = static_cast<float>(x); }
KW_WORD void from_acc(float x, bf16& y) { y.bits = static_cast<unsigned short>(bf16_pair(x, 0.0f) & 0xffffu); }
KW_WORD void from_acc(float x, f16& y) { y.bits = static_cast<unsigned short>(f16_bits(x)); }

// x as an element of type T would have it.
template <class T, class A>
KW_WORD A rounded(A x) {
  T y;
  from_acc(x, y);
  return to_acc(y);
}

}  // namespace kw
