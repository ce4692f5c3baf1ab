// Laws and hard cases of SwiGLU, through the typed call: on the CPU, and on the GPU, or the emulator where there is none.
#include "kw/ops/swiglu/swiglu.h"

#include <limits>
#include <utility>

#include "kw/core/op.h"
#include "tests/cpp/access.h"
#include "tests/cpp/on_device.h"

namespace {

using kw::GateActivation;
using kw::test::Array;
using kw::test::close;
bool on_cuda = false;

template <class F>
void run(std::initializer_list<Array*> arrays, F&& f) {
  kw::test::with_views(on_cuda, arrays, f);
}

void forward(Array& gate, Array& up, Array& y, GateActivation a = GateActivation::silu) {
  run({&gate, &up, &y}, [&](auto& t) { kw::swiglu(nullptr, t[0], t[1], t[2], a); });
}
void backward(Array& dy, Array& gate, Array& up, Array& dgate, Array& dup, GateActivation a = GateActivation::silu) {
  run({&dy, &gate, &up, &dgate, &dup}, [&](auto& t) { kw::swiglu_backward(nullptr, t[0], t[1], t[2], t[3], t[4], a); });
}
void packed_forward(Array& x, Array& y, GateActivation a) {
  run({&x, &y}, [&](auto& t) { kw::swiglu_packed(nullptr, t[0], t[1], a); });
}
void packed_backward(Array& dy, Array& x, Array& dx, GateActivation a) {
  run({&dy, &x, &dx}, [&](auto& t) { kw::swiglu_packed_backward(nullptr, t[0], t[1], t[2], a); });
}

struct Truth {  // a(g), a'(g), and how much of a relative error in z reaches them
  double value, slope, reach;
  Truth(GateActivation a, double g) {
    const bool silu = a == GateActivation::silu;
    const double w = silu ? 1 : 2 * std::sqrt(2 / std::acos(-1.0)), c = silu ? 0 : 0.044715;
    const double z = w * (g + c * g * g * g), s = 1 / (1 + std::exp(-z)), rest = 1 / (1 + std::exp(z)), dz = w * (1 + 3 * c * g * g);
    value = g * s, slope = s * (1 + g * rest * dz);
    reach = std::fabs(s) * (1 + std::fabs(g * rest * dz)) * (1 + std::fabs(z) * (silu ? 0 : 1));
  }
};

void agrees_with_the_formula(kw::DType type, GateActivation a, int64_t rows, int64_t length, int64_t padding, int64_t offset) {
  const auto array = [&](int64_t extra) { return Array(type, {rows, length}, padding * extra, offset); };
  Array dy = array(1), gate = array(2), up = array(3), y = array(1), dgate = array(0), dup = array(2);
  dy.random(1), gate.random(2), up.random(3);
  gate.each([&](int64_t r, int64_t i) { return gate.get(r, i) * (i % 3 == 0 ? a == GateActivation::silu ? 30 : 5 : 3); });
  forward(gate, up, y, a);
  backward(dy, gate, up, dgate, dup, a);
  int wrong = !y.canaries_live() + !dgate.canaries_live() + !dup.canaries_live();
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < length; i++) {
      const double g = gate.get(r, i), u = up.get(r, i), d = dy.get(r, i);
      const Truth t(a, g);
      wrong += !close(y.get(r, i), t.value * u, type, 16, std::fabs(g * t.reach * u));
      wrong += !close(dup.get(r, i), d * t.value, type, 16, std::fabs(d * g * t.reach));
      wrong += !close(dgate.get(r, i), d * u * t.slope, type, 16, std::fabs(d * u) * t.reach);
    }
  if (!KW_EXPECT_EQ(wrong, 0))
    std::cerr << (on_cuda ? "  cuda: " : "  cpu: ") << kw::dtype_name(type) << '[' << rows << ',' << length << "] padding " << padding
              << " activation " << static_cast<int64_t>(a) << '\n';
}

// Packed is the same arithmetic on the halves of one tensor's rows: the same bits.
void packed_is_the_same(kw::DType type, GateActivation a, int64_t rows, int64_t length, int64_t padding) {
  Array x(type, {rows, 2 * length}, padding, padding), dx(type, {rows, 2 * length}, padding), y(type, {rows, length}),
      dy(type, {rows, length});
  Array gate(type, {rows, length}), up(type, {rows, length}), y2(type, {rows, length}), dgate(type, {rows, length}),
      dup(type, {rows, length});
  x.random(1), dy.random(2);
  gate.each([&](int64_t r, int64_t i) { return x.get(r, i); });
  up.each([&](int64_t r, int64_t i) { return x.get(r, length + i); });
  packed_forward(x, y, a);
  packed_backward(dy, x, dx, a);
  forward(gate, up, y2, a);
  backward(dy, gate, up, dgate, dup, a);
  KW_EXPECT(y.bits() == y2.bits() && y.canaries_live() && dx.canaries_live());
  for (int64_t r = 0; r < rows; r++) KW_EXPECT(dx.row_bits(r) == dgate.row_bits(r) + dup.row_bits(r));
}

// An element depends on its own inputs alone: the same bits in a long row, in a strided one, at an odd address.
void place_does_not_matter(kw::DType type) {
  Array gate(type, {7, 1000}), up(type, {7, 1000}), y(type, {7, 1000});
  Array gate2(type, {7, 1000}, 5, 1), up2(type, {7, 1000}, 2), y2(type, {7, 1000}, 1, 3);
  gate.random(1), up.random(2);
  gate2.each([&](int64_t r, int64_t i) { return gate.get(r, i); });
  up2.each([&](int64_t r, int64_t i) { return up.get(r, i); });
  forward(gate, up, y);
  forward(gate2, up2, y2);
  KW_EXPECT(y.bits() == y2.bits());
}

void hard_values(kw::DType type, GateActivation activation) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN(), zero = 0;
  const double big = type == KW_F16 ? 6e4 : 1e30;
  struct {
    double gate, value, slope;
  } const table[] = {{inf, inf, 1}, {-inf, -zero, 0}, {nan, nan, nan}, {zero, zero, 0.5}, {-zero, -zero, 0.5},
                     {big, big, 1}, {-big, -zero, 0}, {200, 200, 1},   {-200, -zero, 0},  {20, 20, 1}};
  constexpr int64_t n = std::size(table);
  Array gate(type, {1, n}), up(type, {1, n}), dy(type, {1, n}), y(type, {1, n}), dgate(type, {1, n}), dup(type, {1, n});
  gate.each([&](int64_t, int64_t i) { return table[i].gate; });
  up.each([](int64_t, int64_t) { return 1; });
  dy.each([](int64_t, int64_t) { return 1; });
  forward(gate, up, y, activation);
  backward(dy, gate, up, dgate, dup, activation);
  for (int64_t i = 0; i < n; i++) {
    const auto same = [&](double got, double want) {
      if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
      if (want == 0) return std::fabs(got) < 1e-80;  // silu(-200) of f64 is not quite zero
      return std::fabs(got - want) <= std::fabs(want) * (type == KW_F64 || type == KW_F32 ? 1e-6 : 4e-3);
    };
    const bool ok = same(y.get(0, i), table[i].value) && same(dup.get(0, i), table[i].value) && same(dgate.get(0, i), table[i].slope) &&
                    (table[i].value != 0 || std::signbit(y.get(0, i)) == std::signbit(table[i].value));
    if (!KW_EXPECT(ok))
      std::cerr << "  gate " << table[i].gate << ": y " << y.get(0, i) << ", dgate " << dgate.get(0, i) << ", dup " << dup.get(0, i)
                << '\n';
  }
}

void laws(kw::DType type) {
  Array gate(type, {2, 777}), minus(type, {2, 777}), one(type, {2, 777}), y(type, {2, 777}), y2(type, {2, 777});
  gate.random(1);
  minus.each([&](int64_t r, int64_t i) { return -gate.get(r, i); });
  one.each([](int64_t, int64_t) { return 1; });
  forward(gate, one, y);
  forward(minus, one, y2);
  int wrong = 0;
  for (int64_t i = 0; i < 777; i++)  // silu(g) - silu(-g) = g
    wrong += std::fabs(y.get(0, i) - y2.get(0, i) - gate.get(0, i)) > std::fabs(gate.get(0, i)) * (type == KW_F64   ? 1e-15
                                                                                                   : type == KW_F32 ? 4e-7
                                                                                                                    : 8e-3);
  KW_EXPECT_EQ(wrong, 0);
  Array minus_one(type, {2, 777});
  minus_one.each([](int64_t, int64_t) { return -1; });
  forward(gate, minus_one, y2);
  for (int64_t i = 0; i < 777; i++) wrong += y.get(1, i) != -y2.get(1, i);  // linear in up
  KW_EXPECT_EQ(wrong, 0);
}

void refusals() {
  Array gate(KW_F32, {2, 8}), up(KW_F32, {2, 7}), half(KW_BF16, {2, 8}), y(KW_F32, {2, 8});
  const auto before = y.bytes();
  KW_EXPECT_THROWS(forward(gate, up, y), "swiglu: up");
  KW_EXPECT_THROWS(forward(gate, half, y), "swiglu: up");
  KW_EXPECT_THROWS(forward(gate, gate, y, static_cast<GateActivation>(2)), "swiglu: activation is choice 2, but there are 2");
  KW_EXPECT_THROWS(packed_forward(up, y, GateActivation::silu), "swiglu_packed: x has shape [2, 7], but its dimension 1 must be 2*N");
  KW_EXPECT(y.bytes() == before);
}

void all() {
  const auto activations = {GateActivation::silu, GateActivation::gelu_tanh};
  for (kw::DType type : {KW_F16, KW_BF16, KW_F32, KW_F64}) {
    for (auto [rows, length] :
         {std::pair<int64_t, int64_t>{1, 1}, {3, 1}, {4, 8}, {5, 7}, {2, 127}, {9, 1024}, {2, 4095}, {2, 4096}, {3, 4097}, {1, 70000}})
      for (int64_t padding : {0, 1, 8}) {
        if (length > 4095 && (padding == 1 || type == KW_F16)) continue;
        for (GateActivation a : activations) agrees_with_the_formula(type, a, rows, length, padding, padding % 2);
      }
    for (auto [rows, length] : {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {3, 1024}, {2, 1029}})
      for (int64_t padding : {0, 1})
        packed_is_the_same(type, rows % 2 ? GateActivation::silu : GateActivation::gelu_tanh, rows, length, padding);
    place_does_not_matter(type);
    for (GateActivation a : activations) hard_values(type, a);
    laws(type);
    Array empty(type, {0, 5}), to(type, {0, 5}), narrow(type, {5, 0}), narrow_to(type, {5, 0});
    forward(empty, empty, to);
    forward(narrow, narrow, narrow_to);
    packed_forward(narrow, narrow_to, GateActivation::silu);
  }
  refusals();
}

// Everything once, whatever the row's length.
void traffic() {
  using kw::test::expect_traffic;
  for (const char* row : {"[3,11008]", "[40,64]"}) {
    const std::string gate = std::string("gate=bf16") + row, up = std::string(" up=bf16") + row, dy = std::string(" dy=bf16") + row;
    expect_traffic("swiglu", (gate + up).c_str(), {{"gate", 1}, {"up", 1}, {"y", 0, 1}});
    expect_traffic("swiglu_backward", (gate + up + dy).c_str(), {{"gate", 1}, {"up", 1}, {"dy", 1}, {"dgate", 0, 1}, {"dup", 0, 1}});
  }
  expect_traffic("swiglu_packed", "x=f32[3,8192]", {{"x", 1}, {"y", 0, 1}});
  expect_traffic("swiglu_packed_backward", "x=f32[3,8192] dy=f32[3,4096]", {{"x", 1}, {"dy", 1}, {"dx", 0, 1}});
}

}  // namespace

int main() {
  all();
  on_cuda = true;
  kw::test::on_device({"inorder", "greedy"}, [](std::string_view) { all(); });
  traffic();
  return kw::test::finish();
}
