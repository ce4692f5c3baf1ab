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

inline constexpr kw_bench_case packed_forward_bench[] = {
    {"x=bf16[65536,8192]"}, {"x=bf16[32768,16384]"}, {"x=bf16[24384,22016] activation=gelu_tanh"},
    {"x=f32[32768,8192]"},  {"x=bf16[2048,16384]"},
};

inline constexpr kw_bench_case packed_backward_bench[] = {
    {"x=bf16[65536,8192] dy=bf16[65536,4096]"},
    {"x=bf16[32768,16384] dy=bf16[32768,8192]"},
    {"x=bf16[24384,22016] dy=bf16[24384,11008] activation=gelu_tanh"},
    {"x=f32[32768,8192] dy=f32[32768,4096]"},
    {"x=bf16[2048,16384] dy=bf16[2048,8192]"},
};

}  // namespace kw::ops::swiglu
