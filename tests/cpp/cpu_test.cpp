// CPU kernels of the rooms against plain loops in double: shapes, layouts, dtypes, instruction sets, threads, NaN and infinity.
#include <algorithm>
#include <limits>

#include "kw/cpu/isa.h"
#include "kw/cpu/parallel.h"
#include "testing/expect.h"
#include "tests/cpp/cpu_call.h"

namespace kw::ops::rms_norm {
template <bool adds>
void forward_cpu(const Call&);
template <bool adds>
void backward_cpu(const Call&);
}  // namespace kw::ops::rms_norm
namespace kw::ops::swiglu {
void forward_cpu(const Call&);
void backward_cpu(const Call&);
}  // namespace kw::ops::swiglu

using kw::test::HandCall;
using kw::test::Matrix;

namespace {

constexpr double f32_half = 0x1p-24, eps = 1e-6;

double half_ulp(kw::DType t) { return t == KW_F32 ? f32_half : 0x1p-8; }  // relative, of one rounding to t: 24 and 8 bits

struct Case {
  int64_t rows, length;
  kw::DType t = KW_F32, w = KW_F32;
  bool weighted = true;
  int64_t padding = 0, shift = 0;
};

// The largest |got - want| / bound, where the bound is one rounding to the result's type and `roundings` of f32 of the magnitude.
class Worst {
 public:
  explicit Worst(double roundings) : roundings_(roundings) {}
  void see(double got, double want, double magnitude, kw::DType t) {
    double bound = half_ulp(t) * std::abs(want) * 1.01 + roundings_ * f32_half * magnitude + 0x1p-140;
    double e = std::abs(got - want) / bound;
    worst_ = std::max(worst_, std::isnan(e) ? 1e30 : e);
  }
  double value() const { return worst_; }

 private:
  double roundings_, worst_ = 0;
};

// ---- rms_norm ------------------------------------------------------------------------------------------------------------------

struct Norm {
  Matrix x, dy, weight, y, dx, dweight, part;
  explicit Norm(const Case& c)
      : x(c.t, c.rows, c.length, c.padding, c.shift),
        dy(c.t, c.rows, c.length, 2 * c.padding, c.shift),
        weight(c.w, -1, c.length, 0, c.shift),
        y(c.t, c.rows, c.length, 3 * c.padding, c.shift),
        dx(c.t, c.rows, c.length, c.padding, c.shift),
        dweight(c.w, -1, c.length, 0, c.shift),
        part(KW_F32, std::min<int64_t>(c.rows, 1024), c.length) {
    x.fill(1), dy.fill(2), weight.fill(3);
    part.fill_with(std::numeric_limits<float>::quiet_NaN());  // scratch comes as it is
  }
  void run(const Case& c) {
    Matrix *w = c.weighted ? &weight : nullptr, *dw = c.weighted ? &dweight : nullptr, *p = c.weighted ? &part : nullptr;
    HandCall()
        .input("x", &x)
        .input("weight", w)
        .result("y", &y)
        .attribute("eps", eps)
        .attribute("offset", 0)
        .attribute("rounding", 0)
        .dims(c.rows, c.length)
        .types(c.t, c.w)
        .run(kw::ops::rms_norm::forward_cpu<false>);
    HandCall()
        .input("dy", &dy)
        .input("x", &x)
        .input("weight", w)
        .result("dx", &dx)
        .result("dweight", dw)
        .result("part", p)
        .attribute("eps", eps)
        .attribute("offset", 0)
        .dims(c.rows, c.length)
        .types(c.t, c.w)
        .run(kw::ops::rms_norm::backward_cpu<false>);
  }
  bool canaries_live() {
    return x.canaries_live() && dy.canaries_live() && weight.canaries_live() && y.canaries_live() && dx.canaries_live() &&
           dweight.canaries_live() && part.canaries_live();
  }
  std::string bits() { return y.bits() + dx.bits() + dweight.bits(); }
};

void norm_is_right(const Case& c) {
  Norm n(c);
  std::string inputs = n.x.bits() + n.dy.bits() + n.weight.bits();
  n.run(c);
  KW_EXPECT(n.canaries_live());
  KW_EXPECT(inputs == n.x.bits() + n.dy.bits() + n.weight.bits());
  Worst y(12), dx(16), dweight(16);
  std::vector<double> sums(c.length), magnitudes(c.length);
  for (int64_t r = 0; r < c.rows; r++) {
    double squares = 0, dot = 0, dot_magnitude = 0;
    auto w = [&](int64_t i) { return c.weighted ? n.weight.get(0, i) : 1.0; };
    for (int64_t i = 0; i < c.length; i++) {
      double x = n.x.get(r, i), g = n.dy.get(r, i) * w(i);
      squares += x * x, dot += g * x, dot_magnitude += std::abs(g * x);
    }
    double scale = 1 / std::sqrt(squares / c.length + eps), back = scale * scale * scale / c.length;
    for (int64_t i = 0; i < c.length; i++) {
      double x = n.x.get(r, i), dy = n.dy.get(r, i), want = x * scale * w(i);
      y.see(n.y.get(r, i), want, std::abs(want), c.t);
      dx.see(n.dx.get(r, i), dy * w(i) * scale - x * back * dot, std::abs(dy * w(i) * scale) + std::abs(x * back * dot_magnitude), c.t);
      sums[i] += dy * x * scale, magnitudes[i] += std::abs(dy * x * scale);
    }
  }
  for (int64_t i = 0; i < c.length && c.weighted; i++) dweight.see(n.dweight.get(0, i), sums[i], magnitudes[i], c.w);
  bool ok = y.value() <= 1 && dx.value() <= 1 && dweight.value() <= 1;
  if (!KW_EXPECT(ok))
    std::cerr << "  rms_norm " << kw::dtype_name(c.t) << '[' << c.rows << ',' << c.length << "] weight " << kw::dtype_name(c.w) << ' '
              << c.weighted << " on " << kw::isa_name(kw::isa()) << ": y " << y.value() << ", dx " << dx.value() << ", dweight "
              << dweight.value() << " of the bound\n";
}

// ---- swiglu --------------------------------------------------------------------------------------------------------------------

struct Gated {
  Matrix gate, up, dy, y, dgate, dup;
  explicit Gated(const Case& c)
      : gate(c.t, c.rows, c.length, c.padding, c.shift),
        up(c.t, c.rows, c.length, 2 * c.padding, c.shift),
        dy(c.t, c.rows, c.length, c.padding, c.shift),
        y(c.t, c.rows, c.length, 3 * c.padding, c.shift),
        dgate(c.t, c.rows, c.length, c.padding, c.shift),
        dup(c.t, c.rows, c.length, 2 * c.padding, c.shift) {
    gate.fill(1, 20), up.fill(2), dy.fill(3);
  }
  void run(const Case& c) {
    HandCall()
        .input("gate", &gate)
        .input("up", &up)
        .result("y", &y)
        .attribute("activation", 0)
        .dims(c.rows, c.length)
        .types(c.t, c.t)
        .run(kw::ops::swiglu::forward_cpu);
    HandCall()
        .input("dy", &dy)
        .input("gate", &gate)
        .input("up", &up)
        .result("dgate", &dgate)
        .result("dup", &dup)
        .attribute("activation", 0)
        .dims(c.rows, c.length)
        .types(c.t, c.t)
        .run(kw::ops::swiglu::backward_cpu);
  }
  bool canaries_live() {
    return gate.canaries_live() && up.canaries_live() && dy.canaries_live() && y.canaries_live() && dgate.canaries_live() &&
           dup.canaries_live();
  }
  std::string bits() { return y.bits() + dgate.bits() + dup.bits(); }
};

void swiglu_is_right(const Case& c) {
  Gated g(c);
  std::string inputs = g.gate.bits() + g.up.bits() + g.dy.bits();
  g.run(c);
  KW_EXPECT(g.canaries_live());
  KW_EXPECT(inputs == g.gate.bits() + g.up.bits() + g.dy.bits());
  Worst y(8), dgate(8), dup(8);
  for (int64_t r = 0; r < c.rows; r++)
    for (int64_t i = 0; i < c.length; i++) {
      double x = g.gate.get(r, i), u = g.up.get(r, i), d = g.dy.get(r, i), s = 1 / (1 + std::exp(-x));
      y.see(g.y.get(r, i), x * s * u, std::abs(x * s * u), c.t);
      dup.see(g.dup.get(r, i), d * x * s, std::abs(d * x * s), c.t);
      dgate.see(g.dgate.get(r, i), d * u * s * (1 + x * (1 - s)), std::abs(d * u * s) * (1 + std::abs(x * (1 - s))), c.t);
    }
  bool ok = y.value() <= 1 && dgate.value() <= 1 && dup.value() <= 1;
  if (!KW_EXPECT(ok))
    std::cerr << "  swiglu " << kw::dtype_name(c.t) << '[' << c.rows << ',' << c.length << "] on " << kw::isa_name(kw::isa()) << ": y "
              << y.value() << ", dgate " << dgate.value() << ", dup " << dup.value() << " of the bound\n";
}

// ---- laws ----------------------------------------------------------------------------------------------------------------------

std::vector<Case> cases() {
  std::vector<Case> all;
  for (auto [rows, length] : {std::pair<int64_t, int64_t>{0, 16},
                              {3, 0},
                              {1, 1},
                              {5, 7},
                              {13, 31},
                              {3, 16},
                              {17, 48},
                              {2, 4095},
                              {3, 4097},
                              {1, 70000},
                              {257, 64},
                              {2049, 3},
                              {1031, 17}})
    for (int types = 0; types < 3; types++)
      for (bool weighted : {true, false}) {
        Case c{rows, length, types ? KW_BF16 : KW_F32, types == 1 ? KW_BF16 : KW_F32, weighted};
        if (length % 2) c.padding = 3, c.shift = 1;  // rows at odd addresses
        all.push_back(c);
      }
  return all;
}

template <class Room>
void same_bits_on_threads_and_isas(const Case& c) {
  std::string first;
  for (kw::Isa isa : {kw::Isa::baseline, kw::Isa::avx2, kw::Isa::avx512}) {
    if (!kw::has_isa(isa)) continue;
    kw::set_isa(isa);
    for (int threads : {1, 2, 3, 4}) {
      kw::set_thread_count(threads);
      Room room(c);
      room.run(c);
      if (first.empty()) first = room.bits();
      KW_EXPECT(room.bits() == first);
    }
  }
  kw::set_thread_count(0);
}

// A row alone, at another address, has the bits that it has among others.
void rows_are_independent(kw::DType t) {
  Case many{37, 1537, t, t, true, 5, 1}, one{1, 1537, t, t, true, 0, 0};
  Norm n(many), m(one);
  Gated g(many), h(one);
  n.run(many), g.run(many);
  for (int64_t r : {0, 1, 36}) {
    for (int64_t i = 0; i < 1537; i++) {
      for (auto [to, from] : {std::pair{&m.x, &n.x}, {&m.dy, &n.dy}, {&h.gate, &g.gate}, {&h.up, &g.up}, {&h.dy, &g.dy}})
        to->set(0, i, static_cast<float>(from->get(r, i)));
    }
    m.run(one), h.run(one);
    KW_EXPECT(m.y.row_bits(0) == n.y.row_bits(r));
    KW_EXPECT(m.dx.row_bits(0) == n.dx.row_bits(r));
    KW_EXPECT(h.bits() == g.y.row_bits(r) + g.dgate.row_bits(r) + g.dup.row_bits(r));
  }
}

void hard_values(kw::DType t) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t length : {5, 64, 1061}) {
    int64_t at = length - 2;
    Case c{5, length, t, t, true};
    Norm n(c);
    n.run(c);
    std::string clean = n.y.row_bits(0) + n.y.row_bits(4);
    n.x.set(1, at, nan);
    n.x.set(2, at, -inf);
    for (int64_t i = 0; i < length; i++) n.x.set(3, i, 1e30f);  // finite, but its squares are not, in f32
    n.run(c);
    bool ok = true;
    for (int64_t i = 0; i < length; i++)
      ok = ok && std::isnan(n.y.get(1, i)) && std::isnan(n.dx.get(1, i)) && (i == at ? std::isnan(n.y.get(2, i)) : n.y.get(2, i) == 0) &&
           n.y.get(3, i) == 0;
    KW_EXPECT(ok);
    KW_EXPECT(clean == n.y.row_bits(0) + n.y.row_bits(4));
  }
  Case c{1, 21, t, t};
  Gated g(c);
  struct Limit {
    float gate, silu, slope;
  } limits[] = {{inf, inf, 1},      {nan, nan, nan},   {-inf, -0.f, 0},   {0.f, 0.f, 0.5f},
                {-0.f, -0.f, 0.5f}, {3e38f, 3e38f, 1}, {-3e38f, -0.f, 0}, {-200.f, -0.f, 0}};
  for (int64_t i = 0; i < 21; i++) g.gate.set(0, i, limits[i % 8].gate), g.up.set(0, i, 1.f), g.dy.set(0, i, 1.f);
  g.run(c);
  auto same = [](double got, double want) {
    return std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
  };
  for (int64_t i = 0; i < 21; i++) {
    auto [gate, silu, slope] = limits[i % 8];
    if (std::isfinite(silu) && silu > 1) silu = static_cast<float>(g.gate.get(0, i));  // as it was stored
    bool ok = same(g.y.get(0, i), silu) && same(g.dup.get(0, i), silu) &&
              (same(g.dgate.get(0, i), slope) || (slope == 0 && g.dgate.get(0, i) == 0));
    if (!KW_EXPECT(ok)) std::cerr << "  gate " << gate << ": silu " << g.y.get(0, i) << ", slope " << g.dgate.get(0, i) << '\n';
  }
}

void wrong_dtype_is_a_sentence() {
  Case c{2, 8, KW_F32, KW_F32};
  Norm n(c);
  HandCall call;
  call.input("x", &n.x)
      .input("weight", nullptr)
      .result("y", &n.y)
      .attribute("eps", eps)
      .attribute("offset", 0)
      .attribute("rounding", 0)
      .dims(2, 8)
      .types(KW_I32, KW_F32);
  KW_EXPECT_THROWS(call.run(kw::ops::rms_norm::forward_cpu<false>), "rms_norm: there is no CPU kernel for i32");
}

}  // namespace

int main() {
  for (kw::Isa isa : {kw::Isa::baseline, kw::Isa::avx2, kw::Isa::avx512}) {
    if (!kw::has_isa(isa)) continue;
    kw::set_isa(isa);
    for (const Case& c : cases()) {
      norm_is_right(c);
      if (c.t == c.w && c.weighted) swiglu_is_right(c);
    }
    for (kw::DType t : {KW_F32, KW_BF16}) {
      rows_are_independent(t);
      hard_values(t);
    }
  }
  for (kw::DType t : {KW_F32, KW_BF16})
    for (auto [rows, length] : {std::pair<int64_t, int64_t>{1031, 771}, {3, 70001}, {64, 4096}})
      for (int64_t padding : {0, 3}) {
        same_bits_on_threads_and_isas<Norm>({rows, length, t, t, true, padding, 1});
        same_bits_on_threads_and_isas<Gated>({rows, length, t, t, true, padding, 1});
      }
  wrong_dtype_is_a_sentence();
  return kw::test::finish();
}
