#include "kw/core/bind.h"
#include "kw/core/error.h"
#include "testing/expect.h"
#include "tests/cpp/calls.h"
#include "tests/cpp/dozen.h"

using namespace kw;
using test::Case;

namespace {

constexpr const char* rms_norm = test::dozen[0];

void test_results() {
  Case c(rms_norm);
  c.in(0, KW_F32, {2, 3, 8}).in(1, KW_F32, {8}).bind();
  c.make_results();
  c.bind_all();
  KW_EXPECT(c.bound.raw.results == c.results.data());
  auto with = [&](kw_tensor t) {
    c.set(0, t);
    std::string text;
    try {
      c.bind_all();
    } catch (const Error& e) {
      text = e.what();
    }
    return text;
  };
  kw_tensor y = c.tensors.make(KW_F32, {2, 3, 8});
  KW_EXPECT_EQ(with(y), "");
  KW_EXPECT_EQ(with(c.tensors.make(KW_BF16, {2, 3, 8})), "rms_norm: y is bf16, but must be f32");
  KW_EXPECT_EQ(with(c.tensors.make(KW_F32, {6, 8})), "rms_norm: y has shape [6, 8], but must have shape [2, 3, 8]");
  KW_EXPECT_EQ(with(c.tensors.make(KW_F32, {2, 3, 9})), "rms_norm: y has shape [2, 3, 9], but must have shape [2, 3, 8]");
  KW_EXPECT_EQ(with(c.tensors.make(KW_F32, {2, 3, 8}, {0, 0, 1})), "rms_norm: y is written, but its rows may overlap in memory");
  KW_EXPECT_EQ(with(c.tensors.make(KW_F32, {2, 3, 8}, {21, 7, 1})), "rms_norm: y is written, but its rows may overlap in memory");
  KW_EXPECT_EQ(with(c.tensors.make(KW_F32, {2, 3, 8}, {30, 10, 1})), "");
  KW_EXPECT(with(c.tensors.make(KW_F32, {2, 3, 8}, {1, 2, 6})).find("y has a layout") != std::string::npos);
  kw_tensor bad = y;
  bad.data = nullptr;
  KW_EXPECT_EQ(with(bad), "rms_norm: y is a null pointer, but has elements");
  bad.data = static_cast<char*>(y.data) + 2;
  KW_EXPECT(with(bad).find("which is no multiple of the 4 bytes of f32") != std::string::npos);
  bad = y;
  bad.rank = 77;
  KW_EXPECT_EQ(with(bad), "rms_norm: y has rank 77, but must have shape [2, 3, 8]");
  bad = y;
  bad.data = reinterpret_cast<void*>(UINTPTR_MAX - 15);
  KW_EXPECT_EQ(with(bad), "rms_norm: y reaches beyond the end of memory");
  bad = y;
  bad.data = c.inputs[0].tensors[0].data;
  KW_EXPECT_EQ(with(bad), "rms_norm: y and x overlap in memory, but y is written");
  bad.data = static_cast<char*>(c.inputs[1].tensors[0].data) - 4;
  KW_EXPECT_EQ(with(bad), "rms_norm: y and weight overlap in memory, but y is written");
  c.results[0].count = 0;
  KW_EXPECT_THROWS(c.bind_all(), "rms_norm: y is missing");
  KW_EXPECT_THROWS(bind_results(nullptr, c.bound), "rms_norm: the results are a null pointer");
  with(y);
  const_cast<kw_tensor*>(c.inputs[0].tensors)->data = nullptr;
  c.bind();  // shapes alone are fine
  KW_EXPECT_THROWS(c.bind_all(), "rms_norm: x is a null pointer, but has elements");
}

// Two column slices of one buffer interleave without touching; one column more, and they do.
void test_slices() {
  Case s(test::dozen[4]);
  for (size_t i = 0; i < 3; i++) s.in(i, KW_F32, {4, 8});
  s.bind();
  s.make_results();
  auto slices = [&](int64_t stride, int64_t at) {
    kw_tensor a = s.tensors.make(KW_F32, {4, 8}, {stride, 1}), b = s.tensors.make(KW_F32, {4, 8}, {stride, 1});
    b.data = static_cast<char*>(a.data) + 4 * at;
    s.set(0, a), s.set(1, b);
    s.bind_all();
    s.set(0, b), s.set(1, a);
    s.bind_all();
  };
  slices(16, 8), slices(20, 10), slices(20, 32), slices(8, 32), slices(20, -8), slices(20, -12);
  KW_EXPECT_THROWS(slices(16, 7), "overlap in memory");
  KW_EXPECT_THROWS(slices(15, 8), "overlap in memory");
  KW_EXPECT_THROWS(slices(20, 33), "overlap in memory");
  KW_EXPECT_THROWS(slices(20, -7), "overlap in memory");
}

void test_kinds() {
  // Saved results may be left out, scratch may not; what is written in place counts as a result.
  Case ce(test::dozen[7]);
  ce.in(0, KW_F32, {3, 9}).in(1, KW_I64, {3}).bind();
  ce.make_results();
  ce.results[1] = {nullptr, 0};
  ce.bind_all();
  ce.results[2] = {nullptr, 0};
  KW_EXPECT_THROWS(ce.bind_all(), "cross_entropy: part is missing");
  Case in_place("f(x: f32[N]!, z: f32[N]) -> ()");
  in_place.in(0, KW_F32, {8}).in(1, KW_F32, {8}).bind_all();
  in_place.in(1, in_place.inputs[0].tensors[0]);
  KW_EXPECT_THROWS(in_place.bind_all(), "f: x and z overlap in memory, but x is written");
  KW_EXPECT_THROWS(Case("f(x: f32[*B, N]!) -> ()").in(0, KW_F32, {3, 4}, {0, 1}).bind(),
                   "f: x is written, but its rows may overlap in memory");
}

}  // namespace

int main() {
  test_results();
  test_slices();
  test_kinds();
  return test::finish();
}
