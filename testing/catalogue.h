// The catalogue of ways in which a kernel is nearly correct: what planted bugs are counted by, and what a failure is likely to come from.
#pragma once
#include <string>

#include "testing/check.h"

namespace kw::test {

// "" for a number that the catalogue does not have.
std::string catalogue_name(int number);

// What a failed layer most likely comes from, with the catalogue's number, and what to do next; "" where nothing is likely.
std::string likely_cause(const LayerReport& layer);

}  // namespace kw::test
