// Where the elements of a tensor lie: the layouts that an op has to read as they are, and those that it has to refuse.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kw::test {

enum class Layout {
  plain,
  row_gap,  // rows lie further apart than they are long (slices of a wider tensor)
  offset,   // every tensor starts 1 to 15 elements, an odd number, into its allocation
  both,
  odd_ones,    // dimensions of size one carry a nonsensical stride
  distances,   // a slice in every leading dimension: up to three distances say where rows lie
  transposed,  // the leading dimensions lie in reverse order
  expanded,    // the first leading dimension repeats (stride 0); inputs only
  repeated,    // the last leading dimension repeats; inputs only
  shift,       // every tensor starts 1 + seed % 15 elements into its allocation
  mixed,       // each tensor in another one of these
  count
};
const char* layout_name(Layout layout);
std::optional<Layout> parse_layout(std::string_view name);

struct Arrangement {  // in elements
  std::vector<int64_t> strides;
  int64_t offset = 0;
};
// For the k-th tensor of a call; rows are its last `inner` dimensions. What is written never repeats: `result`. Gaps and offsets differ
// from tensor to tensor, so that taking one's stride for another's shows; odd ones break every vector width, and in `row_gap` and
// `distances` a multiple of 8 keeps vectors of 16 bits aligned.
Arrangement arrange(Layout layout, const std::vector<int64_t>& sizes, int inner, size_t k, uint64_t seed, bool result);

}  // namespace kw::test
