// The checker checked: right ops pass every layer, and each planted fault is found by the layer that is there for it.
// Not for the sanitizers: some of the planted faults read and write out of bounds.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "kw/core/room.h"
#include "kw/core/sum.h"
#include "testing/check.h"
#include "testing/compare.h"
#include "testing/expect.h"
#include "testing/random.h"
#include "testing/truth.h"

using namespace kw;

namespace {

// ---- a room of two ops, whose CPU functions can be made wrong ----------------------------------------------------------------

enum class Fault {
  none,
  nothing,
  zeros,
  nans,
  stale,
  wrong_eps,
  tail,
  off_by_one_row,
  neighbour_stride,
  half_accumulator,
  truncate,
  writes_before,
  writes_behind,
  writes_input,
  ignores_gap,
  one_distance,
  one_result_distance,
  narrow_offset,
  place_matters,
  row_count_matters,
  nan_spreads,
  rerun_differs,
  ignores_weight,
  drops_nan,
  one_pass_variance,
  partial_sums_mixed,
  last_row_missing,
  count_of_all,
  slightly_larger
};
Fault fault = Fault::none;
int calls = 0;

double get(const kw_tensor& t, int64_t i) {
  return test::load_number(static_cast<DType>(t.dtype), static_cast<char*>(t.data) + i * dtype_bytes(t.dtype));
}
void put(const kw_tensor& t, int64_t i, double v) {
  test::store_number(static_cast<DType>(t.dtype), static_cast<char*>(t.data) + i * dtype_bytes(t.dtype), v);
}

float half(float v) {
  uint16_t bits;
  test::store_number(KW_F16, &bits, v);
  return static_cast<float>(test::load_number(KW_F16, &bits));
}

template <class A, class Term>
A sum_of(int64_t n, Term term) {  // in 64 chains, as kernels do
  A chains[64] = {}, sum = 0;
  for (int64_t i = 0; i < n; i++) chains[i % 64] += term(i);
  for (A chain : chains) sum += chain;
  return sum;
}

// y = (x - mean) / sqrt(variance + eps) * weight, per row
template <class A, class Row>
void normalize(int64_t rows, int64_t n, double eps, Row&& row_of) {
  for (int64_t r = 0; r < rows; r++) {
    const auto [x, weight, y] = row_of(r);
    const A mean = sum_of<A>(n, [&](int64_t i) { return static_cast<A>(x(i)); }) / static_cast<A>(n);
    const A square = sum_of<A>(n, [&](int64_t i) { return (static_cast<A>(x(i)) - mean) * (static_cast<A>(x(i)) - mean); });
    const A scale = 1 / std::sqrt(square / static_cast<A>(n) + static_cast<A>(eps));
    for (int64_t i = 0; i < n; i++) y(i, (static_cast<A>(x(i)) - mean) * scale * static_cast<A>(weight(i)));
  }
}

void norm_cpu(const Call& c) {
  const kw_tensor &x = *c.tensor("x"), &y = *c.tensor("y");
  const kw_tensor* w = c.tensor("w");
  int64_t rows = c.dim("B"), n = c.dim("N");
  Rows x_rows = c.rows("x"), y_rows = c.rows("y");
  if (fault == Fault::ignores_gap) x_rows = {.stride = {n}};
  if (fault == Fault::one_distance) x_rows.size[0] = 0;
  if (fault == Fault::one_result_distance) y_rows.size[0] = 0;
  double eps = c.attr("eps");
  calls++;
  if (fault == Fault::nothing || (fault == Fault::stale && calls % 3 == 0)) return;
  if (fault == Fault::wrong_eps) eps *= 10;
  if (fault == Fault::off_by_one_row && rows > 1 && rows < 64)  // stays within the guard band
    x_rows.stride[0] += 1;
  if (fault == Fault::last_row_missing) rows = std::max<int64_t>(rows - 1, std::min<int64_t>(rows, 1));
  if (fault == Fault::writes_before && n == 33) static_cast<char*>(y.data)[-3] = 0;
  if (fault == Fault::writes_behind && n == 33) put(y, rows * n + 2, 1);
  if (fault == Fault::writes_input && n == 33 && rows) put(x, 5, 0);
  auto row_of = [&](int64_t r) {
    struct {
      std::function<double(int64_t)> x, w;
      std::function<void(int64_t, double)> y;
    } row;
    const int64_t x_at = fault == Fault::narrow_offset ? static_cast<int32_t>(x_rows.at(r)) & 0xfffff : x_rows.at(r), y_at = y_rows.at(r);
    row.x = [&x, x_at](int64_t i) { return get(x, x_at + i); };
    row.w = [&](int64_t i) { return w && fault != Fault::ignores_weight ? get(*w, i) : 1; };
    row.y = [&y, y_at, n](int64_t i, double v) {
      if (fault == Fault::slightly_larger && n > 2048 && y.dtype == KW_F32) v *= 1 + 0x1p-18;
      if (fault == Fault::zeros) v = 0;
      if (fault == Fault::nans) v = std::nan("");
      if (fault == Fault::drops_nan && std::isnan(v)) v = 0;
      if (fault == Fault::tail && i == n - 1 && n % 8) v = 0;
      if (fault == Fault::truncate && y.dtype == KW_BF16) {
        uint32_t bits;
        const auto f = static_cast<float>(v);
        std::memcpy(&bits, &f, 4);
        const auto top = static_cast<uint16_t>(bits >> 16);
        std::memcpy(static_cast<char*>(y.data) + (y_at + i) * 2, &top, 2);
        return;
      }
      put(y, y_at + i, v);
    };
    return row;
  };
  const bool odd = reinterpret_cast<uintptr_t>(x.data) % 16 != 0;
  if (x.dtype == KW_F64 || (fault == Fault::place_matters && odd) || fault == Fault::slightly_larger)
    return normalize<double>(rows, n, eps, row_of);
  if (fault != Fault::half_accumulator && fault != Fault::one_pass_variance) {
    normalize<float>(rows, n, eps, row_of);
  } else {
    for (int64_t r = 0; r < rows; r++) {
      auto row = row_of(r);
      float mean = 0, square = 0;
      auto round = [](float v) { return fault == Fault::half_accumulator ? half(v) : v; };
      for (int64_t i = 0; i < n; i++) mean = round(mean + static_cast<float>(row.x(i)));
      mean /= static_cast<float>(n);
      for (int64_t i = 0; i < n; i++) {
        const float v = static_cast<float>(row.x(i)) - (fault == Fault::half_accumulator ? mean : 0);
        square = round(square + v * v);
      }
      float variance = square / static_cast<float>(n);
      if (fault == Fault::one_pass_variance) variance = std::max(variance - mean * mean, 0.0f);
      const float scale = 1 / std::sqrt(variance + static_cast<float>(eps));
      for (int64_t i = 0; i < n; i++) row.y(i, (static_cast<float>(row.x(i)) - mean) * scale * static_cast<float>(row.w(i)));
    }
  }
  if (fault == Fault::row_count_matters && rows > 4 && n > 1) put(y, y_rows.at(1), get(y, y_rows.at(1)) * 1.01);
  if (fault == Fault::nan_spreads && rows > 1)
    for (int64_t i = 0; i < n; i++)
      if (std::isnan(get(y, y_rows.at(rows - 1) + i)) || std::isnan(get(y, y_rows.at(rows / 2) + i))) put(y, 0, std::nan(""));
  if (fault == Fault::rerun_differs && calls % 7 == 0 && rows * n > 64) put(y, 1, get(y, 1) * 1.01);
}

void norm_reference(const Call& c) {
  const auto *x = static_cast<const double*>(c.data("x")), *w = static_cast<const double*>(c.data("w"));
  auto* y = static_cast<double*>(c.data("y"));
  const int64_t n = c.dim("N");
  for (int64_t r = 0; r < c.dim("B"); r++, x += n, y += n) {
    Sum sum, square;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) / std::sqrt(square / static_cast<double>(n) + c.attr("eps")) * (w ? w[i] : 1);
  }
}

// s = sum over rows, in two steps through scratch
void columns_cpu(const Call& c) {
  const kw_tensor &x = *c.tensor("x"), &s = *c.tensor("s"), &part = *c.tensor("part");
  const int64_t rows = c.dim("B"), n = c.dim("N"), parts = std::min<int64_t>(rows, 4);
  const Rows x_rows = c.rows("x");
  for (int64_t p = 0; p < parts; p++)
    for (int64_t i = 0; i < n; i++) {
      double sum = 0;
      for (int64_t r = p; r < rows; r += parts) sum += get(x, x_rows.at(r) + i);
      if (fault == Fault::partial_sums_mixed)
        put(part, i * parts + p, sum);
      else
        put(part, p * n + i, sum);
    }
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t p = 0; p < parts; p++) sum += get(part, p * n + i);
    if (fault == Fault::count_of_all && !rows) return;
    put(s, i, sum);
  }
}
void columns_reference(const Call& c) {
  const auto* x = static_cast<const double*>(c.data("x"));
  auto* s = static_cast<double*>(c.data("s"));
  const int64_t n = c.dim("N");
  for (int64_t i = 0; i < n; i++) {
    Sum sum;
    for (int64_t r = 0; r < c.dim("B"); r++) sum += x[r * n + i];
    s[i] = sum;
  }
}

void choose(const Problem&, const kw_device_facts&, Choice&) {}
void fill(const Call&, const kw_device_facts&, const kw_choice&, Launches&) {}

constexpr auto norm = make_op<choose, fill, norm_cpu, norm_reference>(
    "test_norm(x: T[*B, N], w: W[N]?, *, eps: float >= 0 = 1e-5) -> y: T[*B, N]\n  where T: bf16 f32 f64 f16, W: T f32");
constexpr auto columns = make_op<choose, fill, columns_cpu, columns_reference>(
    "test_columns(x: T[*B, N]) -> s: sum T[N]\n  where T: f32 bf16\n  scratch part: f64[min(B, 4), N]");
const kw_op_def* const defs[] = {&norm, &columns};
const kw_room room = {sizeof(kw_room), KW_ABI_VERSION, "test_room", defs, 2, nullptr};

// ---- the tests ---------------------------------------------------------------------------------------------------------------

std::vector<test::LayerReport> check(const char* op) {
  test::HostDevice device;
  test::CheckOptions options;
  options.scope.quick = true;
  options.scope.largest = 1 << 16;
  calls = 0;
  return test::check_op(device, get_op(op), options);
}

// The layers that failed, and what the first said.
std::string failures(const char* op, Fault planted) {
  fault = planted;
  std::string text;
  for (const test::LayerReport& l : check(op))
    if (!l.ok) text += l.layer + ": " + l.sentence + (l.layer != "refusal" ? " | " + l.reproduce : "") + "\n";
  fault = Fault::none;
  return text;
}

void expect_found(const char* op, Fault planted, const char* layer, const char* part) {
  const std::string text = failures(op, planted);
  const size_t at = text.find(layer);
  const bool found = at != text.npos && text.substr(at, text.find('\n', at) - at).find(part) != text.npos;
  if (!found) std::cerr << "fault " << static_cast<int>(planted) << " gave:\n" << (text.empty() ? "nothing\n" : text);
  KW_EXPECT(found);
}

void planted_faults() {
  KW_EXPECT_EQ(failures("test_norm", Fault::none), "");
  KW_EXPECT_EQ(failures("test_columns", Fault::none), "");
  expect_found("test_norm", Fault::nothing, "shapes", "is never written");
  expect_found("test_norm", Fault::zeros, "shapes", "is 0, but the reference says");
  expect_found("test_norm", Fault::nans, "shapes", "is nan, but the reference says");
  expect_found("test_norm", Fault::stale, "shapes", "depends on what the memory held");
  expect_found("test_norm", Fault::wrong_eps, "values", "but the reference says");
  expect_found("test_norm", Fault::tail, "shapes", "is 0, but the reference says");
  expect_found("test_norm", Fault::off_by_one_row, "shapes", "but the reference says");
  expect_found("test_norm", Fault::ignores_gap, "layouts", "but the reference says");
  expect_found("test_norm", Fault::one_distance, "layouts", "but the reference says");
  expect_found("test_norm", Fault::one_result_distance, "layouts", "between its rows");
  expect_found("test_norm", Fault::narrow_offset, "far", "differs when rows lie");
  expect_found("test_norm", Fault::place_matters, "places", "in the layout");
  expect_found("test_norm", Fault::half_accumulator, "shapes", "but the reference says");
  expect_found("test_norm", Fault::truncate, "shapes", "but the reference says");
  expect_found("test_norm", Fault::writes_before, "shapes", "before its start were overwritten");
  expect_found("test_norm", Fault::writes_behind, "shapes", "behind its end were overwritten");
  expect_found("test_norm", Fault::writes_input, "shapes", "input x was changed");
  expect_found("test_norm", Fault::row_count_matters, "rows", "alone");
  expect_found("test_norm", Fault::nan_spreads, "rows", "is NaN");
  expect_found("test_norm", Fault::rerun_differs, "repeat", "in rerun");
  expect_found("test_norm", Fault::ignores_weight, "shapes", "but the reference says");
  expect_found("test_norm", Fault::drops_nan, "values", "says nan");
  expect_found("test_norm", Fault::one_pass_variance, "values", "but the reference says");
  expect_found("test_norm", Fault::last_row_missing, "shapes", "is never written");
  expect_found("test_norm", Fault::slightly_larger, "shapes", "root mean square");
  expect_found("test_columns", Fault::partial_sums_mixed, "shapes", "but the reference says");
  expect_found("test_columns", Fault::count_of_all, "shapes", "is never written");
}

void numbers() {
  // Every 16-bit pattern survives a round trip; NaN stays NaN.
  for (DType type : {KW_F16, KW_BF16, KW_FP8E4M3, KW_FP8E5M2}) {
    int wrong = 0;
    const uint32_t patterns = dtype_bytes(type) == 2 ? 65536 : 256;
    for (uint32_t bits = 0; bits < patterns; bits++) {
      uint16_t in = static_cast<uint16_t>(bits), out = 0;
      const double v = test::load_number(type, &in);
      test::store_number(type, &out, v);
      wrong += std::isnan(v) ? !std::isnan(test::load_number(type, &out)) : out != in;
    }
    KW_EXPECT_EQ(wrong, 0);
  }
  // Rounding agrees with the compiler's own conversion to _Float16.
  test::Random random(5);
  int differ = 0;
  for (int i = 0; i < 200000; i++) {
    const double v = std::ldexp(random.uniform() - 0.5, static_cast<int>(random.below(45)) - 26);
    uint16_t ours;
    test::store_number(KW_F16, &ours, v);
    const auto theirs = static_cast<_Float16>(v);
    differ += std::memcmp(&ours, &theirs, 2) != 0;
  }
  KW_EXPECT_EQ(differ, 0);
  KW_EXPECT_EQ(test::spacing(KW_F32, 1.0), 0x1p-23);
  KW_EXPECT_EQ(test::spacing(KW_BF16, 0.99), 0x1p-8);
  KW_EXPECT_EQ(test::spacing(KW_F16, 1e-9), 0x1p-24);
  KW_EXPECT_EQ(test::overflow_from(KW_F16), 65520.0);
  uint16_t h;
  test::store_number(KW_F16, &h, 65519.9);
  KW_EXPECT_EQ(test::load_number(KW_F16, &h), 65504.0);
  test::store_number(KW_F16, &h, 65520);
  KW_EXPECT(std::isinf(test::load_number(KW_F16, &h)));
  int8_t byte;
  test::store_number(KW_I8, &byte, 1e9);
  KW_EXPECT_EQ(static_cast<int>(byte), 127);
}

void grades() {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  auto judge = [](DType type, double got, double want) {
    test::Tensor t(type, {1});
    t.set(0, got);
    const test::Truth truth{{{want}}, {{std::isfinite(want) ? std::fabs(want) : 0}}, {{0}}};
    return test::grade("y", t, truth, 0, type == KW_F64 ? KW_F64 : KW_F32, false).ok;
  };
  KW_EXPECT(judge(KW_F32, 1, 1));
  KW_EXPECT(judge(KW_BF16, 1, 1.0039));  // half a spacing is 0.00390625
  KW_EXPECT(!judge(KW_BF16, 1, 1.00392));
  KW_EXPECT(!judge(KW_F32, 1.00001, 1));
  KW_EXPECT(judge(KW_F32, nan, nan) && !judge(KW_F32, nan, 1) && !judge(KW_F32, 1, nan));
  KW_EXPECT(judge(KW_F32, inf, inf) && !judge(KW_F32, -inf, inf) && !judge(KW_F32, 1, inf) && !judge(KW_F32, inf, 1) &&
            !judge(KW_F32, nan, inf));
  KW_EXPECT(judge(KW_F16, inf, 1e6) && !judge(KW_F16, 65504, 1e6) && judge(KW_F16, 65504, 65510) && !judge(KW_F16, inf, 65500));
  KW_EXPECT(judge(KW_I32, 5, 5) && !judge(KW_I32, 5, 6));
  KW_EXPECT(!judge(KW_F32, 0, 1e-30) && judge(KW_F32, 0, 1e-46));
  KW_EXPECT(judge(KW_F64, 1, 1) && !judge(KW_F64, 1 + 1e-14, 1));

  // Errors that each element may have, but not all of them, and not all to the same side.
  test::Random random(3);
  auto judged = [&](DType type, int64_t n, double moves, auto&& steps) {  // errors in spacings, before rounding
    test::Truth truth;
    truth.terms = 16;
    truth.want = truth.wavers = {std::vector<double>(static_cast<size_t>(n))};
    truth.moves = {std::vector<double>(static_cast<size_t>(n), moves)};
    test::Tensor got(type, {n});
    for (int64_t i = 0; i < n; i++) {
      const double v = truth.want[0][static_cast<size_t>(i)] = 1 + random.uniform();
      got.set(i, v + steps(i) * test::spacing(type, v));
    }
    const test::Grade g = test::grade("y", got, truth, 0, KW_F32, true);
    return g.ok ? "" : g.sentence;
  };
  KW_EXPECT_EQ(judged(KW_F32, 4000, 1, [](int64_t) { return 0; }), "");
  KW_EXPECT_EQ(judged(KW_F32, 4000, 1, [](int64_t i) { return i % 2 ? 2 : -2; }), "");
  KW_EXPECT(judged(KW_F32, 4000, 1, [](int64_t i) { return i % 2 ? 4 : -4; }).find("root mean square") != std::string::npos);
  KW_EXPECT(judged(KW_F32, 4000, 1, [](int64_t i) { return i == 77 ? 12.0 : 0; }).find("[77]") != std::string::npos);
  KW_EXPECT_EQ(judged(KW_BF16, 1000000, 20, [](int64_t i) { return i % 2 ? 0.002 : -0.002; }), "");
  KW_EXPECT(judged(KW_BF16, 1000000, 20, [](int64_t) { return 0.002; }).find("off to one side") != std::string::npos);
}

// The reference's own cancellation is seen, and the caller's rounding mode is left alone.
void truths() {
  const Op& op = get_op("test_norm");
  for (double mean : {0.0, 1000.0}) {
    test::Case c;
    c.arguments = test::parse_arguments(op, {"x=f32[1,64]"});
    std::vector<test::Tensor> inputs = test::make_inputs(op, c);
    for (int64_t i = 0; i < 64; i++) inputs[0].set(i, inputs[0].at(i) + mean);
    test::Reference reference(op, c.arguments, inputs);
    double most = 0;
    for (double w : reference.truth().wavers[0]) most = std::max(most, w);
    KW_EXPECT(mean == 0 ? most > 0.1 && most < 100 : most > 100 && most < 1e5);
    KW_EXPECT_EQ(reference.truth().terms, 64.0);
  }
  KW_EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

void guards() {
  test::HostDevice device;
  TensorSpec spec{true, KW_F32, 1, {10}};
  for (int64_t at : {int64_t{-1}, int64_t{-40}, int64_t{10}, int64_t{100}, int64_t{0}, int64_t{9}}) {
    test::Placed placed(device, spec, 0xFF, {{1}, 3});
    KW_EXPECT_EQ(placed.guard_fault(), "");
    static_cast<float*>(placed.view().data)[at] = 1;
    KW_EXPECT_EQ(placed.guard_fault().empty(), at >= 0 && at < 10);
  }
}

}  // namespace

int main() {
  register_room(&room);
  numbers();
  grades();
  guards();
  truths();
  planted_faults();
  return test::finish();
}
