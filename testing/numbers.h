// Every element type as a double and back, written apart from the kernels' own conversions so that a fault there is seen here.
#pragma once
#include "kw/core/dtype.h"

namespace kw::test {

struct FloatFormat {
  int mantissa;      // explicit bits
  int min_exponent;  // of the smallest normal number: 2^min_exponent
  double largest;    // finite
};
const FloatFormat& float_format(DType dtype);  // floating types only

double load_number(DType dtype, const void* element);         // i64 beyond 2^53 rounds
void store_number(DType dtype, void* element, double value);  // to nearest, ties to even; beyond the largest: infinity (NaN in
                                                              // fp8e4m3, which has none); integers saturate
double spacing(DType dtype, double value);                    // one unit in the last place of a value of this size; subnormals included
double overflow_from(DType dtype);                            // the smallest magnitude that rounds to infinity
double unit_roundoff(DType dtype);                            // half a spacing at 1: 2^-24 for f32
double smallest(DType dtype);                                 // smallest subnormal
void store_nan(DType dtype, void* element);                   // a quiet positive NaN; the largest value of an integer type

}  // namespace kw::test
