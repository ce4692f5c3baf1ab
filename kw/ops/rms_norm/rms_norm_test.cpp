// Laws and hard cases of RMSNorm, through the typed call: on the CPU, and on the GPU, or the emulator where there is none.
#include "kw/ops/rms_norm/rms_norm.h"

#include <limits>

#include "kw/core/bind.h"
#include "kw/runtime/device.h"
#include "tests/cpp/access.h"
#include "tests/cpp/on_device.h"

namespace {

using kw::test::Array;
using kw::test::close;
using Rounding = kw::RmsNormRounding;
bool on_cuda = false;

template <class F>
void run(std::initializer_list<Array*> arrays, F&& f) {
  kw::test::with_views(on_cuda, arrays, f);
}

struct Attributes {
  double eps = 1e-6, offset = 0;
  Rounding rounding = Rounding::once;
};

void forward(Array& x, Array* weight, Array& y, const Attributes& a = {}) {
  run({&x, weight, &y}, [&](auto& t) { kw::rms_norm(nullptr, t[0], weight ? &t[1] : nullptr, t[2], a.eps, a.offset, a.rounding); });
  KW_EXPECT(y.canaries_live());
}
void add_forward(Array& x, Array& residual, Array* weight, Array& y, Array& total, const Attributes& a = {}) {
  run({&x, &residual, weight, &y, &total},
      [&](auto& t) { kw::add_rms_norm(nullptr, t[0], t[1], weight ? &t[2] : nullptr, t[3], t[4], a.eps, a.offset, a.rounding); });
  KW_EXPECT(y.canaries_live() && total.canaries_live());
}
// With dtotal: after add_forward.
void backward(Array& dy, Array* dtotal, Array& x, Array* weight, Array& dx, Array* dweight, const Attributes& a = {}) {
  Array part(x.dtype() == KW_F64 ? KW_F64 : KW_F32, {std::min<int64_t>(x.rows(), 1024), x.length()});
  run({&dy, dtotal, &x, weight, &dx, dweight, &part}, [&](auto& t) {
    const kw_tensor *w = weight ? &t[3] : nullptr, *dw = weight ? &t[5] : nullptr, *shares = weight ? &t[6] : nullptr;
    if (dtotal)
      kw::add_rms_norm_backward(nullptr, t[0], t[1], t[2], w, a.eps, a.offset, t[4], dw, shares);
    else
      kw::rms_norm_backward(nullptr, t[0], t[2], w, a.eps, a.offset, t[4], dw, shares);
  });
  KW_EXPECT(dx.canaries_live() && part.canaries_live() && (!dweight || dweight->canaries_live()));
}
void backward(Array& dy, Array& x, Array* weight, Array& dx, Array* dweight, const Attributes& a = {}) {
  backward(dy, nullptr, x, weight, dx, dweight, a);
}

struct Case {
  kw::DType type, weight_type;
  bool weighted;
  int64_t rows, length, padding = 0, offset = 0;
  double gain = 0;  // the op's offset
  Array array(int64_t extra = 0) const { return Array(type, {rows, length}, padding + extra, offset); }
};
std::string text(const Case& c) {
  return kw::format("%s: %s[%lld,%lld] padding %lld offset %lld weight %s", on_cuda ? "cuda" : "cpu", kw::dtype_name(c.type),
                    static_cast<long long>(c.rows), static_cast<long long>(c.length), static_cast<long long>(c.padding),
                    static_cast<long long>(c.offset), c.weighted ? kw::dtype_name(c.weight_type) : "none");
}

void agrees_with_the_formula(const Case& c) {
  Array x = c.array(), dy = c.array(1), y = c.array(2), dx = c.array(), weight(c.weight_type, {c.length}, 0, c.offset),
        dweight(c.weight_type, {c.length}, 0, c.offset);
  x.random(1, 0.3), dy.random(2), weight.random(3, 1);
  const Attributes a{1e-6, c.gain};
  forward(x, c.weighted ? &weight : nullptr, y, a);
  backward(dy, x, c.weighted ? &weight : nullptr, dx, c.weighted ? &dweight : nullptr, a);
  std::vector<double> sum(static_cast<size_t>(c.length)), size(static_cast<size_t>(c.length));
  int wrong = 0;
  for (int64_t r = 0; r < c.rows; r++) {
    double squares = 0, products = 0, sizes = 0;
    const auto w = [&](int64_t i) { return (c.weighted ? weight.get(0, i) : 1) + c.gain; };
    for (int64_t i = 0; i < c.length; i++) {
      squares += x.get(r, i) * x.get(r, i);
      products += x.get(r, i) * dy.get(r, i) * w(i);
      sizes += std::fabs(x.get(r, i) * dy.get(r, i) * w(i));
    }
    const double n = static_cast<double>(c.length), scale = 1 / std::sqrt(squares / n + 1e-6);
    for (int64_t i = 0; i < c.length; i++) {
      const double a = x.get(r, i) * scale, g = dy.get(r, i) * w(i) * scale, mean = a * scale * scale * products / n;
      wrong += !close(y.get(r, i), a * w(i), c.type, 40, std::fabs(a * w(i)));
      wrong += !close(dx.get(r, i), g - mean, c.type, 80, std::fabs(g) + std::fabs(a) * scale * scale * sizes / n);
      sum[static_cast<size_t>(i)] += dy.get(r, i) * a, size[static_cast<size_t>(i)] += std::fabs(dy.get(r, i) * a);
    }
  }
  for (int64_t i = 0; c.weighted && i < c.length; i++)
    wrong += !close(dweight.get(0, i), sum[static_cast<size_t>(i)], c.weight_type, 40, size[static_cast<size_t>(i)]);
  if (!KW_EXPECT_EQ(wrong, 0)) std::cerr << "  " << text(c) << '\n';
}

// A row has the bits that it has alone, at another address and at another stride; and so has its gradient.
void rows_are_independent(kw::DType type, int64_t length) {
  Array many(type, {5, length}, 3, 1), dy(type, {5, length}, 2), y(type, {5, length}), dx(type, {5, length});
  Array one(type, {1, length}), one_dy(type, {1, length}, 0, 1), one_y(type, {1, length}), one_dx(type, {1, length}),
      weight(type, {length});
  many.random(1), dy.random(2), weight.random(3);
  forward(many, &weight, y);
  backward(dy, many, nullptr, dx, nullptr);
  for (int64_t r : {0, 4}) {
    one.each([&](int64_t, int64_t i) { return many.get(r, i); });
    one_dy.each([&](int64_t, int64_t i) { return dy.get(r, i); });
    forward(one, &weight, one_y);
    backward(one_dy, one, nullptr, one_dx, nullptr);
    KW_EXPECT(one_y.bits() == y.row_bits(r));
    KW_EXPECT(one_dx.bits() == dx.row_bits(r));
  }
}

// Aligned and unaligned rows take different kernels (in registers, in shared memory, over a cluster, read twice); the bits are the same.
void kernels_agree(kw::DType type, int64_t rows, int64_t length) {
  const auto results = [&](int64_t offset) {
    const auto array = [&] { return Array(type, {rows, length}, offset, offset); };
    Array x = array(), residual = array(), dy = array(), dtotal = array();
    Array y(type, {rows, length}), total(type, {rows, length}), dx(type, {rows, length}), weight(type, {length}), dweight(type, {length});
    x.random(1), residual.random(2), weight.random(3), dy.random(4), dtotal.random(5);
    std::string bits;
    forward(x, &weight, y);
    backward(dy, x, &weight, dx, &dweight);
    bits += y.bits() + dx.bits();
    add_forward(x, residual, &weight, y, total);
    backward(dy, &dtotal, x, &weight, dx, &dweight);
    return bits + y.bits() + total.bits() + dx.bits();
  };
  if (!KW_EXPECT(results(0) == results(1))) std::cerr << "  " << kw::dtype_name(type) << ' ' << rows << " x " << length << '\n';
}

// add_rms_norm is an addition, rounded, and rms_norm; and its gradient is that of both.
void adding_is_composition(kw::DType type, int64_t rows, int64_t length, const Attributes& a) {
  const auto array = [&] { return Array(type, {rows, length}); };
  Array x = array(), residual = array(), sum = array(), y = array(), total = array(), want = array(), weight(type, {length});
  x.random(1), residual.random(2, 0.5), weight.random(3, 1);
  sum.each([&](int64_t r, int64_t i) { return x.get(r, i) + residual.get(r, i); });
  add_forward(x, residual, &weight, y, total, a);
  forward(sum, &weight, want, a);
  KW_EXPECT(total.bits() == sum.bits());
  KW_EXPECT(y.bits() == want.bits());

  Array dy = array(), dtotal = array(), dx = array(), without = array(), dweight(type, {length}), same(type, {length});
  dy.random(4), dtotal.random(5);
  backward(dy, &dtotal, total, &weight, dx, &dweight, a);
  backward(dy, total, &weight, without, &same, a);
  KW_EXPECT(dweight.bits() == same.bits());
  int wrong = 0;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < length; i++) {
      const double plain = without.get(r, i), slack = type == KW_BF16 ? 0x1p-8 : type == KW_F16 ? 0x1p-11 : 0x1p-24;  // plain was rounded
      wrong += std::fabs(dx.get(r, i) - plain - dtotal.get(r, i)) > 1.01 * slack * (2 * std::fabs(plain) + std::fabs(dtotal.get(r, i)));
    }
  KW_EXPECT_EQ(wrong, 0);
  dtotal.each([](int64_t, int64_t) { return 0; });
  backward(dy, &dtotal, total, &weight, dx, &dweight, a);
  KW_EXPECT(dx.bits() == without.bits());
}

// N18 (vllm-project/vllm#42379): where an intermediate is rounded differs between models; each convention to the bit.
void roundings_are_as_said(kw::DType type, int64_t length) {
  Array x(type, {3, length}), normal(type, {3, length}), y(type, {3, length}), want(type, {3, length}), weight(type, {length});
  x.random(1), weight.random(2, 4);
  forward(x, nullptr, normal);
  want.each([&](int64_t r, int64_t i) {
    const double a = normal.get(r, i), b = weight.get(0, i);
    return type == KW_F64 ? a * (b + 0.5) : static_cast<float>(a) * (static_cast<float>(b) + 0.5F);
  });
  forward(x, &weight, y, {1e-6, 0.5, Rounding::before_weight});
  KW_EXPECT(y.bits() == want.bits());
  forward(x, &weight, y, {1e-6, 0.5, Rounding::once});
  KW_EXPECT((y.bits() == want.bits()) == (type == KW_F32 || type == KW_F64));
}

// N08 (pytorch/pytorch#69208) and Gemma's convention: no weight is a weight of ones, and an offset is part of the weight.
void offsets_are_part_of_the_weight(kw::DType type, int64_t length) {
  const auto array = [&] { return Array(type, {3, length}); };
  Array x = array(), dy = array(), y = array(), dx = array(), y2 = array(), dx2 = array();
  Array weight(type, {length}), sum(type, {length}), dweight(type, {length}), dsum(type, {length});
  x.random(1), dy.random(2);
  weight.each([](int64_t, int64_t i) { return static_cast<double>(i % 17 - 8) / 8; });  // N20 (ServiceNow/Fast-LLM#220): zeros among them
  sum.each([&](int64_t, int64_t i) { return weight.get(0, i) + 1; });
  forward(x, &weight, y, {.offset = 1});
  forward(x, &sum, y2);
  backward(dy, x, &weight, dx, &dweight, {.offset = 1});
  backward(dy, x, &sum, dx2, &dsum);
  KW_EXPECT(y.bits() == y2.bits() && dx.bits() == dx2.bits() && dweight.bits() == dsum.bits());
  sum.each([](int64_t, int64_t) { return 1; });
  forward(x, &sum, y), forward(x, nullptr, y2);
  backward(dy, x, &sum, dx, &dweight), backward(dy, x, nullptr, dx2, nullptr);
  KW_EXPECT(y.bits() == y2.bits() && dx.bits() == dx2.bits());
}

void laws(kw::DType type, int64_t length) {
  Array x(type, {3, length}), scaled(type, {3, length}), y(type, {3, length}), y2(type, {3, length}), again(type, {3, length});
  x.random(1);
  scaled.each([&](int64_t r, int64_t i) { return 1024 * x.get(r, i); });
  forward(x, nullptr, y, {.eps = 0});
  forward(scaled, nullptr, y2, {.eps = 0});
  KW_EXPECT(y.bits() == y2.bits());  // powers of two cancel exactly
  forward(x, nullptr, again, {.eps = 0});
  KW_EXPECT(y.bits() == again.bits());

  Array flat(type, {1, length}), dx(type, {1, length}), dy(type, {1, length});
  flat.each([](int64_t, int64_t i) { return i % 2 ? -3.0 : 3.0; });
  dy.each([](int64_t, int64_t i) { return i % 2 ? -2.0 : 2.0; });
  Array sign(type, {1, length});
  forward(flat, nullptr, sign, {.eps = 0});
  for (int64_t i = 0; i < length; i++) KW_EXPECT(std::fabs(sign.get(0, i) - (i % 2 ? -1 : 1)) <= 4 * 0x1p-24);
  backward(dy, flat, nullptr, dx, nullptr, {.eps = 0});  // dy is along x, whose length does not matter: nothing is left
  for (int64_t i = 0; i < length; i++) KW_EXPECT(std::fabs(dx.get(0, i)) <= 8 * 0x1p-24);
}

void hard_values(kw::DType type, int64_t length) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Array x(type, {6, length}), dy(type, {6, length}), y(type, {6, length}), dx(type, {6, length}), weight(type, {length}),
      dweight(type, {length});
  const int64_t at = length / 2;
  x.random(1), dy.random(2), weight.random(3);
  x.set(1, at, nan);
  x.set(2, at, -inf);
  for (int64_t i = 0; i < length; i++) x.set(3, i, 1e30), x.set(4, i, 0), x.set(5, i, 1e-30);
  forward(x, &weight, y);
  backward(dy, x, &weight, dx, &dweight);
  int wrong = 0;
  for (int64_t i = 0; i < length; i++) {
    wrong += !std::isfinite(y.get(0, i)) || !std::isfinite(dx.get(0, i));
    wrong += !std::isnan(y.get(1, i)) || !std::isnan(dx.get(1, i));
    wrong += i == at ? !std::isnan(y.get(2, i)) : y.get(2, i) != 0;
    wrong += y.get(3, i) != 0;  // its squares overflow f32
    wrong += y.get(4, i) != 0;
    wrong += std::fabs(y.get(5, i)) > 1e-25;         // eps rules
    wrong += std::isnan(dweight.get(0, i)) != true;  // NaN and infinite rows reach every column
  }
  KW_EXPECT_EQ(wrong, 0);
  forward(x, &weight, y, {.eps = 0});
  KW_EXPECT(std::isnan(y.get(4, 0)));  // 0 / 0
}

void empty(kw::DType type) {
  Array x(type, {0, 7}), y(type, {0, 7}), dx(type, {0, 7}), weight(type, {7}), dweight(type, {7});
  weight.random(1), dweight.random(2);
  forward(x, &weight, y);
  backward(x, x, &weight, dx, &dweight);
  for (int64_t i = 0; i < 7; i++) KW_EXPECT_EQ(dweight.get(0, i), 0.0);  // a sum over no rows
  Array narrow(type, {3, 0}), to(type, {3, 0});
  forward(narrow, nullptr, to);
}

// On any GPU and for any row, what is chosen can be launched there, and `part` has a row for each team of the first launch.
void plan_fits(const kw::Op& op, const kw_device_facts& gpu, kw::DType type, int64_t rows, int64_t length, int32_t alignment) {
  Array memory(type, {1, 2});
  const int64_t sizes[] = {rows, length}, strides[] = {length, 1};
  const kw_tensor matrix{memory.bytes().data(), sizes, strides, 2, type, KW_CUDA, 0};
  const kw_tensor vector{memory.bytes().data(), sizes + 1, strides + 1, 1, type, KW_CUDA, 0};
  const int32_t matrices =
      op.contract.name.starts_with("add") ? (op.contract.attributes.size() == 2 ? 3 : 2) : (op.contract.attributes.size() == 2 ? 2 : 1);
  kw_argument inputs[4] = {}, results[3] = {{&matrix, 1}, {&vector, 1}, {&matrix, 1}};
  for (int32_t i = 0; i <= matrices; i++) inputs[i] = {i < matrices ? &matrix : &vector, 1};
  if (op.contract.attributes.size() == 3) results[1] = {&matrix, 1};
  const kw_attribute attributes[] = {{.f = 1e-6}, {.f = 0}, {.i = 0}};
  kw::Bound bound;
  kw::bind_inputs(op, inputs, attributes, bound);
  bound.raw.results = results;
  const kw_problem problem{&op.signature, bound.dims, bound.dtypes, attributes, bound.present, alignment, 7};
  kw_choice choice{};
  kw_plan plan{};
  kw_message message{};
  KW_EXPECT_EQ(op.def->choose(&problem, &gpu, &choice, &message), 0);
  KW_EXPECT_EQ(op.def->fill(&bound.raw, &gpu, &choice, &plan, &message), 0);
  bool ok = plan.launch_count == (op.contract.attributes.size() == 2 ? 2 : 1);
  for (int32_t i = 0; i < plan.launch_count; i++) {
    const kw_launch& l = plan.launches[i];
    const uint32_t cluster = std::max(l.cluster, 1U);
    ok = ok && l.grid[0] >= 1 && l.grid[0] % cluster == 0 && l.block[0] % 32 == 0 && l.block[0] <= 1024;
    ok = ok && l.shared_bytes <= static_cast<uint32_t>(gpu.shared_per_block) && (cluster == 1 || (gpu.arch >= 90 && cluster <= 16));
  }
  if (op.contract.attributes.size() == 2)
    ok = ok && plan.launches[0].grid[0] / std::max(plan.launches[0].cluster, 1U) <= bound.results[2].sizes[0];
  if (!KW_EXPECT(ok)) std::cerr << "  " << op.contract.name << ' ' << gpu.name << ' ' << choice.kernels[0].name << '\n';
}
void plans_fit() {
  std::vector<kw_device_facts> gpus;
  for (const kw::KnownGpu& known : kw::known_gpus()) gpus.push_back(known.facts);
  for (int32_t sms : {1, 4000}) gpus.push_back(kw::facts_of_arch("sm_90")), gpus.back().sm_count = sms;
  for (const char* name : {"rms_norm", "rms_norm_backward", "add_rms_norm", "add_rms_norm_backward"})
    for (const kw_device_facts& gpu : gpus)
      for (kw::DType type : {KW_F16, KW_BF16, KW_F32, KW_F64})
        for (int64_t length : {1, 64, 1000, 4096, 16384, 32768, 40000, 65536, 100000, 151936, 262144, 524288})
          for (int64_t rows : {1, 1023, 1 << 20})
            for (int32_t alignment : {16, 2}) plan_fits(kw::get_op(name), gpu, type, rows, length, alignment);
}

void refusals() {
  Array x(KW_F32, {2, 8}), y(KW_F32, {2, 8}), weight(KW_F32, {7}), half(KW_BF16, {8});
  x.random(1);
  const auto before = y.bytes();
  KW_EXPECT_THROWS(forward(x, &weight, y), "rms_norm: weight");
  KW_EXPECT_THROWS(forward(x, &half, y), "weight");
  KW_EXPECT_THROWS(forward(x, nullptr, y, {.eps = -1}), "eps");
  KW_EXPECT(y.bytes() == before);
}

void all(int64_t largest) {
  const int64_t shapes[][2] = {{1, 1},     {3, 1},     {2, 2},     {5, 7},      {33, 31},   {129, 64}, {9, 256},  {40, 257},
                               {3, 1000},  {2, 1024},  {3, 2047},  {2, 4096},   {2, 4097},  {1, 5120}, {1, 8192}, {1, 14336},
                               {2, 16384}, {1, 16389}, {1, 32768}, {40, 33000}, {1, 70000}, {2, 70001}};
  const int64_t loops[][2] = {{9, 1024}, {40, 1024}, {25, 2048}, {9, 8192}, {2, 16384}};  // over rows, on the emulator's 4 multiprocessors
  // Of every type: in registers, in a ring, over a cluster (read twice where it is not aligned).
  const int64_t few[][2] = {{5, 33}, {3, 2056}, {2, 34000}};
  for (kw::DType type : {KW_F32, KW_BF16}) {
    for (auto [rows, length] : shapes) {
      if (rows * length > largest) continue;
      agrees_with_the_formula({type, type, true, rows, length});
      agrees_with_the_formula({type, type, false, rows, length, 1, 3});
      if (type == KW_BF16) agrees_with_the_formula({type, KW_F32, true, rows, length, 4});
    }
    for (int64_t length : {1, 129, 4096, 4097, 16640, 40000}) rows_are_independent(type, length);
    for (auto [rows, length] : loops) {
      if (rows * length > largest) continue;
      agrees_with_the_formula({type, type, true, rows, length});
      kernels_agree(type, rows, length);
    }
    for (int64_t length : {1, 100, 4096}) laws(type, length);
    for (int64_t length : {3, 1000, 40000}) hard_values(type, length);
    empty(type);
  }
  for (kw::DType type : {KW_F16, KW_BF16, KW_F32, KW_F64}) {
    for (auto [rows, length] : few) {
      if (rows * length > largest) continue;
      const bool others = type == KW_F16 || type == KW_F64, first = length == few[0][1];  // a kernel costs half a second to compile
      if (others || first) agrees_with_the_formula({type, type, true, rows, length, 0, 0, 1});
      if (others) agrees_with_the_formula({type, KW_F32, true, rows, length, 1, 3});
      if (!first) kernels_agree(type, rows, length);
      adding_is_composition(type, rows, length, {1e-6, 0.25, first ? Rounding::before_weight : Rounding::once});
    }
    roundings_are_as_said(type, 100), offsets_are_part_of_the_weight(type, 33);
  }
  agrees_with_the_formula({KW_F32, KW_F32, true, 3000, 12});
  agrees_with_the_formula({KW_BF16, KW_BF16, true, 1030, 40});
  refusals();
}

// Tensors once; the weight once a row, or in the backward once for each team of blocks; a team's sums out and in again.
void traffic() {
  using kw::test::expect_traffic;
  expect_traffic("rms_norm", "x=bf16[6,4096] weight=bf16[4096]", {{"x", 1}, {"weight", 6}, {"y", 0, 1}});
  expect_traffic("rms_norm", "x=f32[3,32768] weight=f32[32768]", {{"x", 1}, {"weight", 1}, {"y", 0, 1}});  // forward_ring
  expect_traffic("rms_norm", "x=f64[2,500000]", {{"x", 2}, {"y", 0, 1}});                                  // forward_long
  expect_traffic("add_rms_norm", "x=bf16[6,4096] residual=bf16[6,4096] weight=bf16[4096]",
                 {{"x", 1}, {"residual", 1}, {"weight", 6}, {"y", 0, 1}, {"total", 0, 1}});
  // A vector of the sums is two or more pieces of 16 bytes side by side: each store of part half fills its sectors. They are 1 part of 100.
  const std::vector<std::string> halves = {"global store at kw/ops/rms_norm/rms_norm_backward_"};
  expect_traffic("rms_norm_backward", "dy=bf16[12,4096] x=bf16[12,4096] weight=bf16[4096]",
                 {{"dy", 1}, {"x", 1}, {"weight", 4}, {"dx", 0, 1}, {"part", 4 / 12., 4 / 12.}, {"dweight", 0, 1}}, halves);
  expect_traffic("add_rms_norm_backward", "dy=bf16[12,4096] dtotal=bf16[12,4096] total=bf16[12,4096]",
                 {{"dy", 1}, {"dtotal", 1}, {"total", 1}, {"dx", 0, 1}});
  expect_traffic("rms_norm_backward", "dy=f64[5,200000] x=f64[5,200000] weight=f64[200000]",  // backward_long
                 {{"dy", 2}, {"x", 2}, {"weight", 5 + 4}, {"dx", 0, 1}, {"part", 4 / 5., 4 / 5.}, {"dweight", 0, 1}});
  // Groups of one block give their sums on element by element, 16 bytes apart: once a launch.
  expect_traffic("rms_norm_backward", "dy=f32[12,256] x=f32[12,256] weight=f32[256]",  // backward
                 {{"dy", 1}, {"x", 1}, {"weight", 12 * 2}, {"dx", 0, 1}, {"part", 3 / 12., 3 / 12.}, {"dweight", 0, 1}},
                 {"shared load at kw/ops/rms_norm/rms_norm_backward.cuh"});
}

}  // namespace

int main() {
  plans_fit();
  all(int64_t{1} << 40);
  on_cuda = true;
  kw::test::on_device({"inorder", "greedy"}, [](std::string_view where) {
    all(where == "gpu" ? int64_t{1} << 40 : where == "inorder" ? 100000 : 10000);  // elements: the emulator takes its time
  });
  traffic();
  return kw::test::finish();
}
