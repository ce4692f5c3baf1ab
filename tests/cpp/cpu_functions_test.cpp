// The functions of packs against long double, in f32 and f64, on every instruction set of this machine.
#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "testing/expect.h"
#include "tests/cpp/cpu_isas.h"

#define KW_ISA_FILE "tests/cpp/cpu_functions_test.inc"
#include "kw/cpu/each_isa.inc"

using namespace kw::cpu;
using kw::test::on_every_isa;

namespace {

using Truth = long double;  // 64 bits of mantissa: a twothousandth of an f64's last place

// Distance from the true value in units of the last place of a number of that size.
template <class A>
double ulps(A got, Truth want) {
  using Limits = std::numeric_limits<A>;
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  Truth overflow = std::ldexp(Truth{2} - static_cast<Truth>(Limits::epsilon()) / 2, Limits::max_exponent - 1);
  if (std::fabs(want) >= overflow) return std::isinf(got) && (got > 0) == (want > 0) ? 0 : 1e30;
  if (std::isinf(got) || std::isnan(got)) return 1e30;
  int exponent = want == 0 ? Limits::min_exponent - 1 : std::max(std::ilogb(want), Limits::min_exponent - 1);
  return static_cast<double>(std::fabs(got - want) / std::ldexp(Truth{1}, exponent + 1 - Limits::digits));
}

// Every size of number, evenly over [from, to] and around the borders.
template <class A>
std::vector<A> samples(double from, double to) {
  using Limits = std::numeric_limits<A>;
  constexpr A inf = Limits::infinity(), nan = Limits::quiet_NaN(), tiny = Limits::denorm_min();
  std::vector<A> x = {0, -A{0}, inf, -inf, nan, -nan, Limits::max(), -Limits::max(), tiny, -tiny, Limits::min(), -Limits::min(), 1, -1};
  for (double border : {88.72283, 88.72284, 89., 90., -87.33654, -87.33655, -103., -103.97208, -103.98, -104., -105., 709.782712893384,
                        709.7827128933841, 710., -745.13321910194, -745.13321910195, -746., -708.396418532264})
    x.push_back(static_cast<A>(border));
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000000; i++) {
    uint64_t u = random();
    if constexpr (sizeof(A) == 4)
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(u)));
    else
      x.push_back(std::bit_cast<double>(u));
  }
  std::uniform_real_distribution<double> where(from, to);
  for (int i = 0; i < 1000000; i++) x.push_back(static_cast<A>(where(random)));
  return x;
}

Truth true_sigmoid(Truth x) {
  Truth small = std::exp(-std::fabs(x));
  return (x < 0 ? small : 1) / (1 + small);
}

// The largest error over the samples of f on every instruction set, and whether all gave the same bits.
template <class A, class Kernel, class F>
void within(double bound, const char* name, const std::vector<A>& x, Kernel kernel, F truth) {
  auto n = static_cast<int64_t>(x.size());
  std::vector<A> y(n);
  auto results = on_every_isa([&] {
    kernel()(x.data(), y.data(), n);
    std::string bits;
    for (A v : y) {
      if (std::isnan(v)) v = 0;
      bits.append(reinterpret_cast<const char*>(&v), sizeof v);
    }
    return bits;
  });
  for (auto& r : results) KW_EXPECT(r == results[0]);
  double worst = 0;
  A where = 0;
  for (int64_t i = 0; i < n; i++) {
    double error = ulps(y[i], truth(static_cast<Truth>(x[i])));
    if (error > worst) worst = error, where = x[i];
  }
  if (!KW_EXPECT(worst <= bound)) std::cerr << "  at " << std::hexfloat << where << std::defaultfloat << '\n';
  std::cout << name << " in f" << 8 * sizeof(A) << " within " << worst << " ulp\n";
}

template <class A>
void all() {
  bool single = sizeof(A) == 4;
  auto x = single ? samples<A>(-110, 95) : samples<A>(-750, 712);
  within(1, "exp", x, [] { return KW_FOR_ISA(words::exps<A>); }, [](Truth v) { return std::exp(v); });
  within(3, "sigmoid", x, [] { return KW_FOR_ISA(words::sigmoids<A>); }, true_sigmoid);
  within(3, "1 - sigmoid", x, [] { return KW_FOR_ISA(words::rests<A>); }, [](Truth v) { return true_sigmoid(-v); });
}

}  // namespace

int main() {
  all<float>();
  all<double>();
  return kw::test::finish();
}
