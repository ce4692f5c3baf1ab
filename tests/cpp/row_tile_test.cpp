// The tile chooser for every row length: a tile covers its row, fits the hardware, and never reads wider than the rows allow.
#include "kw/core/row_tile.h"

#include "testing/expect.h"

namespace {

constexpr kw::TunedTile tuned[] = {{KW_BF16, 64, 4, 8, 0}, {KW_F32, 1024, 1, 4, 1}};

bool good(const kw::RowTile& t, kw::DType type, int64_t length, int32_t alignment, int32_t registers, bool is_tuned) {
  const int64_t bytes = length * kw::dtype_bytes(type), needed = (length + t.vec - 1) / t.vec;
  const bool covers = t.length() >= length && (t.threads == 1 || t.length() < 2 * length + t.threads * t.vec || needed < 2 * t.threads);
  const bool runs =
      std::has_single_bit(static_cast<uint32_t>(t.threads)) && t.block() <= 1024 && t.block() % 32 == 0 && t.blocks >= (is_tuned ? 0 : 1);
  const bool reads =
      bytes % t.align == 0 && t.align >= kw::dtype_bytes(type) && t.align <= std::max(alignment, kw::dtype_bytes(type)) && t.align <= 16;
  const bool fits = is_tuned || int64_t{t.vectors} * registers * t.block() * 2 <= 65536;
  return covers && runs && reads && fits;
}

}  // namespace

int main() {
  kw_signature signature{};
  for (kw::DType type : {KW_BF16, KW_F32})
    for (int32_t registers : {8, 12, 24})
      for (int32_t alignment : {16, 4, 2, 1}) {
        const kw_problem raw{&signature, nullptr, nullptr, nullptr, 0, alignment, 1};
        const kw::Problem p(raw);
        int wrong = 0, none = 0;
        int64_t first_none = 0;
        for (int64_t length = 1; length < 70000; length++) {
          const auto tile = kw::choose_row_tile(tuned, p, type, length, registers);
          if (!tile) {
            if (none++ == 0) first_none = length;
            continue;
          }
          const bool is_tuned = tile->threads * tile->vectors == (type == KW_BF16 ? 512 : 4096) && tile->rows == (type == KW_BF16 ? 4 : 1);
          if (!good(*tile, type, length, alignment, registers, is_tuned) && wrong++ == 0)
            std::cerr << "  length " << length << ": " << tile->name() << '\n';
        }
        KW_EXPECT_EQ(wrong, 0);
        // What takes less than a quarter of a multiprocessor's registers is held; what is longer goes by in pieces.
        KW_EXPECT(none == 0 || first_none / kw::vector_elements(type) * registers * 4 >= 65536);
      }
  const kw_problem raw{&signature, nullptr, nullptr, nullptr, 0, 16, 1};
  const kw::Problem p(raw);
  // A tuned tile serves rows that fill more than 7/8 of it, and no others.
  KW_EXPECT_EQ(kw::choose_row_tile(tuned, p, KW_BF16, 4096, 8)->name(), "kw::RowTile<64, 4, 8, 8, 16>");
  KW_EXPECT_EQ(kw::choose_row_tile(tuned, p, KW_BF16, 3592, 8)->rows, 4);
  KW_EXPECT_EQ(kw::choose_row_tile(tuned, p, KW_BF16, 3584, 8)->name(), "kw::RowTile<64, 2, 7, 8, 16>");
  KW_EXPECT_EQ(kw::choose_row_tile(tuned, p, KW_BF16, 4104, 8)->rows, 1);
  // The widest access is what divides all rows' addresses and their length.
  KW_EXPECT_EQ(kw::choose_row_tile(tuned, p, KW_BF16, 4095, 8)->align, 2);
  KW_EXPECT_EQ(kw::choose_row_tile(tuned, p, KW_F32, 1002, 8)->align, 8);
  return kw::test::finish();
}
