// Element types: size, name, and the type that sums of them are kept in.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "kw/core/abi.h"

namespace kw {

using DType = kw_dtype;

struct DTypeFacts {
  const char* name;  // in contracts, on the command line and in messages
  int32_t bytes;
  const char* device;  // the type in device code (kw/device/types.cuh)
  bool floating;
};

inline constexpr DTypeFacts dtype_facts[KW_DTYPE_COUNT] = {{"f16", 2, "kw::f16", true},        {"bf16", 2, "kw::bf16", true},
                                                           {"f32", 4, "float", true},          {"f64", 8, "double", true},
                                                           {"i8", 1, "signed char", false},    {"u8", 1, "unsigned char", false},
                                                           {"i32", 4, "int", false},           {"i64", 8, "long long", false},
                                                           {"bool", 1, "bool", false},         {"fp8e4m3", 1, "kw::fp8e4m3", true},
                                                           {"fp8e5m2", 1, "kw::fp8e5m2", true}};

inline constexpr bool is_dtype(int32_t dtype) { return dtype >= 0 && dtype < KW_DTYPE_COUNT; }
inline constexpr const char* dtype_name(int32_t dtype) { return is_dtype(dtype) ? dtype_facts[dtype].name : "unknown"; }
inline constexpr int32_t dtype_bytes(int32_t dtype) { return is_dtype(dtype) ? dtype_facts[dtype].bytes : 0; }
inline constexpr bool is_floating(int32_t dtype) { return is_dtype(dtype) && dtype_facts[dtype].floating; }

// acc(T): sums are kept in f32, and in f64 for f64; integers in i64.
inline constexpr DType accumulator(int32_t dtype) {
  if (dtype == KW_F64) return KW_F64;
  return is_floating(dtype) ? KW_F32 : KW_I64;
}

inline std::optional<DType> parse_dtype(std::string_view name) {
  for (int32_t i = 0; i < KW_DTYPE_COUNT; i++)
    if (name == dtype_facts[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace kw
