// The command line's argument texts: what they mean, what is said of wrong ones, and that no text at all can do worse than that.
#include <algorithm>
#include <limits>

#include "kw/core/room.h"
#include "testing/arguments.h"
#include "testing/expect.h"
#include "testing/inputs.h"
#include "testing/random.h"

using namespace kw;

namespace {

void choose(const Problem&, const kw_device_facts&, Choice&) {}
void fill(const Call&, const kw_device_facts&, const kw_choice&, Launches&) {}
void nothing(const Call&) {}

constexpr auto op_def = make_op<choose, fill, nothing, nothing>(
    "args_test(x: T[*B, N], weight: W[N]?, index: i32[*B], *, eps: float >= 0 = 1e-6, groups: int >= 1 = 2, mode: mean|sum = mean, fast: "
    "bool = false) "
    "-> y: T[*B, N]\n  where T: f32 bf16, W: T f32");
constexpr auto half_def = make_op<choose, fill, nothing, nothing>("args_half(x: T[*B, N]) -> y: T[*B, N/2]\n  where T: f32 bf16");
const kw_op_def* const defs[] = {&op_def, &half_def};
const kw_room room = {sizeof(kw_room), KW_ABI_VERSION, "args_room", defs, 2, nullptr};

void meanings(const Op& op) {
  test::Arguments a = test::parse_arguments(op, {"x=bf16[2,3,40]", "eps=1e-3 mode=sum", "groups=7", "fast=true"});
  KW_EXPECT_EQ(test::describe(op, a),
               "x=bf16[2,3,40] index=i32[2,3] eps=0.001 groups=7 mode=sum fast=true");  // index is derived, weight absent
  KW_EXPECT(!a.inputs[1].present && a.inputs[2].present && a.inputs[2].dtype == KW_I32);
  KW_EXPECT_EQ(test::describe(op, test::parse_arguments(op, {"x=f32[5] weight=none"})), "x=f32[5] index=i32[]");
  KW_EXPECT_EQ(test::row_count(op, a), int64_t{6});
  // What describe writes, parse reads.
  KW_EXPECT_EQ(test::describe(op, test::parse_arguments(op, {test::describe(op, a)})), test::describe(op, a));
}

void sentences(const Op& op) {
  auto parse = [&](const char* text) { return test::parse_arguments(op, {text}); };
  KW_EXPECT_THROWS(parse(""), "x is missing: add --arg x=dtype[sizes]");
  KW_EXPECT_THROWS(parse("x="), "write name=dtype[sizes]");
  KW_EXPECT_THROWS(parse("=f32[4]"), "write name=dtype[sizes]");
  KW_EXPECT_THROWS(parse("x=f32[-1]"), "negative size, -1");
  KW_EXPECT_THROWS(parse("x=f32[1,,2]"), "'' is not a size of x");
  KW_EXPECT_THROWS(parse("x=f32[1"), "is not a tensor for x");
  KW_EXPECT_THROWS(parse("x=f32]1["), "is not a tensor for x");
  KW_EXPECT_THROWS(parse("x=f33[4]"), "did you mean f32?");
  KW_EXPECT_THROWS(parse("x=bf16[99999999999999999999]"), "does not fit in 64 bits");
  KW_EXPECT_THROWS(parse("x=bf16[9223372036854775807]"), "more bytes than 64 bits can count");
  KW_EXPECT_THROWS(parse("x=bf16[3037000500,3037000500]"), "more bytes than 64 bits can count");
  KW_EXPECT_THROWS(parse("x=f32[1,1,1,1,1,1,1,1,1]"), "more than 8 dimensions");
  KW_EXPECT_THROWS(parse("x=f32[4] x=f32[4]"), "x is given twice");
  KW_EXPECT_THROWS(parse("x=f32[4] wieght=f32[4]"), "did you mean weight?");
  KW_EXPECT_THROWS(parse("x=f32[4] eps=small"), "eps='small' is not a number");
  KW_EXPECT_THROWS(parse("x=f32[4] groups=2.5"), "is not a whole number");
  KW_EXPECT_THROWS(parse("x=f32[4] mode=max"), "is not one of mean, sum");
  KW_EXPECT_THROWS(parse("x=f32[4] fast=1"), "neither true nor false");
  KW_EXPECT_THROWS(parse("x=f32[0x10]"), "is not a size of x");
}

// A few thousand texts, mutated from good ones: each is read or refused with a sentence that names the op.
void hostile(const Op& op) {
  const std::string good[] = {"x=bf16[8192,4096] weight=bf16[4096] eps=1e-5", "x=f32[] index=i32[]",
                              "x=f32[2,3] mode=sum groups=9 fast=true", "weight=none x=bf16[1,0,3]"};
  const std::string alphabet = std::string("[]=,. -+0123456789exbfTnaonui*\\'\"\n\t\x7f\xff") + '\0';
  test::Random random(11);
  int read = 0, refused = 0, odd = 0;
  for (int i = 0; i < 6000; i++) {
    std::string text = good[random.below(4)];
    for (int64_t edits = 1 + random.below(4); edits > 0; edits--) {
      const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(text.size()) + 1));
      const char c = alphabet[static_cast<size_t>(random.below(static_cast<int64_t>(alphabet.size())))];
      switch (random.below(5)) {
        case 0:
          text.insert(at, 1, c);
          break;
        case 1:
          text.erase(at, static_cast<size_t>(random.below(4)));
          break;
        case 2:
          if (at < text.size()) text[at] = c;
          break;
        case 3:
          text.insert(at, std::string(static_cast<size_t>(random.below(40)), c));
          break;
        default:
          text.insert(at, good[random.below(4)].substr(0, static_cast<size_t>(random.below(20))));
      }
    }
    try {
      const test::Arguments a = test::parse_arguments(op, {text});
      for (const test::Argument& t : a.inputs)  // what was read can be counted
        for (int64_t s : t.sizes) odd += s < 0;
      test::describe(op, a);
      read++;
    } catch (const Error& e) {
      odd += e.status() != KW_ERROR_ARGUMENT || std::string(e.what()).find("args_test: ") != 0 || std::string(e.what()).size() > 600;
      refused++;
    }
  }
  KW_EXPECT_EQ(odd, 0);
  KW_EXPECT(read >= 50);  // some mutations are harmless
  KW_EXPECT(refused > 1000);
}

void cases() {
  // Shape expressions come out: N/2 never meets an odd N. Every layer has cases, and none is larger than asked.
  const Op& op = get_op("args_half");
  test::Scope scope;
  scope.largest = 5000, scope.longest = 2000;
  int64_t most = 0;
  for (const auto& list :
       {test::shape_cases(op, scope), test::dtype_cases(op, scope), test::value_cases(op, scope), test::layout_cases(op, scope)}) {
    KW_EXPECT(!list.empty());
    for (const test::Case& c : list) {
      int64_t n = 1;
      for (int64_t s : c.arguments.inputs[0].sizes) n *= s;
      most = std::max(most, n);
    }
  }
  KW_EXPECT(most > 3000 && most <= 5000);
  bool dtypes[2] = {}, empty = false;
  for (const test::Case& c : test::dtype_cases(op, scope)) dtypes[c.arguments.inputs[0].dtype == KW_BF16] = true;
  for (const test::Case& c : test::shape_cases(op, scope)) empty |= test::row_count(op, c.arguments) == 0;
  KW_EXPECT(dtypes[0] && dtypes[1] && empty);
  // The same seed gives the same bits, another one others; gaps between rows are NaN.
  test::Case c{test::parse_arguments(op, {"x=f32[4,6]"}), test::Values::random, test::Layout::both, 3};
  const auto a = test::make_inputs(op, c), b = test::make_inputs(op, c);
  c.seed = 4;
  KW_EXPECT(a[0].bytes == b[0].bytes && a[0].bytes != test::make_inputs(op, c)[0].bytes);
  KW_EXPECT_EQ(a[0].offset, int64_t{7});
  KW_EXPECT_EQ(a[0].strides[0], int64_t{13});
  const double gap = test::load_number(KW_F32, &a[0].bytes[13 * 4]);
  KW_EXPECT(gap != gap);
}

void strides() {
  const Op& op = get_op("args_half");
  test::Arguments a = test::parse_arguments(op, {"x=f32[4,6:12,2]"});
  KW_EXPECT(a.inputs[0].sizes == (std::vector<int64_t>{4, 6}) && a.inputs[0].strides == (std::vector<int64_t>{12, 2}));
  KW_EXPECT(test::describe(op, a).find("x=f32[4,6:12,2]") != std::string::npos);
  KW_EXPECT_THROWS(test::refuse_strides(op, a), "strides for x: only kw plan takes them");
  KW_EXPECT_THROWS(test::parse_arguments(op, {"x=f32[4,6:12]"}), "x has 2 sizes, but 1 strides");
  KW_EXPECT_THROWS(test::parse_arguments(op, {"x=f32[4,6:12,]"}), "is not a size of x");
}

void suggestions() {
  KW_EXPECT_EQ(test::suggest("chek", {"list", "check"}), " (did you mean check?)");
  KW_EXPECT_EQ(test::suggest("norm", {"rms_norm", "swiglu"}), " (did you mean rms_norm?)");
  KW_EXPECT_EQ(test::suggest("zzzzzzzz", {"list", "check"}), "");
  KW_EXPECT_EQ(test::suggest("", {"list"}), "");
}

}  // namespace

int main() {
  register_room(&room);
  const Op& op = get_op("args_test");
  meanings(op);
  sentences(op);
  hostile(op);
  cases();
  strides();
  suggestions();
  return test::finish();
}
