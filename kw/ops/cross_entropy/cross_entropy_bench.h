// Shapes that matter: vocabularies of language models (GPT-2, Llama 2 and 3, Qwen, Gemma), training batches and few rows; image classes.
#pragma once
#include "kw/core/abi.h"

namespace kw::ops::cross_entropy {

inline constexpr kw_bench_case forward_bench[] = {
    {"logits=bf16[8192,32000] target=i64[8192]"},   {"logits=bf16[8192,50257] target=i64[8192]"},
    {"logits=bf16[4096,128256] target=i64[4096]"},  {"logits=bf16[4096,151936] target=i64[4096]"},
    {"logits=bf16[2048,256000] target=i64[2048]"},  {"logits=f32[4096,32000] target=i64[4096]"},
    {"logits=f32[2048,128256] target=i64[2048]"},   {"logits=f32[1024,256000] target=i64[1024]"},
    {"logits=bf16[65536,4096] target=i64[65536]"},  {"logits=bf16[262144,1024] target=i64[262144]"},
    {"logits=bf16[16384,16384] target=i64[16384]"}, {"logits=f32[131072,1024] target=i64[131072]"},
    {"logits=bf16[128,32000] target=i64[128]"},
};

inline constexpr kw_bench_case backward_bench[] = {
    {"dloss=f32[] dlogits=bf16[8192,32000]"},
    {"dloss=f32[] dlogits=bf16[4096,128256]"},
    {"dloss=f32[] dlogits=f32[2048,128256]"},
};

inline constexpr kw_bench_case unreduced_bench[] = {
    {"logits=bf16[8192,32000] target=i64[8192]"},
    {"logits=bf16[4096,128256] target=i64[4096]"},
};

inline constexpr kw_bench_case unreduced_backward_bench[] = {
    {"dloss=f32[8192] dlogits=bf16[8192,32000]"},
};

}  // namespace kw::ops::cross_entropy
