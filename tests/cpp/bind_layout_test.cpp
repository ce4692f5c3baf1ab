// Where rows may lie, what has to be copied, and which layouts of results overlap with something.
#include <limits>

#include "kw/core/rows.h"
#include "testing/expect.h"
#include "tests/cpp/calls.h"
#include "tests/cpp/dozen.h"

using namespace kw;
using test::Case;
using test::Tensors;

namespace {

constexpr const char* rms_norm =
    R"(rms_norm(x: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6) -> y: T[*B, N] where T: f32 bf16, W: T f32)";

void test_layout() {
  auto copy = [](std::vector<int64_t> sizes, std::vector<int64_t> strides, int32_t inner) {
    Tensors t;
    return needs_copy(t.make(KW_F32, std::move(sizes), std::move(strides)), inner);
  };
  KW_EXPECT(!copy({2, 3, 4}, {12, 4, 1}, 1));
  KW_EXPECT(!copy({2, 3, 4}, {30, 10, 1}, 1));                   // a slice of columns: rows at one distance
  KW_EXPECT(!copy({2, 3, 4}, {50, 10, 1}, 1));                   // a slice in two dimensions
  KW_EXPECT(!copy({2, 3, 4}, {4, 8, 1}, 1));                     // leading dimensions transposed
  KW_EXPECT(!copy({2, 3, 5, 4}, {400, 100, 10, 1}, 1));          // three distances
  KW_EXPECT(!copy({2, 3, 5, 7, 4}, {2800, 700, 70, 10, 1}, 1));  // and dimensions that follow each other
  KW_EXPECT(copy({2, 3, 5, 7, 4}, {9000, 1000, 80, 10, 1}, 1));  // four
  KW_EXPECT(copy({2, 3, 4}, {12, 1, 3}, 1));                     // transposed
  KW_EXPECT(copy({3, 4}, {4, 2}, 1));
  KW_EXPECT(copy({3, 4}, {1, 0}, 1));
  KW_EXPECT(!copy({3, 4}, {0, 1}, 1));
  KW_EXPECT(!copy({2, 3, 4}, {0, 0, 1}, 1));
  KW_EXPECT(!copy({2, 3, 4}, {0, 4, 1}, 1));  // rows repeat
  KW_EXPECT(!copy({2, 3, 4}, {4, 0, 1}, 1));
  KW_EXPECT(!copy({2, 3, 5, 4}, {0, 8, 0, 1}, 1));
  KW_EXPECT(!copy({1, 3, 4}, {999, 4, 1}, 1));
  KW_EXPECT(!copy({3, 1}, {7, 999}, 1));
  KW_EXPECT(copy({3, 4}, {-4, 1}, 1));
  KW_EXPECT(!copy({0, 4}, {1, 9}, 1));
  KW_EXPECT(!copy({3, 4}, {4, 1}, 2));
  KW_EXPECT(copy({3, 4}, {8, 1}, 2));  // a row is both dimensions
  KW_EXPECT(!copy({}, {}, 0));
  KW_EXPECT(copy({4}, {2}, 1));
  KW_EXPECT(!copy({4}, {2}, 0));
  KW_EXPECT(copy({int64_t{1} << 40, int64_t{1} << 40}, {int64_t{1} << 40, 1}, 2));
  KW_EXPECT(
      !copy({3, 3, 2}, {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max(), 1}, 1));  // but too large, see below
  const Contract c = parse_contract(test::dozen[13]);
  KW_EXPECT_EQ(row_rank(c.inputs[0].type), 3);
  KW_EXPECT_EQ(row_rank(c.inputs[1].type), 2);

  Case transposed(rms_norm);
  KW_EXPECT_THROWS(transposed.in(0, KW_F32, {3, 4}, {1, 3}).bind(),
                   "rms_norm: x has a layout that the op cannot read (sizes [3, 4], strides [1, 3])");
  KW_EXPECT_THROWS(transposed.bind(), "make it contiguous first");
  KW_EXPECT_THROWS(Case(rms_norm).in(0, KW_F32, {3, 4}, {int64_t{1} << 62, 1}).bind(), "x has more bytes than 64 bits can count");
  KW_EXPECT_THROWS(
      Case(rms_norm).in(0, KW_F32, {3, 3, 2}, {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max(), 1}).bind(),
      "x has more bytes than 64 bits can count");
}

// rows_of and Rows::at, on the host, against the tensor's own strides.
void test_rows() {
  auto check = [](std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t at) {
    Tensors tensors;
    const kw_tensor t = tensors.make(KW_F32, std::move(sizes), std::move(strides));
    int64_t want = 0, row = at;
    for (int32_t d = t.rank - 2; d >= 0; row /= t.sizes[d], d--) want += row % t.sizes[d] * t.strides[d];
    const Rows rows = rows_of(t, 1);
    KW_EXPECT_EQ(rows.at(at), want);
    __extension__ using Wide = unsigned __int128;  // the device's division
    for (int i = 0; i < 2 && rows.size[i]; i++)
      for (int64_t r : {int64_t{0}, at, std::numeric_limits<int64_t>::max() / rows.size[i] / 3 * rows.size[i],
                        std::numeric_limits<int64_t>::max() / rows.size[i] / 3 * rows.size[i] - 1,
                        std::numeric_limits<int64_t>::max() / rows.size[i] * rows.size[i] - 1, std::numeric_limits<int64_t>::max()})
        if (r >= 0)
          KW_EXPECT_EQ(
              static_cast<int64_t>(static_cast<uint64_t>(Wide{static_cast<uint64_t>(r)} * rows.reciprocal[i] >> 64) >> rows.shift[i]),
              r / rows.size[i]);
  };
  for (int64_t at : {0, 1, 2, 3, 6, 7, 13, 29, 59, 209}) {
    check({210, 4}, {8, 1}, at);
    check({2, 105, 4}, {1000, 4, 1}, at);
    check({105, 2, 4}, {4, 1000, 1}, at);
    check({2, 3, 5, 7, 4}, {2800, 700, 70, 10, 1}, at);
    check({14, 5, 3, 4}, {11, 1000, 100, 1}, at);
    check({14, 5, 3, 4}, {0, 1000, 0, 1}, at);
    check({7, 10, 3, 4}, {16, 0, 4, 1}, at);
  }
  for (int64_t size : {int64_t{2}, int64_t{3}, int64_t{4}, int64_t{7}, int64_t{127}, int64_t{128}, int64_t{129}, (int64_t{1} << 31) - 1,
                       int64_t{1} << 31, (int64_t{1} << 31) + 1, (int64_t{1} << 40) + 15})
    check({3, size, 4}, {size * 9, 8, 1}, size * 2 - 1);
}

// The rows of a result may lie between those of another tensor, but not on them.
void test_overlap() {
  std::vector<float> memory(4096);
  auto overlaps = [&](int64_t y_at, std::vector<int64_t> y_strides, int64_t x_at, std::vector<int64_t> x_strides,
                      std::vector<int64_t> sizes = {3, 4, 5}) {
    Case c(rms_norm);
    kw_tensor x = c.tensors.make(KW_F32, sizes, std::move(x_strides)), y = c.tensors.make(KW_F32, sizes, std::move(y_strides));
    x.data = memory.data() + x_at, y.data = memory.data() + y_at;
    c.in(0, x).bind();
    c.make_results();
    c.set(0, y);
    try {
      c.bind_all();
    } catch (const Error& e) {
      KW_EXPECT(std::string_view(e.what()).find("overlap") != std::string_view::npos);
      return true;
    }
    return false;
  };
  KW_EXPECT(!overlaps(0, {20, 5, 1}, 60, {20, 5, 1}));
  KW_EXPECT(overlaps(0, {20, 5, 1}, 59, {20, 5, 1}));
  KW_EXPECT(!overlaps(0, {60, 10, 1}, 5, {60, 10, 1}));  // columns of one buffer
  KW_EXPECT(overlaps(0, {60, 10, 1}, 4, {60, 10, 1}));
  KW_EXPECT(!overlaps(0, {100, 20, 1}, 40, {100, 0, 1}, {3, 2, 5}));
  KW_EXPECT(!overlaps(0, {100, 10, 1}, 50, {100, 10, 1}));  // of one buffer, in the outer dimension
  KW_EXPECT(overlaps(0, {100, 10, 1}, 30, {100, 10, 1}));
  KW_EXPECT(overlaps(0, {5, 15, 1}, 0, {20, 5, 1}));     // transposed onto itself
  KW_EXPECT(!overlaps(0, {10, 30, 1}, 5, {40, 10, 1}));  // and between its own rows
  KW_EXPECT(overlaps(2, {10, 30, 1}, 5, {40, 10, 1}));
  KW_EXPECT(!overlaps(0, {64, 16, 1}, 8, {0, 16, 1}));  // expanded
  KW_EXPECT(overlaps(0, {64, 16, 1}, 12, {0, 16, 1}));
  KW_EXPECT(overlaps(0, {4, 20, 1}, 2000, {20, 5, 1}));  // y with itself
  KW_EXPECT(overlaps(0, {0, 5, 1}, 2000, {20, 5, 1}));
}

}  // namespace

int main() {
  test_layout();
  test_rows();
  test_overlap();
  return test::finish();
}
