// Which vector instructions this machine has, and the kernel that was compiled for them.
//
// CPU kernels are written once, in a .inc file, and compiled for every instruction set into a namespace of its own (each_isa.inc).
// KW_FOR_ISA picks at run time. All of them give the same bits: the lanes are fixed (vector.h) and nothing is contracted into
// fused multiply-adds.
#pragma once

namespace kw {

enum class Isa { baseline, avx2, avx512 };

const char* isa_name(Isa isa);
bool has_isa(Isa isa);  // of this CPU and this build
// The best one, or the one named by the environment variable KW_CPU_ISA; throws a sentence when that is unknown or this CPU lacks it.
Isa isa();
void set_isa(Isa isa);  // for tests and measurements; throws when this CPU lacks it

}  // namespace kw

// A build with -DKW_ONLY_BASELINE has no others, and compiles in half of the time.
#if defined(__x86_64__) && !defined(KW_ONLY_BASELINE)
#define KW_WIDE_ISAS
#endif
// KW_FOR_ISA(forward<T, W>): a pointer to the function of that name in the namespace of the instruction set in use.
#ifdef KW_WIDE_ISAS
#define KW_FOR_ISA(...) \
  (::kw::isa() == ::kw::Isa::avx512 ? &avx512::__VA_ARGS__ : ::kw::isa() == ::kw::Isa::avx2 ? &avx2::__VA_ARGS__ : &baseline::__VA_ARGS__)
#else
#define KW_FOR_ISA(...) (&baseline::__VA_ARGS__)
#endif
