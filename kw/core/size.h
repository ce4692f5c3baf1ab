// Arithmetic over dimensions: the value of `2*N`, and the N for which `N/2` is 10.
#pragma once
#include <string>

#include "kw/core/contract.h"

namespace kw {

enum class SizeFault { none, overflow, inexact, unsolvable };

// `dims` holds a value for every dimension that `size` names. inexact: a division leaves a remainder.
SizeFault evaluate(const Size& size, const int64_t* dims, int64_t& value);
// Finds the one dimension outside `known` (a bit each), so that `size` has this value. The result may be negative: the caller looks.
// unsolvable: there is not exactly one place with an unknown dimension, or it stands inside min or max.
SizeFault solve(const Size& size, int64_t value, uint32_t known, int64_t* dims, int32_t& solved);
// How often dimensions outside `known` occur.
int unknowns(const Size& size, uint32_t known);
// Bit i: dimension i occurs.
uint32_t dims_of(const Size& size);

// As a contract spells it.
std::string to_text(const Size& size, const Contract& contract);
std::string to_text(const TensorType& type, const Contract& contract);  // "T[*B, N]", without marks

}  // namespace kw
