// Random calls: bind and the oracle agree on which fit and on what comes out; hostile numbers do no harm; overlap is never missed.
#include <chrono>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "testing/expect.h"
#include "tests/cpp/bind_oracle.h"
#include "tests/cpp/calls.h"
#include "tests/cpp/dozen.h"

using namespace kw;
using test::Case;

namespace {

std::mt19937_64 random_bits(3);
int64_t below(int64_t n) { return static_cast<int64_t>(random_bits() % static_cast<uint64_t>(n)); }
bool one_in(int64_t n) { return below(n) == 0; }

constexpr const char* more[] = {
    "minus(x: f32[9-N, M/2, 3*(K-M)]) -> y: f32[N, M, K]",
    "chain(x: f32[A, 2*N-A, (M+N)*3], z: i8[*B, A]) -> (y: f32[*B, M, A+1], w: f32[*B, M-1])",
    "sums(s: acc(T)[*B], x: T[*B, K/2, K]?, i: i32[*C, 3]) -> (y: acc(T)[*B, 2], z: T[*C, K*K]? with x) where T: bf16 f64 i32 scratch p: "
    "f32[max(B, 3)]",
    "written(x: T[*B, N]!, z: U[N]?) -> m: max U[N] where T: f32 f16, U: T f64",
};

std::vector<int32_t> options_of(const Contract& c, const ElementType& e) {
  if (e.kind == ElementType::Kind::fixed) return {e.dtype};
  std::vector<int32_t> list;
  for (const auto& o : c.types[static_cast<size_t>(e.variable)].options) {
    if (o.variable < 0) list.push_back(o.dtype);
    if (o.variable >= 0)
      for (int32_t d : options_of(c, {ElementType::Kind::variable, KW_F32, o.variable})) list.push_back(d);
  }
  return list;
}

// A call that mostly fits: names get one value each, and now and then something is off.
void random_call(Case& call, int64_t disorder) {
  const Contract& c = call.op->contract;
  std::vector<int64_t> dims(c.dims.size());
  for (int64_t& d : dims) d = one_in(12) ? 0 : 1 + below(6);
  std::vector<int64_t> lead(static_cast<size_t>(below(4)));
  for (int64_t& n : lead) n = one_in(15) ? 0 : 1 + below(3);
  std::vector<int32_t> types;
  for (size_t v = 0; v < c.types.size(); v++) {
    auto list = options_of(c, {ElementType::Kind::variable, KW_F32, static_cast<int>(v)});
    types.push_back(list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))]);
  }
  for (size_t i = 0; i < c.inputs.size(); i++) {
    const TensorType& type = c.inputs[i].type;
    call.inputs[i] = {nullptr, 0};
    if (type.optional ? one_in(2) : one_in(disorder * 4)) continue;
    std::vector<int64_t> sizes;
    for (const Dim& d : type.shape) {
      if (d.variadic) {
        sizes.insert(sizes.end(), lead.begin(), lead.end());
        continue;
      }
      // Half of the time the tables' sizes are even, so that D/2 exists.
      std::function<int64_t(const Size&)> value = [&](const Size& s) -> int64_t {
        if (s.kind == Size::Kind::constant) return s.value;
        if (s.kind == Size::Kind::dim) return dims[static_cast<size_t>(s.value)];
        int64_t a = value(s.operands[0]), b = value(s.operands[1]);
        return s.kind == Size::Kind::add ? a + b : s.kind == Size::Kind::sub ? a - b : s.kind == Size::Kind::mul ? a * b : a / b;
      };
      sizes.push_back(std::max<int64_t>(0, value(d.size)));
    }
    if (one_in(disorder) && !sizes.empty()) sizes[static_cast<size_t>(below(static_cast<int64_t>(sizes.size())))] = below(8) - 1;
    if (one_in(disorder * 2)) sizes.insert(sizes.begin(), 1 + below(2));
    if (one_in(disorder * 2) && !sizes.empty()) sizes.pop_back();
    const ElementType& e = type.element;
    int32_t dtype = e.kind == ElementType::Kind::fixed ? e.dtype : types[static_cast<size_t>(e.variable)];
    if (e.kind == ElementType::Kind::accumulator) dtype = accumulator(dtype);
    if (one_in(disorder)) dtype = static_cast<int32_t>(below(KW_DTYPE_COUNT + 2)) - 1;
    kw_tensor t = call.tensors.make(dtype, sizes);
    if (one_in(3) && t.rank > 0) {  // another layout: padded rows, expanded, transposed, anything
      std::vector<int64_t> strides(t.strides, t.strides + t.rank);
      const auto d = static_cast<size_t>(below(t.rank));
      switch (below(4)) {
        case 0:
          for (size_t k = 0; k + 1 < strides.size(); k++) strides[k] *= 2;
          break;
        case 1:
          strides[d] = 0;
          break;
        case 2:
          std::swap(strides[d], strides.back());
          break;
        default:
          strides[d] = below(12) - 2;
      }
      t = call.tensors.make(dtype, sizes, strides);
    }
    if (one_in(disorder * 4)) t.device_type = static_cast<int32_t>(below(4));
    if (one_in(disorder * 4)) t.device_index = static_cast<int32_t>(below(2));
    call.in(i, t);
  }
  for (size_t a = 0; a < c.attributes.size(); a++) {
    if (!one_in(disorder)) continue;
    const double numbers[] = {-1, -0.0, 0, 0.5, 1, 1.5, 1e300, std::nan(""), std::numeric_limits<double>::infinity()};
    using Type = Attribute::Type;
    if (c.attributes[a].type == Type::floating) {
      call.attributes[a].f = numbers[below(9)];
    } else if (c.attributes[a].type == Type::string) {
      call.attributes[a].s = one_in(2) ? nullptr : "text";
    } else {
      call.attributes[a].i = below(6) - 2;
    }
  }
}

std::string bind(Case& call) {
  try {
    call.bind();
    return "";
  } catch (const Error& e) {
    if (e.status() != KW_ERROR_ARGUMENT || std::string(e.what()).rfind(call.op->contract.name + ": ", 0) != 0)
      return std::string("BAD ") + e.what();
    return e.what();
  }
}

void compare_with_oracle(const char* contract, int rounds, int& accepted, int& refused) {
  for (int round = 0; round < rounds; round++) {
    Case call(contract);
    random_call(call, round % 2 ? 1000000 : 8);
    const std::string said = bind(call);
    auto wanted = test::BindOracle(call.op->contract, call.inputs.data(), call.attributes.data()).specs();
    if (said.empty() != wanted.has_value() || said.rfind("BAD", 0) == 0) {
      test::record(false, __FILE__, __LINE__,
                   call.op->contract.name + (wanted ? ": refused, but fits: " + said : ": accepted, but does not fit"));
      continue;
    }
    (wanted ? accepted : refused)++;
    if (!wanted) continue;
    for (size_t r = 0; r < wanted->size(); r++) {
      const test::OracleSpec& w = (*wanted)[r];
      const TensorSpec& got = call.bound.results[r];
      bool same = w.present == got.present;
      if (same && w.present) same = w.dtype == got.dtype && w.sizes == std::vector<int64_t>(got.sizes, got.sizes + got.rank);
      if (!same) test::record(false, __FILE__, __LINE__, call.op->contract.name + ": result " + std::to_string(r) + " differs");
    }
    call.make_results();
    try {
      call.bind_all();
    } catch (const Error& e) {
      test::record(false, __FILE__, __LINE__, std::string("results as sized are refused: ") + e.what());
    }
  }
}

// Any numbers at all, lists included: a sentence or a binding, never harm (the sanitizers look on).
void hostile(const char* contract, int rounds) {
  const int64_t extremes[] = {0,         1,         -1,           2, 7, 4096, int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 62,
                              INT64_MAX, INT64_MIN, INT64_MAX - 1};
  for (int round = 0; round < rounds; round++) {
    Case call(contract);
    random_call(call, 1000000);
    auto spoil = [&](kw_tensor t) {
      if (t.rank < 0 || t.rank > KW_MAX_RANK || one_in(3)) return t;
      std::vector<int64_t> sizes(t.sizes, t.sizes + t.rank), strides(t.strides, t.strides + t.rank);
      for (int64_t& n : sizes)
        if (one_in(3)) n = extremes[below(12)];
      for (int64_t& n : strides)
        if (one_in(3)) n = extremes[below(12)];
      t = call.tensors.make(t.dtype, sizes, strides);
      if (one_in(8)) t.rank = static_cast<int32_t>(below(2) ? -1 - below(100) : 9 + below(1000000));
      if (one_in(8)) t.dtype = static_cast<int32_t>(random_bits());
      if (one_in(8)) t.strides = nullptr;
      if (one_in(8)) t.data = reinterpret_cast<void*>(random_bits());
      return t;
    };
    for (size_t i = 0; i < call.inputs.size(); i++) {
      if (call.inputs[i].count == 0) continue;
      std::vector<kw_tensor> items;
      for (int64_t n = call.op->contract.inputs[i].type.list ? 1 + below(3) : 1; n > 0; n--)
        items.push_back(spoil(call.inputs[i].tensors[0]));
      call.list(i, items);
      if (one_in(30)) call.inputs[i].count = -1;
      if (one_in(30)) call.inputs[i].tensors = nullptr;
    }
    const std::string said = bind(call);
    if (said.rfind("BAD", 0) == 0) test::record(false, __FILE__, __LINE__, said);
    if (!said.empty()) continue;
    call.make_results();
    for (size_t r = 0; r < call.results.size(); r++)
      if (call.results[r].count && one_in(2)) call.set(r, spoil(call.results[r].tensors[0]));
    try {
      call.bind_all();
    } catch (const Error& e) {
      if (e.status() != KW_ERROR_ARGUMENT) test::record(false, __FILE__, __LINE__, e.what());
    }
  }
}

// Two results and two inputs within one small stretch of memory, their rows at two distances: sharing a byte is refused, nothing else is.
void overlaps(int rounds, int& touching, int& apart) {
  for (int round = 0; round < rounds; round++) {
    Case call("two(x: f32[*B, 3], i: u8[*B, 3]) -> (y: f32[*B, 3], z: f16[*B, 3])");
    const int64_t rows = 1 + below(4), runs = 1 + below(3);
    std::set<int64_t> bytes[4];
    auto make = [&](int32_t dtype, int which, bool written) {
      int64_t stride = written ? 3 + below(8) : below(11), run = written ? stride * (rows - 1) + 3 + below(8) : below(40);
      if (written && one_in(3)) run = 3 + below(3), stride = run * (runs - 1) + 3 + below(3);  // transposed
      const int64_t size = dtype_bytes(dtype), at = below(120) * size;
      kw_tensor t = call.tensors.make(dtype, {runs, rows, 3}, {run, stride, 1});
      t.data = reinterpret_cast<void*>((int64_t{1} << 20) + at);
      for (int64_t r = 0; r < rows * runs; r++)
        for (int64_t b = 0; b < 3 * size; b++) bytes[which].insert(at + (r % rows * stride + r / rows * run) * size + b);
      return t;
    };
    call.in(0, make(KW_F32, 0, false)).in(1, make(KW_U8, 1, false)).bind();
    call.results.assign(2, {});
    call.set(0, make(KW_F32, 2, true));
    call.set(1, make(KW_F16, 3, true));
    bool touch = false;
    for (int a = 2; a < 4; a++)
      for (int b = 0; b < a; b++)
        for (int64_t x : bytes[a]) touch = touch || bytes[b].count(x);
    bool refused = false;
    try {
      call.bind_all();
    } catch (const Error& e) {
      refused = std::string(e.what()).find("overlap in memory") != std::string::npos;
    }
    touching += touch, apart += !touch;
    if (touch && !refused) test::record(false, __FILE__, __LINE__, "a shared byte was missed");
    if (!touch && refused) test::record(false, __FILE__, __LINE__, "refused, but nothing is shared");
  }
}

}  // namespace

int main() {
  const auto start = std::chrono::steady_clock::now();
  int accepted = 0, refused = 0, touching = 0, apart = 0;
  auto each = [&](const char* contract) {
    bool lists = false;
    for (const Input& i : parse_contract(contract).inputs) lists = lists || i.type.list;
    if (!lists) compare_with_oracle(contract, 5000, accepted, refused);
    hostile(contract, 1000);
  };
  for (const char* contract : test::dozen) each(contract);
  for (const char* contract : more) each(contract);
  overlaps(20000, touching, apart);
  KW_EXPECT(accepted > 5000 && refused > 5000);
  KW_EXPECT(touching > 1000 && apart > 1000);
  std::cout << accepted << " calls fit, " << refused << " do not; " << touching << " overlap, " << apart << " lie apart; in "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s\n";
  return test::finish();
}
