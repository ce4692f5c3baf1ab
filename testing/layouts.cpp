#include "testing/layouts.h"

#include <algorithm>
#include <iterator>

namespace kw::test {

namespace {
constexpr const char* names[] = {"plain",      "row_gap",  "offset",   "both",  "odd_ones", "distances",
                                 "transposed", "expanded", "repeated", "shift", "mixed"};
static_assert(std::size(names) == static_cast<size_t>(Layout::count));
}  // namespace

const char* layout_name(Layout layout) { return names[static_cast<int>(layout)]; }
std::optional<Layout> parse_layout(std::string_view name) {
  for (size_t i = 0; i < std::size(names); i++)
    if (name == names[i]) return static_cast<Layout>(i);
  return std::nullopt;
}

Arrangement arrange(Layout layout, const std::vector<int64_t>& sizes, int inner, size_t k, uint64_t seed, bool result) {
  if (layout == Layout::mixed) layout = static_cast<Layout>((k + seed) % static_cast<uint64_t>(Layout::mixed));
  const auto rank = static_cast<int>(sizes.size()), lead = std::max(rank - inner, 0);
  const auto odd = static_cast<int64_t>((2 * k + 1 + 2 * (seed % 8)) % 16);
  Arrangement a{std::vector<int64_t>(sizes.size()), 0};
  if (layout == Layout::offset || layout == Layout::both) a.offset = odd;
  if (layout == Layout::shift) a.offset = 1 + static_cast<int64_t>(seed % 15);
  const int64_t row_gap = layout == Layout::row_gap ? 8 * static_cast<int64_t>(k + 1) : layout == Layout::both ? odd : 0;
  const int64_t every_gap = layout == Layout::distances ? 8 * static_cast<int64_t>(k + 1) : 0;
  int64_t step = 1;
  for (int d = rank - 1; d >= lead; d--)
    a.strides[static_cast<size_t>(d)] = step, step *= std::max<int64_t>(sizes[static_cast<size_t>(d)], 1);
  if (lead > 0) step += row_gap;
  for (int i = 0; i < lead; i++) {
    const auto d = static_cast<size_t>(layout == Layout::transposed ? i : lead - 1 - i);
    if (i < 3) step += every_gap;  // a fourth dimension follows the third
    const bool repeats =
        !result && ((layout == Layout::expanded && d == 0) || (layout == Layout::repeated && static_cast<int>(d) == lead - 1));
    a.strides[d] = repeats ? 0 : step;
    if (!repeats) step *= std::max<int64_t>(sizes[d], 1);
    if (layout == Layout::odd_ones && sizes[d] == 1) a.strides[d] = 12345 + static_cast<int64_t>(d);
  }
  return a;
}

}  // namespace kw::test
