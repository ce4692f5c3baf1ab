// Shapes that matter: the feed-forward widths of language models, many rows and few.
#pragma once
#include "kw/core/abi.h"

namespace kw::ops::swiglu {

inline constexpr kw_bench_case forward_bench[] = {
    {"gate=bf16[65536,4096] up=bf16[65536,4096]"},   {"gate=bf16[24384,11008] up=bf16[24384,11008]"},
    {"gate=bf16[18724,14336] up=bf16[18724,14336]"}, {"gate=f32[32768,4096] up=f32[32768,4096]"},
    {"gate=bf16[128,14336] up=bf16[128,14336]"},     {"gate=bf16[2048,14336] up=bf16[2048,14336]"},
};

inline constexpr kw_bench_case backward_bench[] = {
    {"dy=bf16[65536,4096] gate=bf16[65536,4096] up=bf16[65536,4096]"},
    {"dy=bf16[24384,11008] gate=bf16[24384,11008] up=bf16[24384,11008]"},
    {"dy=bf16[18724,14336] gate=bf16[18724,14336] up=bf16[18724,14336]"},
    {"dy=f32[32768,4096] gate=f32[32768,4096] up=f32[32768,4096]"},
    {"dy=bf16[128,14336] gate=bf16[128,14336] up=bf16[128,14336]"},
    {"dy=bf16[2048,14336] gate=bf16[2048,14336] up=bf16[2048,14336]"},
};

}  // namespace kw::ops::swiglu
