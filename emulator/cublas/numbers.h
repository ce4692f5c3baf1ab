// Numbers of cuBLAS's types, in memory.
#pragma once
#include <cmath>

#include "emulator/engine/engine.h"

namespace kwemu {
enum DataType { kF32 = 0, kF64 = 1, kF16 = 2, kS8 = 3, kS32 = 10, kBf16 = 14 };  // cudaDataType
constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;

inline float from_half(u16 h) { return (float)__builtin_bit_cast(_Float16, h); }
inline size_t bytes_of(int type) { return type == kF64 ? 8 : type == kF32 || type == kS32 ? 4 : type == kS8 ? 1 : 2; }
inline bool known(int type) { return type == kF32 || type == kF64 || type == kF16 || type == kBf16 || type == kS8 || type == kS32; }
inline double load(const void* p, i64 i, int type) {
  switch (type) {
    case kF64:
      return ((const double*)p)[i];
    case kF16:
      return from_half(((const u16*)p)[i]);
    case kBf16:
      return __builtin_bit_cast(float, (u32)((const u16*)p)[i] << 16);
    case kS8:
      return ((const signed char*)p)[i];
    case kS32:
      return ((const int*)p)[i];
    default:
      return ((const float*)p)[i];
  }
}
inline void store(void* p, i64 i, int type, double v) {
  if (type == kF64) ((double*)p)[i] = v;
  if (type == kF32) ((float*)p)[i] = (float)v;
  if (type == kF16) ((u16*)p)[i] = __builtin_bit_cast(u16, (_Float16)v);
  if (type == kS32) ((int*)p)[i] = (int)v;
  if (type == kBf16) {
    u32 b = __builtin_bit_cast(u32, (float)v);
    ((u16*)p)[i] = std::isnan(v) ? 0x7fff : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
  }
}
}  // namespace kwemu
