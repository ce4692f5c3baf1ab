// What most projects' tests do, as a measure of what the checker adds.
#pragma once
#include <string>

#include "testing/check.h"

namespace kw::test {

// One call on one random input, no more: are all results within 1e-2 + 1e-2 |want| of the truth in double (NaN equal to NaN), as
// `allclose(atol=1e-2, rtol=1e-2)` says? "passes", "fails", or "stops" where the call itself came to an end that the device reported.
// Memory begins as zeros, as fresh memory does. What the device says of itself is not looked at.
std::string naive_allclose(Device& device, const Op& op, const Case& c);

}  // namespace kw::test
