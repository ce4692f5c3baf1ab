// The vector words against double, on every instruction set of this machine.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "testing/expect.h"

#define KW_ISA_FILE "tests/cpp/cpu_vector_test.inc"
#include "kw/cpu/each_isa.inc"

using namespace kw::cpu;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t u) { return std::bit_cast<float>(u); }

// Distance from the true value in units of the last place of an f32 of that size.
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  if (std::abs(want) >= 0x1.ffffffp127) return got == (want > 0 ? inf : -inf) ? 0 : 1e30;  // rounds to infinity
  if (std::isinf(got) || std::isnan(got)) return 1e30;
  double unit = std::ldexp(1.0, std::max(std::ilogb(want == 0 ? 1e-60 : want), -126) - 23);
  return std::abs(got - want) / unit;
}

std::vector<float> every_kind_of_float() {
  std::vector<float> x = {0.f,        -0.f,       inf,    -inf,        nan,       -nan,   from_bits(0x7f800001),
                          1.f,        -1.f,       88.f,   88.72283f,   88.72284f, 89.f,   90.f,
                          -87.33654f, -87.33655f, -103.f, -103.97208f, -103.98f,  -104.f, -105.f,
                          1e38f,      -1e38f,     1e-45f, -1e-45f};
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 2003) x.push_back(from_bits(static_cast<uint32_t>(u)));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> where(-110, 95);
  for (int i = 0; i < 2000000; i++) x.push_back(where(random));
  return x;
}

double true_sigmoid(double x) {
  double small = std::exp(-std::abs(x));
  return (x < 0 ? small : 1) / (1 + small);
}

void exponentials(const std::vector<float>& x) {
  auto n = static_cast<int64_t>(x.size());
  std::vector<float> y(n), s(n), rest(n);
  KW_FOR_ISA(words::exps)(x.data(), y.data(), n);
  KW_FOR_ISA(words::sigmoids)(x.data(), s.data(), rest.data(), n);
  double worst_exp = 0, worst_sigmoid = 0;
  for (int64_t i = 0; i < n; i++) {
    worst_exp = std::max(worst_exp, ulps(y[i], std::exp(static_cast<double>(x[i]))));
    worst_sigmoid = std::max({worst_sigmoid, ulps(s[i], true_sigmoid(x[i])), ulps(rest[i], true_sigmoid(-static_cast<double>(x[i])))});
  }
  KW_EXPECT(worst_exp <= 1);
  KW_EXPECT(worst_sigmoid <= 3);
  std::cout << kw::isa_name(kw::isa()) << ": exp within " << worst_exp << " ulp, sigmoid within " << worst_sigmoid << " ulp\n";
}

// Nearest bf16, ties to even: by comparing with both neighbours in double.
uint16_t nearest_bf16(float x) {
  uint16_t down = static_cast<uint16_t>(bits(x) >> 16), up = static_cast<uint16_t>(down + 1);  // towards zero, away from it
  double a = std::abs(static_cast<double>(from_bits(uint32_t{down} << 16))), v = std::abs(static_cast<double>(x));
  double b = (up & 0x7fff) == 0x7f80 ? 0x1p128 : std::abs(static_cast<double>(from_bits(uint32_t{up} << 16)));
  if (v - a != b - v) return v - a < b - v ? down : up;
  return down & 1 ? up : down;
}

void conversions(const std::vector<float>& x) {
  std::vector<bf16> all(65536), narrow(x.size());
  std::vector<float> wide(65536);
  for (int i = 0; i < 65536; i++) all[i].bits = static_cast<uint16_t>(i);
  KW_FOR_ISA(words::widen)(all.data(), wide.data(), 65536);
  bool exact = true;
  for (uint32_t i = 0; i < 65536; i++) exact = exact && bits(wide[i]) == i << 16;
  KW_EXPECT(exact);
  KW_FOR_ISA(words::narrow)(wide.data(), all.data(), 65536);
  int changed = 0;
  for (int i = 0; i < 65536; i++) {
    bool is_nan = (i & 0x7fff) > 0x7f80;
    if (is_nan ? (all[i].bits & 0x7fff) <= 0x7f80 : all[i].bits != i) changed++;
  }
  KW_EXPECT_EQ(changed, 0);
  KW_FOR_ISA(words::narrow)(x.data(), narrow.data(), static_cast<int64_t>(x.size()));
  int wrong = 0;
  for (size_t i = 0; i < x.size(); i++) {
    bool ok = std::isnan(x[i])   ? (narrow[i].bits & 0x7fff) > 0x7f80
              : std::isinf(x[i]) ? narrow[i].bits == bits(x[i]) >> 16
                                 : narrow[i].bits == nearest_bf16(x[i]);
    if (!ok) wrong++;
  }
  KW_EXPECT_EQ(wrong, 0);
}

void sums() {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> where(0.5f, 1.5f);
  double worst = 0;
  for (int64_t n : {1, 15, 16, 17, 31, 32, 33, 48, 1023, 1024, 1025, 1040, 4095, 4097, 70000, 1000000}) {
    std::vector<float> x(n);
    double want = 0;
    for (float& v : x) {
      v = where(random);
      want += static_cast<double>(v) * v;
    }
    double got = KW_FOR_ISA(words::squares)(x.data(), n);
    worst = std::max(worst, std::abs(got - want) / want);
  }
  KW_EXPECT(worst < 3e-7);
  std::cout << kw::isa_name(kw::isa()) << ": sums within " << worst << '\n';
}

template <class F>
auto on_every_isa(F&& f) {
  std::vector<decltype(f())> results;
  for (kw::Isa isa : {kw::Isa::baseline, kw::Isa::avx2, kw::Isa::avx512})
    if (kw::has_isa(isa)) {
      kw::set_isa(isa);
      results.push_back(f());
    }
  return results;
}

void same_bits_everywhere(const std::vector<float>& x) {
  auto n = static_cast<int64_t>(x.size());
  auto results = on_every_isa([&] {
    std::vector<float> y(3 * n);
    KW_FOR_ISA(words::exps)(x.data(), y.data(), n);
    KW_FOR_ISA(words::sigmoids)(x.data(), y.data() + n, y.data() + 2 * n, n);
    std::vector<uint32_t> out;
    for (float v : y) out.push_back(std::isnan(v) ? 0x7fc00000 : bits(v));
    return out;
  });
  for (auto& r : results) KW_EXPECT(r == results[0]);
}

}  // namespace

int main() {
  setenv("KW_CPU_ISA", "neon", 1);
  KW_EXPECT_THROWS(kw::isa(), "KW_CPU_ISA is 'neon', but can be baseline, avx2 or avx512");
  setenv("KW_CPU_ISA", "baseline", 1);
  KW_EXPECT(kw::isa() == kw::Isa::baseline);

  std::vector<float> x = every_kind_of_float();
  on_every_isa([&] {
    exponentials(x);
    conversions(x);
    sums();
    return 0;
  });
  same_bits_everywhere(x);
  return kw::test::finish();
}
