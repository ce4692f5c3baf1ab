#include "tools/kw/kernels_of.h"

#include <algorithm>
#include <map>

#include "kw/runtime/dispatch.h"
#include "kw/runtime/problem.h"
#include "kw/runtime/source_set.h"

namespace kw::tool {

CaseKernels kernels_of(const Op& op, const test::Case& c, const kw_device_facts& gpu) {
  const Contract& contract = op.contract;
  const size_t n = contract.inputs.size(), m = contract.results.size();
  std::vector<test::Arrangement> lies(n + m);
  std::vector<std::vector<int64_t>> sizes(n + m);
  std::vector<kw_tensor> views(n + m);
  std::vector<kw_argument> in(n), out(m);
  uintptr_t next = 0;
  const auto place = [&](size_t at, DType dtype, const TensorType& type, test::Layout layout, bool result) {
    const auto rank = static_cast<int32_t>(sizes[at].size());
    lies[at] = test::arrange(layout, sizes[at], test::has_rows(type) ? row_rank(type) : rank, at, c.seed, result);
    next += uintptr_t{1} << 44;  // further apart than any tensor is long
    void* data = reinterpret_cast<void*>(next + static_cast<uintptr_t>(lies[at].offset * dtype_bytes(dtype)));
    views[at] = {data, sizes[at].data(), lies[at].strides.data(), rank, dtype, KW_CUDA, 0};
    return kw_argument{&views[at], 1};
  };
  for (size_t i = 0; i < n; i++) {
    const test::Argument& a = c.arguments.inputs[i];
    if (!a.present) continue;
    sizes[i] = a.sizes;
    in[i] = place(i, a.dtype, contract.inputs[i].type, c.layout, contract.inputs[i].type.written);
  }
  const std::vector<kw_attribute> attributes = test::raw_attributes(op, c.arguments);
  Bound bound;
  bind_inputs(op, in.data(), attributes.data(), bound);
  for (size_t r = 0; r < m; r++) {
    const TensorSpec& spec = bound.results[r];
    if (!spec.present || !test::asked_for(contract.results[r], c.arguments)) continue;
    sizes[n + r].assign(spec.sizes, spec.sizes + spec.rank);
    const bool scratch = contract.results[r].kind == Result::Kind::scratch;
    out[r] = place(n + r, spec.dtype, contract.results[r].type, scratch ? test::Layout::plain : c.layout, true);
  }
  bind_results(out.data(), bound);
  CaseKernels kernels;
  if (is_empty(bound)) return kernels;
  const bool strided = is_strided(bound);
  const kw_choice choice = choose_kernels(bound, alignment_of(bound), gpu);
  for (int32_t k = 0; k < choice.kernel_count; k++) {
    kernels.names.insert(std::string(choice.kernels[k].name) + (strided ? " (strided)" : ""));
    for (const SourceFile& file : source_set(choice.kernels[k].source, strided)->files) kernels.files.insert(file.path);
  }
  return kernels;
}

namespace {

// The arguments of a kernel's expression, each with its place: "forward<" 0 "float", ...
std::set<std::string> tokens_of(const KernelSet& kernels) {
  std::set<std::string> out;
  for (const std::string& text : kernels) {
    const std::string head = text.substr(0, text.find('<'));
    std::string token;
    int place = 0;
    for (char c : text + ",") {
      if (c != '<' && c != ',' && c != '>') {
        token += c;
        continue;
      }
      out.insert(head + " " + std::to_string(place++) + " " + token);
      token.clear();
    }
  }
  return out;
}

}  // namespace

std::vector<KernelSet> spread_of_kernels(const std::vector<CaseOfKernels>& cases, size_t most) {
  struct Takers {
    size_t count = 0;
    std::set<std::string> tokens;
  };
  std::map<KernelSet, Takers> sets;
  for (const auto& [kernels, traits] : cases) {
    if (kernels.empty()) continue;
    Takers& takers = sets[kernels];
    if (takers.count++ == 0) takers.tokens = tokens_of(kernels);
    takers.tokens.insert(traits.begin(), traits.end());
  }
  std::vector<KernelSet> out;
  std::set<std::string> seen;
  while (out.size() < most && !sets.empty()) {
    auto best = sets.end();
    std::pair<size_t, size_t> best_worth;
    for (auto at = sets.begin(); at != sets.end(); ++at) {
      size_t fresh = 0;
      for (const std::string& token : at->second.tokens) fresh += !seen.count(token);
      const std::pair<size_t, size_t> worth{fresh, at->second.count};
      if (best == sets.end() || worth > best_worth) best = at, best_worth = worth;
    }
    seen.insert(best->second.tokens.begin(), best->second.tokens.end());
    out.push_back(best->first);
    sets.erase(best);
  }
  return out;
}

}  // namespace kw::tool
