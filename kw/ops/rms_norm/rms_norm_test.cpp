// Laws and hard cases of RMSNorm, through the typed call: on the CPU, and on the GPU, or the emulator where there is none.
#include "kw/ops/rms_norm/rms_norm.h"

#include <limits>

#include "kw/core/bind.h"
#include "tests/cpp/on_device.h"

namespace {

using kw::test::Array;
using kw::test::close;
bool on_cuda = false;

template <class F>
void run(std::initializer_list<Array*> arrays, F&& f) {
  kw::test::with_views(on_cuda, arrays, f);
}

void forward(Array& x, Array* weight, Array& y, double eps = 1e-6) {
  run({&x, weight, &y}, [&](auto& t) { kw::rms_norm(nullptr, t[0], weight ? &t[1] : nullptr, t[2], eps); });
}
void backward(Array& dy, Array& x, Array* weight, Array& dx, Array* dweight, double eps = 1e-6) {
  Array part(KW_F32, {std::min<int64_t>(x.rows(), 1024), x.length()});
  run({&dy, &x, weight, &dx, dweight, &part}, [&](auto& t) {
    kw::rms_norm_backward(nullptr, t[0], t[1], weight ? &t[2] : nullptr, eps, 0, t[3], weight ? &t[4] : nullptr, weight ? &t[5] : nullptr);
  });
  KW_EXPECT(dx.canaries_live() && part.canaries_live() && (!dweight || dweight->canaries_live()));
}

struct Case {
  kw::DType type, weight_type;
  bool weighted;
  int64_t rows, length, padding = 0, offset = 0;
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
  forward(x, c.weighted ? &weight : nullptr, y);
  backward(dy, x, c.weighted ? &weight : nullptr, dx, c.weighted ? &dweight : nullptr);
  KW_EXPECT(y.canaries_live());
  std::vector<double> sum(static_cast<size_t>(c.length)), size(static_cast<size_t>(c.length));
  int wrong = 0;
  for (int64_t r = 0; r < c.rows; r++) {
    double squares = 0, products = 0, sizes = 0;
    const auto w = [&](int64_t i) { return c.weighted ? weight.get(0, i) : 1; };
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

// Aligned and unaligned rows take different kernels; the bits are the same.
void kernels_agree(kw::DType type, int64_t rows, int64_t length) {
  const auto results = [&](int64_t offset) {
    Array x(type, {rows, length}, offset, offset), dy(type, {rows, length}, offset, offset), y(type, {rows, length}),
        dx(type, {rows, length}), weight(type, {length});
    x.random(1), dy.random(2), weight.random(3);
    Array dweight(type, {length});
    forward(x, &weight, y);
    backward(dy, x, &weight, dx, &dweight);
    return std::pair(y.bits(), dx.bits());
  };
  KW_EXPECT(results(0) == results(1));
}

void laws(kw::DType type, int64_t length) {
  Array x(type, {3, length}), scaled(type, {3, length}), y(type, {3, length}), y2(type, {3, length}), again(type, {3, length});
  x.random(1);
  scaled.each([&](int64_t r, int64_t i) { return 1024 * x.get(r, i); });
  forward(x, nullptr, y, 0);
  forward(scaled, nullptr, y2, 0);
  KW_EXPECT(y.bits() == y2.bits());  // powers of two cancel exactly
  forward(x, nullptr, again, 0);
  KW_EXPECT(y.bits() == again.bits());

  Array flat(type, {1, length}), dx(type, {1, length}), dy(type, {1, length});
  flat.each([](int64_t, int64_t i) { return i % 2 ? -3.0 : 3.0; });
  dy.each([](int64_t, int64_t i) { return i % 2 ? -2.0 : 2.0; });
  Array sign(type, {1, length});
  forward(flat, nullptr, sign, 0);
  for (int64_t i = 0; i < length; i++) KW_EXPECT(std::fabs(sign.get(0, i) - (i % 2 ? -1 : 1)) <= 4 * 0x1p-24);
  backward(dy, flat, nullptr, dx, nullptr, 0);  // dy is along x, whose length does not matter: nothing is left
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
  forward(x, &weight, y, 0);
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

// On any GPU, `part` has a row for each block of the first launch.
void partials_fit_their_scratch() {
  const kw::Op& op = kw::get_op("rms_norm_backward");
  for (int64_t rows : {int64_t{1}, int64_t{5}, int64_t{1023}, int64_t{1 << 20}})
    for (int64_t length : {1, 64, 256, 1000, 4096, 16384, 100000})
      for (int32_t sms : {1, 132, 4000}) {
        Array x(KW_BF16, {1, 8}), weight(KW_BF16, {8});
        const int64_t sizes[] = {rows, length}, strides[] = {length, 1}, one[] = {1};
        const kw_tensor matrix{x.bytes().data(), sizes, strides, 2, KW_BF16, KW_CUDA, 0},
            vector{x.bytes().data(), sizes + 1, one, 1, KW_BF16, KW_CUDA, 0};
        const kw_argument inputs[] = {{&matrix, 1}, {&matrix, 1}, {&vector, 1}};
        const kw_argument results[] = {{&matrix, 1}, {&vector, 1}, {&matrix, 1}};
        const kw_attribute eps{.f = 1e-6};
        kw::Bound bound;
        kw::bind_inputs(op, inputs, &eps, bound);
        bound.raw.results = results;
        kw_device_facts gpu{};
        gpu.arch = 90, gpu.sm_count = sms;
        const kw_problem problem{&op.signature, bound.dims, bound.dtypes, &eps, bound.present, 16, 7};
        kw_choice choice{};
        kw_plan plan{};
        kw_message message{};
        KW_EXPECT_EQ(op.def->choose(&problem, &gpu, &choice, &message), 0);
        KW_EXPECT_EQ(op.def->fill(&bound.raw, &gpu, &choice, &plan, &message), 0);
        KW_EXPECT(plan.launch_count == 2 && plan.launches[0].grid[0] <= bound.results[2].sizes[0] && plan.launches[0].grid[0] >= 1);
      }
}

void refusals() {
  Array x(KW_F32, {2, 8}), y(KW_F32, {2, 8}), weight(KW_F32, {7}), half(KW_BF16, {8});
  x.random(1);
  const auto before = y.bytes();
  KW_EXPECT_THROWS(forward(x, &weight, y), "rms_norm: weight");
  KW_EXPECT_THROWS(forward(x, &half, y), "weight");
  KW_EXPECT_THROWS(forward(x, nullptr, y, -1), "eps");
  KW_EXPECT(y.bytes() == before);
}

void all(int64_t largest) {
  const int64_t shapes[][2] = {{1, 1},     {3, 1},     {2, 2},     {5, 7},     {33, 31},    {129, 64},  {2, 127},  {9, 256},  {40, 257},
                               {3, 1000},  {2, 1024},  {3, 2047},  {2, 4095},  {2, 4096},   {2, 4097},  {1, 5120}, {1, 8192}, {1, 8193},
                               {1, 14336}, {2, 16384}, {1, 16389}, {1, 32768}, {40, 33000}, {1, 70000}, {2, 70001}};
  const int64_t loops[][2] = {{9, 1024}, {40, 1024}, {25, 2048}, {9, 8192}, {2, 16384}};  // over rows, on the emulator's 4 multiprocessors
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
  agrees_with_the_formula({KW_F32, KW_F32, true, 3000, 12});
  agrees_with_the_formula({KW_BF16, KW_BF16, true, 1030, 40});
  partials_fit_their_scratch();
  refusals();
}

}  // namespace

int main() {
  all(int64_t{1} << 40);
  on_cuda = true;
  kw::test::on_device({"inorder", "greedy"}, [](std::string_view where) {
    all(where == "gpu" ? int64_t{1} << 40 : where == "inorder" ? 100000 : 10000);  // elements: the emulator takes its time
  });
  return kw::test::finish();
}
