#include "kw/core/bind.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

#include "testing/expect.h"
#include "tests/cpp/calls.h"
#include "tests/cpp/dozen.h"

using namespace kw;
using test::Case;
using test::Tensors;

static std::atomic<int64_t> allocations{0};
void* operator new(size_t n) {
  allocations++;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace {

constexpr const char* rms_norm =
    R"(rms_norm(x: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6) -> y: T[*B, N] where T: f32 bf16, W: T f32)";
constexpr const char* backward = test::dozen[1];

std::string shape(const TensorSpec& s) {
  std::string text = s.present ? dtype_name(s.dtype) : "-";
  for (int i = 0; i < s.rank; i++) text += (i ? "," : ":") + std::to_string(s.sizes[i]);
  return text;
}

void test_rms_norm() {
  Case c(rms_norm);
  Bound& b = c.in(0, KW_BF16, {2, 3, 64}).in(1, KW_F32, {64}).bind();
  KW_EXPECT_EQ(b.dims[0], 6);
  KW_EXPECT_EQ(b.dims[1], 64);
  KW_EXPECT_EQ(b.dtypes[0], KW_BF16);
  KW_EXPECT_EQ(b.dtypes[1], KW_F32);
  KW_EXPECT_EQ(b.present, 3u);
  KW_EXPECT_EQ(shape(b.results[0]), "bf16:2,3,64");
  KW_EXPECT_EQ(b.raw.device_type, KW_CPU);
  KW_EXPECT(b.raw.inputs == c.inputs.data() && b.raw.attributes == c.attributes.data() && b.raw.dims == b.dims);

  Case absent(rms_norm);
  absent.in(0, KW_BF16, {64}).bind();
  KW_EXPECT_EQ(absent.bound.dims[0], 1);  // no leading dimension: one row
  KW_EXPECT_EQ(absent.bound.dtypes[1], KW_BF16);
  KW_EXPECT_EQ(absent.bound.present, 1u);
  KW_EXPECT_EQ(shape(absent.bound.results[0]), "bf16:64");

  for (std::vector<int64_t> sizes : {std::vector<int64_t>{0, 64}, {3, 0}, {0, 0}, {5, 0, 64}}) {
    Case empty(rms_norm);
    KW_EXPECT_EQ(empty.in(0, KW_F32, sizes).bind().results[0].elements(), 0);
    empty.make_results();
    empty.bind_all();
  }
  // 8 dimensions are fine, and more than 2^31 elements too.
  Case large(rms_norm);
  KW_EXPECT_EQ(large.in(0, KW_F32, {1, 1, 1, 1, 1, 1, 70000, 70000}).bind().results[0].elements(), 4900000000);
}

void test_backward() {
  Case c(backward);
  c.in(0, KW_F32, {5000, 8}).in(1, KW_F32, {5000, 8}).in(2, KW_F32, {8}).bind();
  KW_EXPECT_EQ(shape(c.bound.results[0]), "f32:5000,8");
  KW_EXPECT_EQ(shape(c.bound.results[1]), "f32:8");
  KW_EXPECT_EQ(shape(c.bound.results[2]), "f32:1024,8");
  Case few(backward);
  few.in(0, KW_BF16, {2, 3, 8}).in(1, KW_BF16, {2, 3, 8}).in(2, KW_BF16, {8}).bind();
  KW_EXPECT_EQ(shape(few.bound.results[1]), "bf16:8");
  KW_EXPECT_EQ(shape(few.bound.results[2]), "f32:6,8");
  Case none(backward);
  none.in(0, KW_F32, {4, 8}).in(1, KW_F32, {4, 8}).bind();
  KW_EXPECT_EQ(shape(none.bound.results[1]), "-");
  KW_EXPECT_EQ(shape(none.bound.results[2]), "-");
  none.make_results();
  none.bind_all();
  none.set(1, none.tensors.make(KW_F32, {8}));
  KW_EXPECT_THROWS(none.bind_all(), "rms_norm_backward: dweight is given, but it comes only with weight, which is absent");
  // An upstream gradient that is expanded from one number per row, or from one row, or a slice.
  Case expanded(backward);
  expanded.in(0, KW_F32, {2, 3, 8}, {0, 0, 1}).in(1, KW_F32, {2, 3, 8}, {48, 16, 1}).bind();
  KW_EXPECT_THROWS(Case(backward).in(0, KW_F32, {3, 8}, {1, 0}).in(1, KW_F32, {3, 8}).bind(), "dy has a layout that the op cannot read");
}

void test_sentences() {
  auto one = [](int32_t t, std::vector<int64_t> sizes) { return std::pair(t, std::move(sizes)); };
  auto bind = [](const char* contract, std::vector<std::pair<int32_t, std::vector<int64_t>>> list) {
    Case c(contract);
    for (size_t i = 0; i < list.size(); i++) c.in(i, list[i].first, list[i].second);
    c.bind();
  };
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {2, 4096}), one(KW_F32, {4095})}),
                   "rms_norm: weight has 4095 elements, but x has last dimension 4096");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {4096}), one(KW_F32, {1})}),
                   "rms_norm: weight has 1 element, but x has last dimension 4096");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_I64, {2, 4})}), "rms_norm: x is i64, but must be f32 or bf16");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_BF16, {2, 4}), one(KW_F16, {4})}), "rms_norm: weight is f16, but must be bf16 or f32");
  KW_EXPECT_THROWS(bind(rms_norm, {one(99, {2, 4})}), "rms_norm: x has the unknown dtype 99");
  KW_EXPECT_THROWS(bind(rms_norm, {}), "rms_norm: x is missing");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {})}), "rms_norm: x has shape [], but T[*B, N] has at least 1 dimension");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {2, 4}), one(KW_F32, {1, 4})}),
                   "rms_norm: weight has shape [1, 4], but W[N] has 1 dimension");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {1, 1, 1, 1, 1, 1, 1, 1, 4})}), "rms_norm: x has 9 dimensions, but at most 8 are supported");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {-2, 4})}), "rms_norm: x has shape [-2, 4], but sizes are never negative");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {int64_t{1} << 40, int64_t{1} << 40})}),
                   "rms_norm: x has more bytes than 64 bits can count");
  KW_EXPECT_THROWS(bind(rms_norm, {one(KW_F32, {int64_t{1} << 61})}), "rms_norm: x has more bytes than 64 bits can count");
  const char* swiglu = test::dozen[3];
  KW_EXPECT_THROWS(bind(swiglu, {one(KW_F32, {2, 4}), one(KW_BF16, {2, 4})}),
                   "swiglu: up is bf16, but gate is f32, and both have the type T");
  KW_EXPECT_THROWS(bind(swiglu, {one(KW_F32, {2, 3, 4}), one(KW_F32, {2, 5, 4})}),
                   "swiglu: up has leading dimensions [2, 5], but gate has [2, 3]");
  KW_EXPECT_THROWS(bind(swiglu, {one(KW_F32, {6, 4}), one(KW_F32, {2, 3, 4})}),
                   "swiglu: up has leading dimensions [2, 3], but gate has [6]");
  KW_EXPECT_THROWS(bind(swiglu, {one(KW_F32, {6, 4}), one(KW_F32, {6, 5})}),
                   "swiglu: up has last dimension 5, but gate has last dimension 4");
  const char* rope = test::dozen[13];
  auto q = one(KW_F32, {2, 16, 4, 64}), table = one(KW_F32, {16, 32});
  bind(rope, {q, table, table});
  KW_EXPECT_THROWS(bind(rope, {q, one(KW_F32, {15, 32}), table}),
                   "rope: cos has size 15 in dimension 0, but x has size 16 in dimension -3");
  KW_EXPECT_THROWS(bind(rope, {q, one(KW_F32, {16, 31}), table}),
                   "rope: cos has shape [16, 31], but its dimension 1 must be D/2 with D = 64");
  KW_EXPECT_THROWS(bind(rope, {one(KW_F32, {16, 4, 63}), table, table}), "but its dimension 1 must be D/2 with D = 63");
  KW_EXPECT_THROWS(bind(rope, {q, one(KW_F64, {16, 32}), table}), "rope: sin is f32, but cos is f64, and both have the type C");
  const char* sample = test::dozen[12];
  KW_EXPECT_THROWS(bind(sample, {one(KW_F32, {3, 9}), one(KW_I64, {3})}), "sample: seed has shape [3], but its dimension 0 must be 2");
  KW_EXPECT_THROWS(bind(sample, {one(KW_F32, {3, 9}), one(KW_I32, {2})}), "sample: seed is i32, but must be i64");
  const char* ce = test::dozen[7];
  KW_EXPECT_THROWS(bind(ce, {one(KW_F32, {3, 9}), one(KW_I64, {4})}),
                   "cross_entropy: target has 4 elements, but logits has size 3 in dimension 0");
}

void test_devices() {
  Case c(rms_norm);
  kw_tensor x = c.tensors.make(KW_F32, {2, 4}), w = c.tensors.make(KW_F32, {4});
  x.device_type = KW_CUDA, x.device_index = 1;
  KW_EXPECT_THROWS(c.in(0, x).in(1, w).bind(), "rms_norm: weight is on cpu, but x is on cuda:1");
  w.device_type = KW_CUDA;
  KW_EXPECT_THROWS(c.in(1, w).bind(), "rms_norm: weight is on cuda:0, but x is on cuda:1");
  w.device_index = 1;
  c.in(1, w).bind();
  KW_EXPECT_EQ(c.bound.raw.device_type, KW_CUDA);
  KW_EXPECT_EQ(c.bound.raw.device_index, 1);
  c.make_results();
  c.bind_all();
  c.set(0, c.tensors.make(KW_F32, {2, 4}));
  KW_EXPECT_THROWS(c.bind_all(), "rms_norm: y is on cpu, but the op is on cuda:1");
  x.device_type = 10;
  KW_EXPECT_THROWS(c.in(0, x).bind(), "rms_norm: x is on device type 10, but only cpu (1) and cuda (2) are supported");
  Case cpu(rms_norm);  // frameworks number the CPU 0 or -1
  kw_tensor v = cpu.tensors.make(KW_F32, {4});
  v.device_index = -1;
  cpu.in(0, KW_F32, {2, 4}).in(1, v).bind();
}

void test_attributes() {
  Case c(rms_norm);
  c.in(0, KW_F32, {2, 4});
  auto eps = [&](double v) {
    c.attributes[0].f = v;
    c.bind();
  };
  eps(0), eps(1e300), eps(std::numeric_limits<double>::infinity());
  KW_EXPECT_THROWS(eps(-1), "rms_norm: eps is -1, but must be >= 0");
  KW_EXPECT_THROWS(eps(std::nan("")), "rms_norm: eps is nan, but must be >= 0");
  KW_EXPECT_THROWS(bind_inputs(*c.op, c.inputs.data(), nullptr, c.bound), "rms_norm: the attributes are a null pointer");
  KW_EXPECT_THROWS(bind_inputs(*c.op, nullptr, c.attributes.data(), c.bound), "rms_norm: the inputs are a null pointer");

  Case f(
      "f(x: f32[N], *, a: float > 0 <= 1, b: int >= -3 < 9, c: bool, d: mean|sum, e: str, g: float, h: int <= 9007199254740991) -> y: "
      "f32[N]");
  f.in(0, KW_F32, {4});
  f.attributes[0].f = 1, f.attributes[4].s = "text", f.attributes[5].f = std::nan("");
  f.bind();
  auto with = [&](size_t i, kw_attribute v) {
    kw_attribute old = f.attributes[i];
    f.attributes[i] = v;
    std::string text;
    try {
      f.bind();
    } catch (const Error& e) {
      text = e.what();
    }
    f.attributes[i] = old;
    return text;
  };
  KW_EXPECT_EQ(with(0, {.f = 0}), "f: a is 0, but must be > 0 and <= 1");
  KW_EXPECT_EQ(with(0, {.f = 1.0000001}), "f: a is 1.0000001, but must be > 0 and <= 1");
  KW_EXPECT_EQ(with(1, {.i = -4}), "f: b is -4, but must be >= -3 and < 9");
  KW_EXPECT_EQ(with(1, {.i = 9}), "f: b is 9, but must be >= -3 and < 9");
  KW_EXPECT_EQ(with(1, {.i = 8}), "");
  KW_EXPECT_EQ(with(2, {.i = 2}), "f: c is 2, but must be 0 or 1");
  KW_EXPECT_EQ(with(3, {.i = 2}), "f: d is choice 2, but there are 2");
  KW_EXPECT_EQ(with(3, {.i = -1}), "f: d is choice -1, but there are 2");
  KW_EXPECT_EQ(with(4, {.s = nullptr}), "f: e is a null pointer, but must be a text");
  KW_EXPECT_EQ(with(6, {.i = 9007199254740992}), "f: h is 9007199254740992, but must be <= 9.00719925474e+15");
}

void test_arguments() {
  Case c(rms_norm);
  kw_tensor two[2] = {c.tensors.make(KW_F32, {2, 4}), c.tensors.make(KW_F32, {2, 4})};
  c.inputs[0] = {two, 2};
  KW_EXPECT_THROWS(c.bind(), "rms_norm: x is one tensor, but 2 are given");
  c.inputs[0] = {two, -1};
  KW_EXPECT_THROWS(c.bind(), "rms_norm: x has -1 tensors");
  c.inputs[0] = {nullptr, 1};
  KW_EXPECT_THROWS(c.bind(), "rms_norm: x is a null pointer");
  two[0].strides = nullptr;
  c.inputs[0] = {two, 1};
  KW_EXPECT_THROWS(c.bind(), "rms_norm: x comes without its sizes or strides");
  two[0].rank = -1;
  KW_EXPECT_THROWS(c.bind(), "rms_norm: x has rank -1");
}

void test_sizes() {
  Case packed(test::dozen[5]);
  KW_EXPECT_EQ(shape(packed.in(0, KW_F32, {3, 10}).bind().results[0]), "f32:3,5");
  KW_EXPECT_EQ(packed.bound.dims[1], 5);
  KW_EXPECT_THROWS(Case(test::dozen[5]).in(0, KW_F32, {3, 9}).bind(), "swiglu_packed: x has shape [3, 9], but its dimension 1 must be 2*N");
  Case halves(test::dozen[6]);
  KW_EXPECT_EQ(shape(halves.in(0, KW_F32, {3, 10}).bind().results[0]), "f32:3,5");
  KW_EXPECT_THROWS(Case(test::dozen[6]).in(0, KW_F32, {3, 9}).bind(), "a dimension of y is N/2 with N = 9, which is not a whole number");
  Case blocks(test::dozen[10]);
  KW_EXPECT_EQ(shape(blocks.in(0, KW_F32, {2, 3, 256}).bind().results[1]), "f32:2,3,2");
  KW_EXPECT_EQ(shape(blocks.bound.results[0]), "fp8e4m3:2,3,256");
  Case jagged(test::dozen[11]);
  jagged.in(0, KW_F32, {7, 5}).in(1, KW_I64, {4}).bind();
  KW_EXPECT_EQ(jagged.bound.dims[2], 3);
  KW_EXPECT_THROWS(Case(test::dozen[11]).in(0, KW_F32, {7, 5}).in(1, KW_I64, {0}).bind(),
                   "offsets has shape [0], but its dimension 0 must be R+1");
  Case minus("f(x: f32[N]) -> y: f32[N-5]");
  KW_EXPECT_THROWS(minus.in(0, KW_F32, {3}).bind(), "a dimension of y is N-5 with N = 3, which is negative (-2)");
  Case huge("f(x: i8[N]) -> y: i8[N*N]");
  KW_EXPECT_THROWS(huge.in(0, KW_I8, {int64_t{1} << 40}).bind(), "which is more than 64 bits can count");
  Case wide("f(x: i8[N]) -> y: f64[N, N]");
  KW_EXPECT_THROWS(wide.in(0, KW_I8, {int64_t{1} << 31}).bind(), "f: y has more bytes than 64 bits can count");
  KW_EXPECT_EQ(wide.in(0, KW_I8, {0}).bind().results[0].elements(), 0);
  Case longer("f(x: i8[*B]) -> y: i8[*B, 2]");
  KW_EXPECT_THROWS(longer.in(0, KW_I8, {1, 1, 1, 1, 1, 1, 1, 1}).bind(), "f: y would have more than 8 dimensions");
  Case chain("f(x: f32[A, 2*N-A, (M+N)*3]) -> y: f32[M]");
  KW_EXPECT_EQ(shape(chain.in(0, KW_F32, {4, 6, 21}).bind().results[0]), "f32:2");
  Case acc("f(s: acc(T)[N], x: T[N]) -> y: acc(T)[N] where T: bf16 f64 i32");
  KW_EXPECT_EQ(shape(acc.in(0, KW_F32, {4}).in(1, KW_BF16, {4}).bind().results[0]), "f32:4");
  KW_EXPECT_EQ(shape(acc.in(0, KW_I64, {4}).in(1, KW_I32, {4}).bind().results[0]), "i64:4");
  KW_EXPECT_THROWS(acc.in(0, KW_F32, {4}).in(1, KW_F64, {4}).bind(), "f: s is f32, but must be f64");
}

void test_lists() {
  const char* adamw = test::dozen[9];
  auto make = [&](Case& c, std::vector<std::vector<int64_t>> shapes, size_t i, int32_t dtype) {
    std::vector<kw_tensor> items;
    for (auto& s : shapes) items.push_back(c.tensors.make(dtype, s));
    c.list(i, items);
  };
  Case c(adamw);
  for (size_t i = 0; i < 4; i++) make(c, {{3, 4}, {5}, {}}, i, i < 2 ? KW_BF16 : KW_F32);
  c.in(5, KW_I64, {}).bind();
  KW_EXPECT_EQ(c.bound.dims[0], 12 + 5 + 1);
  KW_EXPECT_EQ(c.bound.present, 0x2fu);
  c.bind_all();
  make(c, {{3, 4}, {6}, {}}, 1, KW_BF16);
  KW_EXPECT_THROWS(c.bind(), "adamw: grad[1] has leading dimensions [6], but param[1] has [5]");
  make(c, {{3, 4}, {5}}, 1, KW_BF16);
  KW_EXPECT_THROWS(c.bind(), "adamw: grad has 2 tensors, but param has 3");
  make(c, {{3, 4}, {5}, {}}, 1, KW_F64);
  KW_EXPECT_THROWS(c.bind(), "adamw: grad is f64, but must be bf16 or f32");
  c.inputs[1] = {nullptr, 0};
  KW_EXPECT_THROWS(c.bind(), "adamw: grad is an empty list");
  make(c, {{3, 4}, {5}, {}}, 1, KW_F32);
  make(c, {{3, 4}, {5}, {}}, 4, KW_F32);
  KW_EXPECT_EQ(c.bind().present, 0x3fu);
  make(c, {{3, 4}, {5}, {}}, 0, KW_F32);
  KW_EXPECT_THROWS((c.list(0, {c.tensors.make(KW_BF16, {3, 4}), c.tensors.make(KW_F32, {5}), c.tensors.make(KW_BF16, {})}).bind()),
                   "adamw: param[1] is f32, but param is bf16, and both have the type T");
  Case clip(test::dozen[14]);
  make(clip, {{1000}, {10, 10}}, 0, KW_F32);
  KW_EXPECT_EQ(shape(clip.bind().results[1]), "f32:2124");
}

// The way of every call: no allocation, and fast enough to forget.
void test_speed() {
  Case c(rms_norm);
  c.in(0, KW_BF16, {8, 1024, 4096}).in(1, KW_F32, {4096}).bind();
  c.make_results();
  double inputs = 1e9, both = 1e9;
  int64_t before = allocations;
  for (int round = 0; round < 20; round++) {
    constexpr int calls = 5000;
    auto time = [&](auto&& f) {
      auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; i++) f();
      return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
    };
    inputs = std::min(inputs, time([&] { bind_inputs(*c.op, c.inputs.data(), c.attributes.data(), c.bound); }));
    both = std::min(both, time([&] {
                      Bound b;
                      bind_inputs(*c.op, c.inputs.data(), c.attributes.data(), b);
                      bind_results(c.results.data(), b);
                    }));
  }
  KW_EXPECT_EQ(allocations - before, 0);
  std::cout << "rms_norm: bind_inputs " << inputs << " ns, with a fresh Bound and bind_results " << both << " ns\n";
}

}  // namespace

int main() {
  test_rms_norm();
  test_backward();
  test_sentences();
  test_devices();
  test_attributes();
  test_arguments();
  test_sizes();
  test_lists();
  test_speed();
  return test::finish();
}
