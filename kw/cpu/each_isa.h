// Compiles the file KW_ISA_FILE once per instruction set. Used by a room's _cpu.cpp:
//
//   #define KW_ISA_FILE "kw/ops/rms_norm/rms_norm_cpu.inc"
//   #include "kw/cpu/each_isa.h"
//
// The .inc puts its kernels into namespace kw::<room>::KW_ISA and sees the vector words of vector.inc in kw::cpu::KW_ISA. It must
// include nothing: a header first read inside such a region would be compiled for that instruction set, and its inline functions
// might be the copy that the linker keeps for everybody. (That is also why there are no per-file -mavx flags.)
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kw/cpu/isa.h"
#include "kw/cpu/types.h"

#define KW_INLINE [[gnu::always_inline]] inline
#if defined(__clang__)
#define KW_PRAGMA(text) _Pragma(#text)
#define KW_TARGET_BEGIN(isa) KW_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define KW_TARGET_END KW_PRAGMA(clang attribute pop)
#pragma clang fp contract(off)
#else
#define KW_PRAGMA(text) _Pragma(#text)
#define KW_TARGET_BEGIN(isa) KW_PRAGMA(GCC push_options) KW_PRAGMA(GCC target(isa))
#define KW_TARGET_END KW_PRAGMA(GCC pop_options)
#endif

#define KW_ISA baseline
#define KW_VECTOR_BYTES 16
#include "kw/cpu/vector.inc"
#include KW_ISA_FILE
#undef KW_ISA
#undef KW_VECTOR_BYTES

#if defined(__x86_64__)
#define KW_ISA avx2
#define KW_VECTOR_BYTES 32
KW_TARGET_BEGIN("avx2")
#include "kw/cpu/vector.inc"
#include KW_ISA_FILE
KW_TARGET_END
#undef KW_ISA
#undef KW_VECTOR_BYTES

#define KW_ISA avx512
#define KW_VECTOR_BYTES 64
KW_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl")
#include "kw/cpu/vector.inc"
#include KW_ISA_FILE
KW_TARGET_END
#undef KW_ISA
#undef KW_VECTOR_BYTES
#endif
