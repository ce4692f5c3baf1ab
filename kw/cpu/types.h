// Element types of CPU kernels, as they lie in memory, and the step from a call's dtypes to template arguments.
#pragma once
#include <cstdint>
#include <type_traits>

#include "kw/core/dtype.h"
#include "kw/core/error.h"
#include "kw/core/rows.h"

namespace kw::cpu {

// Row `r` of a tensor: as<bf16>(p.x, row).
template <class T>
T* as(const Rows& rows, int64_t r) {
  return static_cast<T*>(rows.data) + rows.at(r);
}

struct f16 {  // IEEE's binary16
  uint16_t bits;
};
struct bf16 {  // the upper half of an f32
  uint16_t bits;
};

// Sums and all arithmetic of T happen in acc_t<T>; loads and stores convert (memory.inc).
template <class T>
struct Accumulator {
  using type = float;
};
template <>
struct Accumulator<double> {
  using type = double;
};
template <class T>
using acc_t = typename Accumulator<T>::type;

template <class T>
inline constexpr DType dtype_of = std::is_same_v<T, f16>     ? KW_F16
                                  : std::is_same_v<T, bf16>  ? KW_BF16
                                  : std::is_same_v<T, float> ? KW_F32
                                                             : KW_F64;

// Calls f<T>() for the T that `dtype` is, one of Types, or of all four when none is given:
//   for_type(op, c.dtype("T"), [&]<class T>() { ... });            for_type<bf16, float>(op, ...) for those two alone
template <class... Types, class F>
void for_type(const char* op, DType dtype, F&& f) {
  if constexpr (sizeof...(Types) == 0) {
    for_type<f16, bf16, float, double>(op, dtype, f);
  } else {
    bool known = ((dtype == dtype_of<Types> && (f.template operator()<Types>(), true)) || ...);
    if (!known) throw Error(KW_ERROR_UNSUPPORTED, format("%s: there is no CPU kernel for %s", op, dtype_name(dtype)));
  }
}

}  // namespace kw::cpu
