#include "testing/catalogue.h"

namespace kw::test {

namespace {

struct Entry {
  int number;
  const char* name;
};
// Those that device code can have; the numbers in between are the host's or a framework's (streams, graphs, launch errors, autotuning).
constexpr Entry catalogue[] = {
    {1, "a barrier is missing"},
    {2, "a barrier that not all threads reach"},
    {3, "blocks write the same place, or the wrong share of a large grid"},
    {4, "regions of shared memory overlap, or one is used anew too early"},
    {5, "an asynchronous copy is not waited for or not fenced"},
    {6, "a block of a cluster reuses or leaves its shared memory too early"},
    {8, "lanes of a warp without the right mask, distance or __syncwarp"},
    {9, "an index overflows 32 bits"},
    {12, "the last elements, or a part that does not fill a tile"},
    {13, "padded lanes or ghost rows enter a sum"},
    {14, "a vector access at an address that its size does not divide"},
    {15, "strides are ignored, or another tensor's are used"},
    {16, "an input that repeats (stride 0)"},
    {17, "a gradient from above that repeats (expanded)"},
    {24, "results that are never written"},
    {25, "shared memory is read that nothing has written"},
    {26, "the answer of an earlier call is kept"},
    {27, "zeros pass where the true answer is small"},
    {28, "NaN or infinity is lost, or appears from nothing"},
    {29, "a row of minus infinities, or a wrong largest element"},
    {30, "NaN passes a comparison"},
    {31, "a difference cancels"},
    {32, "eps is lost"},
    {33, "a sum or a constant in too narrow a type"},
    {35, "denormals are flushed to zero"},
    {36, "steps in another order: mask, cap, rounding"},
    {37, "an input that is needed later is overwritten"},
    {38, "an input that is said to stay is written"},
    {40, "the order of additions changes from run to run"},
    {41, "wrong for structured inputs only"},
    {42, "a workspace is not reset, or reset too often"},
    {44, "beyond the end of an allocation"},
    {45, "the bits of one 16-bit type are read as another's"},
    {48, "rounding that is not to the nearest, ties to even"},
};

// The first line whose parts are all in the layer, its values or layout, or its sentence.
struct Rule {
  const char* layer;  // "" any
  const char* text;   // in the sentence or the reproducing command; "" any
  int number;
  const char* next;
};
constexpr const char* look = "read the place above: it names both accesses";
constexpr Rule rules[] = {
    {"", "shared-race", 1, look},
    {"", "global-race", 3, look},
    {"", "uninit-shared", 25, "is a barrier missing, or a part of the array left out?"},
    {"", "async-pending", 5, "count the copies that may still be on their way at that wait"},
    {"", "cluster-start", 6, "a cluster barrier before the first access to another block"},
    {"", "cluster-exit", 6, "a cluster barrier behind the last access to another block"},
    {"", "barrier-divergence", 2, "take the barrier out of the branch"},
    {"", "exit-before-barrier", 2, "threads that have nothing to do must come along to the barriers"},
    {"", "warp-divergence", 8, "every lane of the mask has to call the same function"},
    {"", "shuffle-inactive", 8, "the mask has to name exactly the lanes that call it"},
    {"", "misaligned", 14, "choose the access by the alignment of address and row length"},
    {"far", "oob", 9, "look for int where int64_t is needed"},
    {"far", "wild-pointer", 9, "look for int where int64_t is needed"},
    {"", "oob", 44, "compare the index with the number of elements before the access"},
    {"", "unwritten-output", 24, "which threads own the elements that are left out?"},
    {"", "never written", 24, "which threads own the elements that are left out?"},
    {"", "held before", 26, "the kernel reads its results' memory before it writes it"},
    {"", "was changed", 37, "an input is written: look for exchanged pointers"},
    {"far", "", 9, "look for int where int64_t is needed"},
    {"repeat", "", 40, "look for atomics on floating point, or a race: KWEMU_SCHEDULE=shuffle shows it"},
    {"rows", "NaN", 3, "rows share something: a buffer, a sum, a block"},
    {"places", "", 36, "kernels of one op sum or round in different orders"},
    {"", "not the nearest to", 48, "round to the nearest, ties to even, once"},
    {"", "as after one rounding", 36, "which number of the definition is not rounded?"},
    {"", "digits are lost", 31, "sum differences from an element of the row, or take two passes"},
    {"layouts", "expanded", 16, "a stride of 0 is a stride"},
    {"layouts", "repeated", 16, "a stride of 0 is a stride"},
    {"layouts", "offset", 14, "does the access follow from the alignment of every tensor?"},
    {"layouts", "", 15, "address every tensor by its own strides"},
    {"values", "nan", 28, "max, min and comparisons drop NaN"},
    {"values", "infinity", 28, "inf - inf and 0 * inf are NaN"},
    {"values", "masked", 29, "subtract 0, not the largest element, where that is minus infinity"},
    {"values", "below", 29, "the largest element begins at minus infinity, not at 0"},
    {"values", "mean1000", 31, "sum differences from an element of the row, or take two passes"},
    {"values", "denormal", 35, "look for ftz, fast-math and products that underflow early"},
    {"values", "tiny", 32, "is eps added before the square root, in the accumulator's type?"},
    {"values", "zeros", 32, "is eps added before the square root, in the accumulator's type?"},
    {"values", "constant", 33, "a long sum of equal numbers stalls in a narrow accumulator"},
    {"values", "", 41, "run the same case with other --values"},
    {"shapes", "in root mean square", 33, "sum in f32 at least"},
    {"", "off to one side", 48, "round to the nearest, ties to even, once"},
    {"shapes", "", 12, "run lengths around it: is only the end of a row wrong?"},
};

}  // namespace

std::string catalogue_name(int number) {
  for (const Entry& e : catalogue)
    if (e.number == number) return e.name;
  return "";
}

std::string likely_cause(const LayerReport& layer) {
  const std::string all = layer.sentence + " " + layer.reproduce;
  if (layer.ok || layer.kind == "refused") return "";
  for (const Rule& r : rules)
    if ((!*r.layer || layer.layer == r.layer) && all.find(r.text) != all.npos)
      return format("%s (catalogue %d): %s", catalogue_name(r.number).c_str(), r.number, r.next);
  return "";
}

}  // namespace kw::test
