// Element types of CPU kernels, as they lie in memory, and the step from a call's dtypes to template arguments.
#pragma once
#include <cstdint>

#include "kw/core/dtype.h"
#include "kw/core/error.h"

namespace kw::cpu {

struct bf16 {  // the upper half of an f32
  uint16_t bits;
};

// Sums and all arithmetic of T happen in acc_t<T>; loads and stores convert (vector.inc).
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

// Calls f<T>() for an element type that CPU kernels know.
template <class F>
void for_type(const char* op, DType dtype, F&& f) {
  switch (dtype) {
    case KW_F32:
      return f.template operator()<float>();
    case KW_BF16:
      return f.template operator()<bf16>();
    default:
      throw Error(KW_ERROR_UNSUPPORTED, format("%s: there is no CPU kernel for %s", op, dtype_name(dtype)));
  }
}

}  // namespace kw::cpu
