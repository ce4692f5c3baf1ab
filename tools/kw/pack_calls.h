// Which calls a pack is made for: the one place that decides.
#pragma once
#include <string>
#include <vector>

#include "kw/core/op.h"
#include "testing/arguments.h"

namespace kw::tool {

// For each bench case of the op (its room's list of what matters): the case itself; the same with every row length of `lengths`; and all
// of these in f16 where the case says bf16. Other dtype mixes (f64) are compiled when they are asked for.
std::vector<test::Arguments> calls_for_pack(const Op& op);

// Row lengths, in elements, that a pack prepares for: powers of two from 128 on, hidden and feed-forward sizes of the language models that
// are in use, and their vocabularies. Powers of two alone cost up to 17 % at the others (the tiles differ).
extern const std::vector<int64_t> lengths;

}  // namespace kw::tool
