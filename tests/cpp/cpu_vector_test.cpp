// Packs from and to memory and their sums, on every instruction set of this machine.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "testing/expect.h"
#include "testing/numbers.h"
#include "tests/cpp/cpu_isas.h"

#define KW_ISA_FILE "tests/cpp/cpu_vector_test.inc"
#include "kw/cpu/each_isa.inc"

using namespace kw::cpu;
using kw::test::on_every_isa;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t u) { return std::bit_cast<float>(u); }

// Every 2003rd float, the neighbourhood of every number of T and of every tie between two.
template <class T>
std::vector<float> hard_floats() {
  std::vector<float> x = {0.f, -0.f, inf, -inf, nan, -nan, from_bits(0x7f800001), from_bits(0xff800001), from_bits(0x7fc12345)};
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 2003) x.push_back(from_bits(static_cast<uint32_t>(u)));
  for (uint32_t h = 0; h < 65535; h++) {
    uint16_t a = static_cast<uint16_t>(h), b = static_cast<uint16_t>(h + 1);
    double low = kw::test::load_number(dtype_of<T>, &a), high = kw::test::load_number(dtype_of<T>, &b);
    if (std::isinf(high)) high = std::copysign(kw::test::overflow_from(dtype_of<T>), low) * 2 - low;
    for (double v : {low, (low + high) / 2}) {
      float f = static_cast<float>(v);
      x.insert(x.end(), {f, std::nextafterf(f, inf), std::nextafterf(f, -inf)});
    }
  }
  return x;
}

template <class T>
bool is_nan(uint16_t h) {
  return std::isnan(kw::test::load_number(dtype_of<T>, &h));
}

// Against conversions that were written apart (testing/numbers.h).
template <class T>
void conversions(const std::vector<float>& x) {
  std::vector<T> all(65536), narrow(x.size());
  std::vector<float> wide(65536);
  for (int i = 0; i < 65536; i++) all[i].bits = static_cast<uint16_t>(i);
  KW_FOR_ISA(words::widen<T>)(all.data(), wide.data(), 65536);
  int inexact = 0;
  for (int i = 0; i < 65536; i++) {
    double want = kw::test::load_number(dtype_of<T>, &all[i]);
    bool same = std::isnan(want) ? std::isnan(wide[i]) : bits(wide[i]) == bits(static_cast<float>(want));
    if (!same || std::signbit(wide[i]) != (i >> 15)) inexact++;
  }
  KW_EXPECT_EQ(inexact, 0);
  KW_FOR_ISA(words::narrow<T>)(wide.data(), all.data(), 65536);
  int changed = 0;
  for (int i = 0; i < 65536; i++)
    if (is_nan<T>(static_cast<uint16_t>(i)) ? !is_nan<T>(all[i].bits) : all[i].bits != i) changed++;
  KW_EXPECT_EQ(changed, 0);
  KW_FOR_ISA(words::narrow<T>)(x.data(), narrow.data(), static_cast<int64_t>(x.size()));
  int wrong = 0;
  for (size_t i = 0; i < x.size(); i++) {
    uint16_t want = 0;
    kw::test::store_number(dtype_of<T>, &want, x[i]);
    bool ok = std::isnan(x[i]) ? is_nan<T>(narrow[i].bits) && narrow[i].bits >> 15 == std::signbit(x[i]) : narrow[i].bits == want;
    if (!ok) wrong++;
  }
  KW_EXPECT_EQ(wrong, 0);
}

// NaNs too: their payload is the same on every instruction set.
template <class T>
void conversions_have_the_same_bits(const std::vector<float>& x) {
  auto results = on_every_isa([&] {
    std::vector<T> narrow(x.size()), all(65536);
    for (int i = 0; i < 65536; i++) all[i].bits = static_cast<uint16_t>(i);
    std::vector<float> wide(65536);
    KW_FOR_ISA(words::narrow<T>)(x.data(), narrow.data(), static_cast<int64_t>(x.size()));
    KW_FOR_ISA(words::widen<T>)(all.data(), wide.data(), 65536);
    return std::string(reinterpret_cast<char*>(narrow.data()), 2 * narrow.size()) +
           std::string(reinterpret_cast<char*>(wide.data()), 4 * wide.size());
  });
  for (auto& r : results) KW_EXPECT(r == results[0]);
}

void between_f32_and_f64(const std::vector<float>& x) {
  for (size_t n : {x.size(), size_t{1}, size_t{15}, size_t{33}}) {
    std::vector<double> wide(n + 1, -7);
    std::vector<float> back(n + 1, -7);
    KW_FOR_ISA(words::doubles<float>)(x.data(), wide.data(), static_cast<int64_t>(n));
    bool exact = wide[n] == -7;
    for (size_t i = 0; i < n; i++) exact = exact && (std::isnan(x[i]) ? std::isnan(wide[i]) : wide[i] == static_cast<double>(x[i]));
    KW_EXPECT(exact);
    for (size_t i = 0; i < n; i++) wide[i] *= 1 + 0x1p-26 * static_cast<double>(i % 17);  // what has to be rounded
    KW_FOR_ISA(words::floats)(wide.data(), back.data(), static_cast<int64_t>(n));
    bool rounded = back[n] == -7;
    for (size_t i = 0; i < n; i++) rounded = rounded && (std::isnan(x[i]) ? std::isnan(back[i]) : back[i] == static_cast<float>(wide[i]));
    KW_EXPECT(rounded);
  }
  f16 half[3] = {{0x3c00}, {0xc000}, {0x0001}};
  double as_doubles[3];
  KW_FOR_ISA(words::doubles<f16>)(half, as_doubles, 3);
  KW_EXPECT(as_doubles[0] == 1 && as_doubles[1] == -2 && as_doubles[2] == 0x1p-24);
}

template <class A>
void sums(double bound) {
  std::mt19937 random(2);
  std::uniform_real_distribution<A> where(0.5, 1.5);
  double worst = 0;
  for (int64_t n : {1, 15, 16, 17, 31, 32, 33, 48, 1023, 1024, 1025, 1040, 4095, 4097, 70000, 1000000}) {
    std::vector<A> x(n);
    long double want = 0;
    for (A& v : x) {
      v = where(random);
      want += static_cast<long double>(v) * v;
    }
    double got = KW_FOR_ISA(words::squares<A>)(x.data(), n);
    worst = std::max(worst, static_cast<double>(std::abs(got - want) / want));
  }
  KW_EXPECT(worst < bound);
  std::cout << kw::isa_name(kw::isa()) << ": sums within " << worst << '\n';
}

void all_types() {  // for_type: each, the given ones only, and a sentence for the rest
  for (kw::DType t : {KW_F16, KW_BF16, KW_F32, KW_F64}) {
    kw::DType seen = KW_I8;
    for_type("op", t, [&]<class T>() { seen = dtype_of<T>; });
    KW_EXPECT(seen == t);
  }
  auto nothing = []<class T>() {};
  KW_EXPECT_THROWS(for_type("op", KW_I32, nothing), "op: there is no CPU kernel for i32");
  KW_EXPECT_THROWS((for_type<bf16, float>("op", KW_F64, nothing)), "op: there is no CPU kernel for f64");
}

}  // namespace

int main() {
  setenv("KW_CPU_ISA", "neon", 1);
  KW_EXPECT_THROWS(kw::isa(), "KW_CPU_ISA is 'neon', but can be baseline, avx2 or avx512");
  setenv("KW_CPU_ISA", "baseline", 1);
  KW_EXPECT(kw::isa() == kw::Isa::baseline);

  std::vector<float> x = hard_floats<bf16>(), y = hard_floats<f16>();
  on_every_isa([&] {
    conversions<bf16>(x);
    conversions<f16>(y);
    between_f32_and_f64(y);
    sums<float>(3e-7);
    sums<double>(2e-15);
    return 0;
  });
  conversions_have_the_same_bits<bf16>(x);
  conversions_have_the_same_bits<f16>(y);
  all_types();
  return kw::test::finish();
}
