// Which kernels a case of the checker takes, without running it.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "kw/core/abi.h"
#include "testing/inputs.h"

namespace kw::tool {

struct CaseKernels {
  std::set<std::string> names;  // expressions; " (strided)" behind those that are compiled for rows at more than one distance
  std::set<std::string> files;  // of device code that they are made of
};
// Nothing for a call that launches nothing.
CaseKernels kernels_of(const Op& op, const test::Case& c, const kw_device_facts& gpu);

// Few sets of kernels that stand for all of those of `cases`: the next is always the one with most that no set before it had, of template
// arguments at their place and of `traits` of the cases that take it; where that is equal, the one that more cases take. At most `most`
// sets, the same ones first whatever it is; each is the names of one CaseKernels.
using KernelSet = std::set<std::string>;
struct CaseOfKernels {
  KernelSet kernels;
  std::vector<std::string> traits;  // "values nan"
};
std::vector<KernelSet> spread_of_kernels(const std::vector<CaseOfKernels>& cases, size_t most);

}  // namespace kw::tool
