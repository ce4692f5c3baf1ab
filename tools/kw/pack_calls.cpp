#include "tools/kw/pack_calls.h"

#include <algorithm>
#include <bit>
#include <set>

#include "kw/core/size.h"
#include "tools/kw/call_in_words.h"

namespace kw::tool {

const std::vector<int64_t> lengths = {128,   256,   512,   576,    640,    768,    896,    960,    1024,   1152,   1280,  1536,  1792,
                                      2048,  2304,  2560,  2816,   3072,   3584,   3840,   4096,   4608,   4864,   5120,  5376,  5632,
                                      6144,  6912,  7168,  8192,   8960,   9216,   9728,   10240,  11008,  12288,  13824, 14336, 16384,
                                      17408, 18432, 18944, 21504,  24576,  25600,  27648,  28672,  29568,  32000,  32064, 32768, 36864,
                                      50304, 53248, 65536, 100352, 128256, 131072, 151936, 152064, 200064, 256000, 262144};

namespace {

// The dimension that says how long a row is: of the first input's last place. -1 when no name stands there.
int row_dim(const Contract& contract) {
  const std::vector<Dim>& shape = contract.inputs.front().type.shape;
  if (shape.empty() || shape.back().variadic) return -1;
  const uint32_t named = dims_of(shape.back().size);
  return named ? std::countr_zero(named) : -1;
}

// The same call with rows of another length: every size that follows from the dimension changes with it.
std::optional<test::Arguments> with_length(const Op& op, const test::Arguments& call, int64_t length) {
  const Contract& c = op.contract;
  const int dim = row_dim(c);
  if (dim < 0) return std::nullopt;
  int64_t dims[KW_MAX_SYMBOLS];
  {
    const CallInWords bound(op, call);
    std::copy(bound.bound().dims, bound.bound().dims + KW_MAX_SYMBOLS, dims);
  }
  dims[dim] = length;
  test::Arguments out = call;
  for (size_t i = 0; i < c.inputs.size(); i++) {
    test::Argument& a = out.inputs[i];
    const std::vector<Dim>& shape = c.inputs[i].type.shape;
    for (size_t back = 1; a.present && back <= shape.size(); back++) {  // the variadic dimension, if any, is in front and stays
      const Dim& place = shape[shape.size() - back];
      if (place.variadic) break;
      if (evaluate(place.size, dims, a.sizes[a.sizes.size() - back]) != SizeFault::none) return std::nullopt;
    }
  }
  return out;
}

std::optional<test::Arguments> in_half(const test::Arguments& call) {
  test::Arguments out = call;
  bool any = false;
  for (test::Argument& a : out.inputs)
    if (a.present && a.dtype == KW_BF16) a.dtype = KW_F16, any = true;
  return any ? std::optional(out) : std::nullopt;
}

}  // namespace

std::vector<test::Arguments> calls_for_pack(const Op& op) {
  std::vector<test::Arguments> out;
  std::set<std::string> seen;  // many cases differ in the length alone
  auto add = [&](const test::Arguments& call) {
    try {
      const CallInWords fits(op, call);
      if (seen.insert(describe(op, call)).second) out.push_back(call);
    } catch (const Error&) {  // the op takes no f16, or no such length
    }
  };
  for (int32_t i = 0; i < op.def->bench_count; i++) {
    const test::Arguments call = test::parse_arguments(op, {op.def->bench[i].arguments});
    std::vector<test::Arguments> all{call};
    for (int64_t length : lengths)
      if (auto other = with_length(op, call, length)) all.push_back(*other);
    for (const test::Arguments& one : all) {
      add(one);
      if (auto half = in_half(one)) add(*half);
    }
  }
  return out;
}

}  // namespace kw::tool
