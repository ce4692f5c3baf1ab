#include "kw/cpu/isa.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "kw/core/error.h"

namespace kw {
namespace {

constexpr Isa all[] = {Isa::avx512, Isa::avx2, Isa::baseline};  // best first

void demand(Isa isa, const char* by) {
  if (!has_isa(isa))
    throw Error(KW_ERROR_UNSUPPORTED, format("%s asks for %s, which this CPU or this build does not have", by, isa_name(isa)));
}

Isa first_choice() {
  const char* wanted = std::getenv("KW_CPU_ISA");
  for (Isa isa : all) {
    if (wanted && *wanted ? wanted != std::string_view(isa_name(isa)) : !has_isa(isa)) continue;
    demand(isa, "KW_CPU_ISA");
    return isa;
  }
  throw Error(KW_ERROR_ARGUMENT, format("KW_CPU_ISA is '%s', but can be baseline, avx2 or avx512", wanted));
}

constexpr int unset = -1;
std::atomic<int> chosen{unset};

}  // namespace

const char* isa_name(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline"; }

bool has_isa(Isa isa) {
#ifdef KW_WIDE_ISAS
  // The builtin looks at the operating system's support (XCR0) too.
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  if (isa == Isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
  return isa == Isa::baseline;
}

Isa isa() {
  int known = chosen.load(std::memory_order_relaxed);
  if (known == unset) chosen = known = static_cast<int>(first_choice());
  return static_cast<Isa>(known);
}

void set_isa(Isa isa) {
  demand(isa, "set_isa");
  chosen = static_cast<int>(isa);
}

}  // namespace kw
