// Laws and hard cases of cross-entropy, through the typed call: on the CPU, and on the GPU, or the emulator where there is none. Names like
// S11 are those of public bug reports (pytorch/pytorch#12670 and so on, in the comments).
#include "kw/ops/cross_entropy/cross_entropy.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "kw/core/bind.h"
#include "kw/runtime/dispatch.h"
#include "tests/cpp/access.h"
#include "tests/cpp/on_device.h"

namespace {

using kw::CrossEntropyOptions;
using kw::Reduction;
using kw::test::Array;
using kw::test::close;
constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
bool on_cuda = false;

kw::DType wide(kw::DType type) { return type == KW_F64 ? KW_F64 : KW_F32; }

// A call and what it gives.
struct Loss {
  kw::DType type;
  int64_t rows, length;
  Array logits, target, weight, dlogits, loss, losses;
  bool weighted = false, gradient = true;
  CrossEntropyOptions options;

  Loss(kw::DType t, int64_t r, int64_t n, int64_t padding = 0, int64_t offset = 0, kw::DType index = KW_I64)
      : type(t),
        rows(r),
        length(n),
        logits(t, {r, n}, padding, offset),
        target(index, {r}),
        weight(wide(t), {n}),
        dlogits(t, {r, n}, 0, offset),
        loss(wide(t), {1}),
        losses(wide(t), {r}) {
    logits.random(1, 0.3), weight.random(3, 1);
    for (int64_t i = 0; i < r; i++) target.set(0, i, static_cast<double>((i * 7919 + 5) % n));
  }
  Loss& each_row() {  // unreduced
    kw::test::with_views(on_cuda, {&logits, &target, weighted ? &weight : nullptr, &losses, gradient ? &dlogits : nullptr}, [&](auto& t) {
      kw::cross_entropy_unreduced(nullptr, t[0], t[1], weighted ? &t[2] : nullptr, options, t[3], gradient ? &t[4] : nullptr);
    });
    KW_EXPECT(dlogits.canaries_live() && losses.canaries_live());
    return *this;
  }
  Loss& all_rows(Reduction reduction, Array* divisor = nullptr) {
    Array parts(wide(type), {256});
    Array* d = gradient ? &dlogits : nullptr;
    kw::test::with_views(on_cuda, {&logits, &target, weighted ? &weight : nullptr, divisor, &loss, d, &losses, &parts}, [&](auto& t) {
      for (int i : {3, 4}) t[static_cast<size_t>(i)].rank = 0;
      kw::cross_entropy(nullptr, t[0], t[1], weighted ? &t[2] : nullptr, divisor ? &t[3] : nullptr, options, reduction, t[4],
                        gradient ? &t[5] : nullptr, t[6], t[7]);
    });
    KW_EXPECT(dlogits.canaries_live() && loss.canaries_live() && losses.canaries_live() && parts.canaries_live());
    return *this;
  }
  double value(int64_t row) const { return losses.get(0, row); }
};

std::string text(const Loss& l) {
  return kw::format("%s: %s[%lld,%lld] weight %d smoothing %g z %g cap %g", on_cuda ? "cuda" : "cpu", kw::dtype_name(l.type),
                    static_cast<long long>(l.rows), static_cast<long long>(l.length), l.weighted, l.options.label_smoothing,
                    l.options.z_loss, l.options.softcap);
}

// Against the formula of cross_entropy.h, in long double.
void agrees_with_the_formula(Loss l) {
  l.each_row();
  const double s = l.options.label_smoothing, z = l.options.z_loss, cap = l.options.softcap, n = static_cast<double>(l.length);
  int wrong = 0;
  for (int64_t r = 0; r < l.rows; r++) {
    const auto x = [&](int64_t i) { return cap > 0 ? cap * std::tanh(l.logits.get(r, i) / cap) : l.logits.get(r, i); };
    const auto w = [&](int64_t i) { return l.weighted ? l.weight.get(0, i) : 1; };
    const auto t = static_cast<int64_t>(l.target.get(0, r));
    double top = -inf, sum = 0, weights = 0, far = 0, size = 1;
    for (int64_t i = 0; i < l.length; i++) top = std::max(top, x(i)), size = std::max(size, std::fabs(x(i)));
    for (int64_t i = 0; i < l.length; i++) sum += std::exp(x(i) - top), weights += w(i), far += w(i) * (top - x(i));
    const double lse = top + std::log(sum);
    const double loss = (1 - s) * w(t) * (lse - x(t)) + s / n * (weights * std::log(sum) + far) + z * w(t) * lse * lse;
    const double slack = 40 + std::sqrt(n) / 8, scale = 1 + z * (1 + std::fabs(lse)) + s * std::fabs(weights) / n;
    wrong += !close(l.value(r), loss, wide(l.type), slack, size * scale * (1 + std::fabs(w(t))) * (1 + std::fabs(lse)));
    for (int64_t i = 0; i < l.length; i++) {
      const double p = std::exp(x(i) - lse), all = (1 - s) * w(t) + s / n * weights + 2 * z * w(t) * lse;
      const double d = (p * all - s / n * w(i) - (i == t ? (1 - s) * w(t) : 0)) * (cap > 0 ? 1 - x(i) / cap * (x(i) / cap) : 1);
      const double sizes = p * (std::fabs(all) + std::fabs(w(t)) * scale) * size + s / n * std::fabs(w(i)) + (i == t) * std::fabs(w(t));
      wrong += !close(l.dlogits.get(r, i), d, l.type, slack, sizes);
    }
  }
  if (!KW_EXPECT_EQ(wrong, 0)) std::cerr << "  " << text(l) << '\n';
}

void formula(kw::DType type, int64_t rows, int64_t length, int64_t padding = 0, int64_t offset = 0) {
  for (int option = 0; option < 5; option++) {
    Loss l(type, rows, length, padding, offset, option % 2 ? KW_I32 : KW_I64);
    l.weighted = option == 1 || option == 4;
    if (option == 2 || option == 4) l.options.label_smoothing = 0.1;
    if (option == 3 || option == 4) l.options.z_loss = 1e-2, l.options.softcap = 5;
    agrees_with_the_formula(l);
  }
}

// A row has the bits that it has alone, at another address, at another distance and without a gradient; aligned rows and others too, which
// take different kernels.
void rows_are_independent(kw::DType type, int64_t length) {
  Loss many(type, 5, length, 3, 1);
  many.each_row();
  Loss plain(type, 5, length);
  plain.each_row();
  KW_EXPECT(many.losses.bits() == plain.losses.bits() && many.dlogits.bits() == plain.dlogits.bits());
  plain.gradient = false;
  const std::string losses = plain.losses.bits();
  KW_EXPECT(plain.each_row().losses.bits() == losses);
  for (int64_t r : {0, 4}) {
    Loss one(type, 1, length);
    one.logits.each([&](int64_t, int64_t i) { return many.logits.get(r, i); });
    one.target.set(0, 0, many.target.get(0, r));
    one.each_row();
    KW_EXPECT(one.value(0) == many.value(r) && one.dlogits.bits() == many.dlogits.row_bits(r));
  }
}

// Mean, sum, divisor: against the rows; and the gradient is that of the rows, scaled.
void reductions(kw::DType type, int64_t rows, int64_t length) {
  for (bool weighted : {false, true}) {
    Loss each(type, rows, length), l(type, rows, length);
    for (int64_t r = 0; r < rows; r += 3) each.target.set(0, r, -100), l.target.set(0, r, -100);
    each.weighted = l.weighted = weighted;
    each.each_row();
    double total = 0, size = 0, count = 0;
    for (int64_t r = 0; r < rows; r++) {
      total += each.value(r), size += std::fabs(each.value(r));
      if (r % 3) count += weighted ? each.weight.get(0, static_cast<int64_t>(each.target.get(0, r))) : 1;
    }
    Array divisor(wide(type), {1});
    divisor.set(0, 0, 3);
    const auto judge = [&](double by) {
      KW_EXPECT(close(l.loss.get(0, 0), total / by, wide(type), 20, size / std::fabs(by)));
      int wrong = 0;
      for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < length; i++) {  // both have been rounded, so theirs may be a spacing apart
          const double want = each.dlogits.get(r, i) / by, of_target = i == static_cast<int64_t>(each.target.get(0, r)) ? 9 / by : 0;
          const double units = type == KW_BF16 ? 0x1p17 : type == KW_F16 ? 0x1p14 : 8;
          wrong += !close(l.dlogits.get(r, i), want, type, units, std::fabs(want) + std::fabs(of_target) + (type == KW_F16 ? 0x1p-14 : 0));
        }
      KW_EXPECT_EQ(wrong, 0);
    };
    l.all_rows(Reduction::mean), judge(count);
    l.all_rows(Reduction::sum), judge(1);
    l.all_rows(Reduction::mean, &divisor), judge(3);
    l.all_rows(Reduction::sum, &divisor), judge(3);
    const std::string bits = l.loss.bits();
    l.gradient = false;
    KW_EXPECT(l.all_rows(Reduction::sum, &divisor).loss.bits() == bits);
  }
}

// S09 (pytorch/pytorch#75181): every target ignored.
void nothing_counts(kw::DType type, int64_t length) {
  Loss l(type, 3, length);
  for (int64_t r = 0; r < 3; r++) l.target.set(0, r, -100), l.logits.set(r, r, r == 0 ? nan : inf);
  KW_EXPECT(std::isnan(l.all_rows(Reduction::mean).loss.get(0, 0)));
  const auto no_gradient = [&] {
    for (int64_t r = 0; r < 3; r++)
      for (int64_t i = 0; i < length; i++) KW_EXPECT_EQ(l.dlogits.get(r, i), 0.0);
  };
  no_gradient();
  KW_EXPECT_EQ(l.all_rows(Reduction::sum).loss.get(0, 0), 0.0);
  no_gradient();
  l.each_row();  // S16 (Liger-Kernel#421): zeros, one per row
  for (int64_t r = 0; r < 3; r++) KW_EXPECT_EQ(l.value(r), 0.0);
  no_gradient();
}

// S11 (pytorch/pytorch#12670, #195829), K01 (tensorflow#8484): targets out of range.
void out_of_range(kw::DType type, int64_t length, kw::DType index) {
  const double n = static_cast<double>(length), far = index == KW_I64 ? 0x1p40 : 0x1p31 - 1;
  const double targets[] = {1, -4, 0, n, n - 1, far, -1, -0x1p31};
  Loss l(type, 8, length, 0, 0, index), right(type, 8, length, 0, 0, index);
  for (int64_t r = 0; r < 8; r++) l.target.set(0, r, targets[r]), right.target.set(0, r, r % 2 || r == 6 ? -100 : targets[r]);
  l.options.ignore_index = -1;
  l.all_rows(Reduction::mean);
  right.all_rows(Reduction::mean);
  KW_EXPECT(std::isnan(l.loss.get(0, 0)));
  int wrong = 0;
  for (int64_t r = 0; r < 8; r++)
    for (int64_t i = 0; i < length; i++) wrong += r % 2 ? !std::isnan(l.dlogits.get(r, i)) : l.dlogits.get(r, i) != right.dlogits.get(r, i);
  KW_EXPECT_EQ(wrong, 0);
  l.each_row(), right.each_row();
  for (int64_t r = 0; r < 8; r++) KW_EXPECT(r % 2 ? std::isnan(l.value(r)) : l.value(r) == right.value(r));
}

// S17 (pytorch/pytorch#195829, #795): -inf, NaN, +inf, and logits masked with the lowest number.
void hard_values(kw::DType type, int64_t length) {
  const double lowest = type == KW_F16 ? -65504 : -0x1.fep127;
  Loss l(type, 8, length);
  const int64_t at = length - 2;
  l.logits.set(1, at, -inf);
  for (int64_t i = 0; i < length; i++) {
    l.logits.set(2, i, -inf), l.logits.set(5, i, lowest), l.logits.set(6, i, -inf);
    l.logits.set(7, i, -lowest);
  }
  l.logits.set(3, at, nan), l.logits.set(4, at, inf), l.logits.set(6, at, lowest);
  for (int64_t r = 0; r < 8; r++) l.target.set(0, r, r == 6 ? static_cast<double>(at) : 0);
  l.each_row();
  int wrong = !std::isfinite(l.value(0)) + !std::isfinite(l.value(1)) + (l.dlogits.get(1, at) != 0);
  for (int64_t i = 0; i < length; i++) {
    wrong += !std::isfinite(l.dlogits.get(0, i)) + !std::isfinite(l.dlogits.get(1, i));
    for (int64_t r : {2, 3, 4}) wrong += !std::isnan(l.dlogits.get(r, i));
    wrong += l.dlogits.get(6, i) != 0;  // a probability of one
  }
  for (int64_t r : {2, 3, 4}) wrong += !std::isnan(l.value(r));
  for (int64_t r : {5, 7}) wrong += !close(l.value(r), std::log(static_cast<double>(length)), wide(type), 60, 20);
  wrong += l.value(6) != 0;
  KW_EXPECT_EQ(wrong, 0);
}

// A common offset of the logits does not show.
void shifts_cancel(kw::DType type, int64_t length) {
  Loss a(type, 2, length), b(type, 2, length);
  a.options.label_smoothing = b.options.label_smoothing = 0.25;
  a.logits.each([](int64_t r, int64_t i) { return static_cast<double>((i * 31 + r) % 8); });
  b.logits.each([&](int64_t r, int64_t i) { return a.logits.get(r, i) + 128; });
  a.each_row(), b.each_row();
  KW_EXPECT(a.losses.bits() == b.losses.bits() && a.dlogits.bits() == b.dlogits.bits());
}

// S15 (Liger-Kernel#507): small numbers from a report, with and without the optional result.
void a_known_loss() {
  const double x[4][3] = {{-0.1118, .0162, .0956}, {-0.1134, .0088, .1046}, {-0.1737, .1315, .0422}, {-0.0921, .0728, .0194}};
  Loss l(KW_F32, 4, 3);
  l.logits.each([&](int64_t r, int64_t i) { return x[r][i]; });
  for (int64_t r = 0; r < 4; r++) l.target.set(0, r, 0);
  for (bool gradient : {true, false}) {
    l.gradient = gradient;
    KW_EXPECT(std::fabs(l.all_rows(Reduction::mean).loss.get(0, 0) - 1.2258567) < 2e-7);
  }
}

void backward(kw::DType type, int64_t length) {
  for (int64_t ups : {0, 3}) {  // one dloss, or one per row
    Loss l(type, 3, length, 0, length % 2);
    l.target.set(0, 1, -100);
    l.each_row();
    const Array before = l.dlogits;
    Array up(wide(type), {std::max<int64_t>(ups, 1)});
    const double by[] = {2, inf, 1};
    for (int64_t r = 0; r < up.length(); r++) up.set(0, r, by[r]);
    kw::test::with_views(on_cuda, {&up, &l.dlogits}, [&](auto& t) {
      if (!ups) t[0].rank = 0;
      (ups ? kw::cross_entropy_unreduced_backward : kw::cross_entropy_backward)(nullptr, t[0], t[1]);
    });
    KW_EXPECT(l.dlogits.canaries_live());
    int wrong = 0;
    for (int64_t r = 0; r < 3; r++)
      for (int64_t i = 0; i < length; i++) wrong += l.dlogits.get(r, i) != (r == 1 ? 0 : before.get(r, i) * (ups && r == 2 ? 1 : 2));
    KW_EXPECT_EQ(wrong, 0);
  }
}

void empty(kw::DType type) {
  Loss l(type, 0, 7);
  KW_EXPECT(std::isnan(l.all_rows(Reduction::mean).loss.get(0, 0)));
  KW_EXPECT_EQ(l.all_rows(Reduction::sum).loss.get(0, 0), 0.0);
  l.each_row();
}

void refusals() {
  Loss l(KW_F32, 2, 8);
  const auto before = l.dlogits.bytes();
  l.options.label_smoothing = 1.5;
  KW_EXPECT_THROWS(l.each_row(), "cross_entropy_unreduced: label_smoothing");
  l.options.label_smoothing = 0;
  l.target = Array(KW_I64, {3});
  KW_EXPECT_THROWS(l.each_row(), "cross_entropy_unreduced: target");
  l.target = Array(KW_F32, {2});
  KW_EXPECT_THROWS(l.each_row(), "target is f32, but must be i64 or i32");
  l.target = Array(KW_I64, {2}), l.weight = Array(KW_F64, {8}), l.weighted = true;
  KW_EXPECT_THROWS(l.each_row(), "weight is f64, but must be f32");
  KW_EXPECT(l.dlogits.bytes() == before);
}

// Every kernel that may be chosen compiles for old and new GPUs, and a plan fits the GPU that it is for.
void kernels_compile() {
  const kw::Op& op = kw::get_op("cross_entropy");
  for (auto [type, length] : {std::pair(KW_BF16, 4096), {KW_F16, 1001}, {KW_BF16, 128256}, {KW_F32, 128256}, {KW_F64, 50257}})
    for (bool options : {false, true})
      for (const char* name : {"t4", "h200"}) {
        if (options && (type == KW_F16 || *name == 't')) continue;  // 200 ms each
        Loss l(type, 1, 8);
        const int64_t sizes[] = {64, length}, strides[] = {length, 1}, one[] = {1};
        const kw_tensor matrix{l.logits.bytes().data(), sizes, strides, 2, type, KW_CUDA, 0},
            target{l.target.bytes().data(), sizes, one, 1, KW_I64, KW_CUDA, 0},
            weight{l.weight.bytes().data(), sizes + 1, one, 1, wide(type), KW_CUDA, 0},
            loss{l.loss.bytes().data(), nullptr, nullptr, 0, wide(type), KW_CUDA, 0};
        const int64_t parts[] = {256};
        const kw_tensor rows{l.losses.bytes().data(), sizes, one, 1, wide(type), KW_CUDA, 0},
            part{l.losses.bytes().data(), parts, one, 1, wide(type), KW_CUDA, 0};
        const kw_argument inputs[] = {{&matrix, 1}, {&target, 1}, {&weight, options ? 1 : 0}, {nullptr, 0}};
        const kw_argument results[] = {{&loss, 1}, {&matrix, 1}, {&rows, 1}, {&part, 1}};
        const kw_attribute attributes[] = {{.i = -100}, {.f = options * 0.1}, {.f = options * 0.1}, {.f = options * 30.0}, {.i = 0}};
        kw::Bound bound;
        kw::bind_inputs(op, inputs, attributes, bound);
        bound.raw.results = results;
        KW_EXPECT(kw::compile_for(bound, kw::known_gpu(name)) > 1000);
        KW_EXPECT(kw::describe_plan(bound, kw::known_gpu(name)).find("launch 3") != std::string::npos);
      }
}

// On the emulator a kernel takes 0.2 s to compile and a million elements a second: `few` of each are enough there.
void all(bool few, int64_t largest) {
  using Shapes = std::vector<std::pair<int64_t, int64_t>>;
  const Shapes every = {{1, 1}, {3, 2}, {33, 31}, {129, 64}, {2, 1000}, {2, 4096}, {1, 5121}, {1, 32000}, {1, 33000}, {2, 33001}};
  for (kw::DType type : {KW_F32, KW_BF16, KW_F16, KW_F64}) {
    const bool rare = few && (type == KW_F16 || type == KW_F64);
    for (auto [rows, length] : rare ? Shapes{{2, 1000}, {1, 33000}} : few ? Shapes{{33, 31}, {2, 4096}, {1, 33000}, {1, 33001}} : every) {
      if (rows * length > largest) continue;
      formula(type, rows, length);
      if (!few || (type == KW_BF16 && length > 31)) formula(type, rows, length, 3, 1);  // logits and dlogits lie differently
    }
    for (int64_t length : rare ? std::vector<int64_t>{40000} : std::vector<int64_t>{2, 129, 4096, 40000})
      if (5 * length <= 8 * largest) rows_are_independent(type, length);
    for (int64_t length : rare ? std::vector<int64_t>{1000} : std::vector<int64_t>{3, 1000, 33000, 36000}) {  // the last in a ring, for f32
      if (length > largest || (few && length == (type == KW_F32 ? 33000 : 36000))) continue;
      nothing_counts(type, length);
      out_of_range(type, length, KW_I64);
      if (!few || length == 1000) out_of_range(type, length, KW_I32);
      hard_values(type, length);
      shifts_cancel(type, length);
    }
    if (!rare) reductions(type, 7, 300);
    for (int64_t length : {1, 1001}) backward(type, length);
    empty(type);
  }
  reductions(KW_F32, 2500, 3);
  if (!few) reductions(KW_F32, 300000, 2);
  a_known_loss();
  refusals();
}

// The logits once, and one of them again; dlogits once. Every warp reads its row's target, and how many count.
void traffic() {
  using kw::test::expect_traffic;
  const double held = 29 / 32.;  // of the targets that the checker makes up, 3 are to be ignored
  expect_traffic("cross_entropy", "logits=bf16[32,32000] target=i64[32]",
                 {{"logits", held + held / 32000},
                  {"target", 1 + 8},
                  {"parts", 1 + 8 / 256., 1 / 256.},
                  {"losses", 1, 1},
                  {"dlogits", 0, 1 + held / 32000},
                  {"loss", 0, 1}});
  expect_traffic("cross_entropy_unreduced", "logits=f32[32,4096] target=i64[32]",
                 {{"logits", 1 + held / 4096}, {"target", 16}, {"dlogits", 0, 1 + held / 4096}, {"loss", 0, 1}});
  expect_traffic("cross_entropy_backward", "dloss=f32[] dlogits=bf16[3,32000]", {{"dlogits", 1, 1}, {"dloss", 160}});
  expect_traffic("cross_entropy_unreduced_backward", "dloss=f32[3] dlogits=bf16[3,32000]", {{"dlogits", 1, 1}, {"dloss", 64}});
}

}  // namespace

int main() {
  if (const pid_t child = fork(); child == 0) {  // with NVRTC, before this process takes the emulator's
    kernels_compile();
    _exit(kw::test::finish());
  } else {
    int status = 1;
    KW_EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  all(false, int64_t{1} << 40);
  on_cuda = true;
  kw::test::on_device({"inorder", "greedy"}, [](std::string_view where) {
    all(where != "gpu", where == "gpu" ? int64_t{1} << 40 : where == "inorder" ? 36000 : 5000);
  });
  traffic();
  return kw::test::finish();
}
