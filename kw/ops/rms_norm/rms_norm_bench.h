// Shapes that matter: hidden sizes of language models, short and long rows (512 MiB a tensor: far beyond every L2), few rows (decoding).
#pragma once
#include "kw/core/abi.h"

namespace kw::ops::rms_norm {

// clang-format off
inline constexpr kw_bench_case forward_bench[] = {
    {"x=bf16[262144,1024] weight=bf16[1024]"},
    {"x=bf16[65536,4096] weight=bf16[4096]"},
    {"x=bf16[52428,5120] weight=bf16[5120]"},
    {"x=bf16[32768,8192] weight=bf16[8192]"},
    {"x=bf16[18724,14336] weight=bf16[14336]"},
    {"x=bf16[16384,16384] weight=bf16[16384]"},
    {"x=bf16[32768,8192] weight=f32[8192]"},
    {"x=bf16[32768,8192]"},
    {"x=f32[131072,1024] weight=f32[1024]"},
    {"x=f32[32768,4096] weight=f32[4096]"},
    {"x=f32[16384,8192] weight=f32[8192]"},
    {"x=f32[8192,16384] weight=f32[16384]"},
    {"x=bf16[128,4096] weight=bf16[4096]"},
    {"x=bf16[2048,4096] weight=bf16[4096]"},
    {"x=f16[32768,8192] weight=f16[8192]"},
    {"x=f64[16384,4096] weight=f64[4096]"},
    {"x=bf16[65536,4096] weight=bf16[4096] rounding=before_weight"},
    {"x=bf16[4096,65536] weight=bf16[65536]"},
    {"x=bf16[2048,131072] weight=bf16[131072]"},
    {"x=bf16[1024,262144] weight=bf16[262144]"},
    {"x=f32[2048,65536] weight=f32[65536]"},
};

inline constexpr kw_bench_case backward_bench[] = {
    {"dy=bf16[262144,1024] x=bf16[262144,1024] weight=bf16[1024] eps=1e-6"},
    {"dy=bf16[65536,4096] x=bf16[65536,4096] weight=bf16[4096] eps=1e-6"},
    {"dy=bf16[52428,5120] x=bf16[52428,5120] weight=bf16[5120] eps=1e-6"},
    {"dy=bf16[32768,8192] x=bf16[32768,8192] weight=bf16[8192] eps=1e-6"},
    {"dy=bf16[18724,14336] x=bf16[18724,14336] weight=bf16[14336] eps=1e-6"},
    {"dy=bf16[16384,16384] x=bf16[16384,16384] weight=bf16[16384] eps=1e-6"},
    {"dy=bf16[32768,8192] x=bf16[32768,8192] weight=f32[8192] eps=1e-6"},
    {"dy=bf16[32768,8192] x=bf16[32768,8192] eps=1e-6"},
    {"dy=f32[131072,1024] x=f32[131072,1024] weight=f32[1024] eps=1e-6"},
    {"dy=f32[32768,4096] x=f32[32768,4096] weight=f32[4096] eps=1e-6"},
    {"dy=f32[16384,8192] x=f32[16384,8192] weight=f32[8192] eps=1e-6"},
    {"dy=f32[8192,16384] x=f32[8192,16384] weight=f32[16384] eps=1e-6"},
    {"dy=bf16[128,4096] x=bf16[128,4096] weight=bf16[4096] eps=1e-6"},
    {"dy=bf16[2048,4096] x=bf16[2048,4096] weight=bf16[4096] eps=1e-6"},
    {"dy=f16[32768,8192] x=f16[32768,8192] weight=f16[8192] eps=1e-6"},
    {"dy=f64[16384,4096] x=f64[16384,4096] weight=f64[4096] eps=1e-6"},
    {"dy=bf16[8192,32768] x=bf16[8192,32768] weight=bf16[32768] eps=1e-6"},
    {"dy=bf16[4096,65536] x=bf16[4096,65536] weight=bf16[65536] eps=1e-6"},
    {"dy=bf16[2048,131072] x=bf16[2048,131072] weight=bf16[131072] eps=1e-6"},
    {"dy=bf16[1024,262144] x=bf16[1024,262144] weight=bf16[262144] eps=1e-6"},
    {"dy=f32[2048,65536] x=f32[2048,65536] weight=f32[65536] eps=1e-6"},
};
inline constexpr kw_bench_case add_bench[] = {
    {"x=bf16[65536,4096] residual=bf16[65536,4096] weight=bf16[4096]"},
    {"x=bf16[32768,8192] residual=bf16[32768,8192] weight=bf16[8192]"},
    {"x=bf16[16384,16384] residual=bf16[16384,16384] weight=bf16[16384]"},
    {"x=f32[32768,4096] residual=f32[32768,4096] weight=f32[4096]"},
    {"x=bf16[128,4096] residual=bf16[128,4096] weight=bf16[4096]"},
    {"x=bf16[2048,4096] residual=bf16[2048,4096] weight=bf16[4096]"},
    {"x=bf16[4096,65536] residual=bf16[4096,65536] weight=bf16[65536]"},
    {"x=bf16[2048,131072] residual=bf16[2048,131072] weight=bf16[131072]"},
};

inline constexpr kw_bench_case add_backward_bench[] = {
    {"dy=bf16[65536,4096] dtotal=bf16[65536,4096] total=bf16[65536,4096] weight=bf16[4096] eps=1e-6"},
    {"dy=bf16[32768,8192] dtotal=bf16[32768,8192] total=bf16[32768,8192] weight=bf16[8192] eps=1e-6"},
    {"dy=bf16[16384,16384] dtotal=bf16[16384,16384] total=bf16[16384,16384] weight=bf16[16384] eps=1e-6"},
    {"dy=f32[32768,4096] dtotal=f32[32768,4096] total=f32[32768,4096] weight=f32[4096] eps=1e-6"},
    {"dy=bf16[128,4096] dtotal=bf16[128,4096] total=bf16[128,4096] weight=bf16[4096] eps=1e-6"},
    {"dy=bf16[2048,4096] dtotal=bf16[2048,4096] total=bf16[2048,4096] weight=bf16[4096] eps=1e-6"},
    {"dy=bf16[4096,65536] dtotal=bf16[4096,65536] total=bf16[4096,65536] weight=bf16[65536] eps=1e-6"},
    {"dy=bf16[2048,131072] dtotal=bf16[2048,131072] total=bf16[2048,131072] weight=bf16[131072] eps=1e-6"},
};
// clang-format on

}  // namespace kw::ops::rms_norm
