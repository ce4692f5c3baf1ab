// Runs a test once per instruction set of this machine.
#pragma once
#include <vector>

#include "kw/cpu/isa.h"

namespace kw::test {

template <class F>
auto on_every_isa(F&& f) {  // what f() gives on each
  std::vector<decltype(f())> results;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (has_isa(isa)) {
      set_isa(isa);
      results.push_back(f());
    }
  return results;
}

}  // namespace kw::test
