#include <algorithm>

#include "kw/core/bind_sentences.h"
#include "kw/core/error.h"

namespace kw {
namespace {

struct Region {  // memory that a tensor covers; begin == end for an empty one
  uintptr_t begin, end;
  const kw_tensor* tensor;
  int32_t inner;
};

Region region_of(const kw_tensor& t, int32_t inner, const RowLayout& rows) {
  const auto begin = reinterpret_cast<uintptr_t>(t.data);
  if (rows.count == 0) return {begin, begin, &t, inner};
  int64_t last = rows.length;
  for (int32_t i = 0; i < rows.distances; i++) last += rows.strides[i] * (rows.sizes[i] - 1);
  return {begin, begin + static_cast<uintptr_t>(last * dtype_bytes(t.dtype)), &t, inner};
}
Region region_of(const kw_tensor& t, int32_t inner) {
  RowLayout rows;
  fold_rows(t, inner, rows);
  return region_of(t, inner, rows);
}

__extension__ using Wide = __int128;  // sums of distances that fit 63 bits each

// Whether some row of one tensor meets some row of the other. A row of b lies `ahead` bytes behind a row of a, by a sum of multiples of
// both tensors' distances: the multiples that can bring it near are tried, the largest distance first. Of views of one buffer that is one
// or two a distance; where it would be very many, the answer is yes.
class Meeting {
 public:
  Meeting(const Region& a, const Region& b) : a_length_(add(a, true)), b_length_(add(b, false)) {}
  bool happens(Wide ahead, int32_t axis = 0) {
    if (axis == count_) return ahead < a_length_ && ahead > -b_length_;
    Wide low = 0, high = 0;  // what the shorter distances can add
    for (int32_t i = axis + 1; i < count_; i++)
      low += axes_[i].least * Wide{axes_[i].stride}, high += axes_[i].most * Wide{axes_[i].stride};
    const Axis& x = axes_[axis];
    Wide first = (-b_length_ - ahead - high) / x.stride - 1, last = (a_length_ - ahead - low) / x.stride + 1;
    first = std::max<Wide>(first, x.least), last = std::min<Wide>(last, x.most);
    for (Wide m = first; m <= last; m++)
      if (++steps_ > 4096 || happens(ahead + m * x.stride, axis + 1)) return true;
    return false;
  }

 private:
  struct Axis {
    int64_t stride, least, most;  // bytes; its multiples
  };
  Wide add(const Region& region, bool backwards) {  // the bytes of a row
    const int64_t bytes = dtype_bytes(region.tensor->dtype);
    RowLayout rows;
    fold_rows(*region.tensor, region.inner, rows);
    for (int32_t i = 0; i < rows.distances; i++)
      add(rows.strides[i] * bytes, backwards ? 1 - rows.sizes[i] : 0, backwards ? 0 : rows.sizes[i] - 1);
    return Wide{rows.length} * bytes;
  }
  void add(int64_t stride, int64_t least, int64_t most) {
    if (stride == 0) return;  // the same row again
    for (int32_t i = 0; i < count_; i++)
      if (axes_[i].stride == stride) return void((axes_[i].least += least, axes_[i].most += most));
    int32_t at = count_++;
    for (; at > 0 && axes_[at - 1].stride < stride; at--) axes_[at] = axes_[at - 1];
    axes_[at] = {stride, least, most};
  }
  Axis axes_[2 * RowLayout::max_distances];
  int32_t count_ = 0, steps_ = 0;
  Wide a_length_, b_length_;
};

bool overlap(const Region& a, const Region& b) {
  if (a.begin == a.end || b.begin == b.end || a.end <= b.begin || b.end <= a.begin) return false;
  return Meeting(a, b).happens(static_cast<Wide>(b.begin) - static_cast<Wide>(a.begin));
}

void check_data(const Complaint& complain, const char* name, const kw_tensor& t, const Region& region) {
  const auto address = reinterpret_cast<uintptr_t>(t.data);
  if (region.begin == region.end) return;
  if (!t.data) complain.say(format("%s is a null pointer, but has elements", name));
  if (address % static_cast<uintptr_t>(dtype_bytes(t.dtype)) != 0)
    complain.say(format("%s is at the address %p, which is no multiple of the %d bytes of %s", name, t.data, dtype_bytes(t.dtype),
                        dtype_name(t.dtype)));
  if (region.end < region.begin) complain.say(format("%s reaches beyond the end of memory", name));
}

Region check_result(const Complaint& complain, const Bound& bound, const Result& result, const TensorSpec& spec, const kw_tensor& t) {
  const char* name = result.name.c_str();
  if (t.dtype != spec.dtype) complain.element(name, t, spec.dtype);
  bool shape = t.rank == spec.rank && (t.rank == 0 || (t.sizes && t.strides));
  for (int32_t d = 0; shape && d < t.rank; d++) shape = t.sizes[d] == spec.sizes[d];
  if (!shape) {
    if (t.rank >= 0 && t.rank <= KW_MAX_RANK && t.rank > 0 && (!t.sizes || !t.strides))
      complain.say(result.name + " comes without its sizes or strides");
    std::string got = t.rank >= 0 && t.rank <= KW_MAX_RANK ? "shape " + shape_text(t.sizes, t.rank) : format("rank %d", t.rank);
    complain.say(result.name + " has " + got + ", but must have shape " + shape_text(spec.sizes, spec.rank));
  }
  const kw_bound& raw = bound.raw;
  if (t.device_type != raw.device_type || (t.device_type != KW_CPU && t.device_index != raw.device_index))
    complain.device(name, t, "the op", raw.device_type, raw.device_index);
  RowLayout rows;
  const bool folds = fold_rows(t, row_rank(result.type), rows);
  if (!countable(t, rows)) complain.too_large(name);
  if (!folds) complain.layout(name, t);
  if (rows_overlap(rows)) complain.written_rows(name);
  Region region = region_of(t, row_rank(result.type), rows);
  check_data(complain, name, t, region);
  return region;
}

}  // namespace

void bind_results(const kw_argument* results, Bound& bound) {
  const Contract& c = bound.op->contract;
  const Complaint complain(c);
  if (!results && !c.results.empty()) complain.say("the results are a null pointer");

  struct Written {
    Region region;
    const char* name;
    int32_t input;  // -1 for a result
  } written[2 * KW_MAX_ARGUMENTS];
  int32_t count = 0;
  for (size_t r = 0; r < c.results.size(); r++) {
    const Result& result = c.results[r];
    const TensorSpec& spec = bound.results[r];
    const kw_argument& a = results[r];
    if (!spec.present) {
      if (a.count != 0)
        complain.say(result.name + " is given, but it comes only with " + c.inputs[static_cast<size_t>(result.present_with)].name +
                     ", which is absent");
      continue;
    }
    if (a.count == 0 && result.kind == Result::Kind::saved) continue;  // no gradient is wanted
    if (a.count != 1 || !a.tensors) complain.say(result.name + (a.count == 0 ? " is missing" : " must be one tensor"));
    written[count++] = {check_result(complain, bound, result, spec, a.tensors[0]), result.name.c_str(), -1};
  }
  // A list that is written may be long: its items are compared with results, not with each other.
  for (size_t i = 0; i < c.inputs.size(); i++)
    if (c.inputs[i].type.written && !c.inputs[i].type.list && (bound.present >> i & 1))
      written[count++] = {region_of(bound.raw.inputs[i].tensors[0], row_rank(c.inputs[i].type)), c.inputs[i].name.c_str(),
                          static_cast<int32_t>(i)};

  auto refuse_overlap = [&](const char* a, const char* b) {
    complain.say(format("%s and %s overlap in memory, but %s is written", a, b, a));
  };
  for (int32_t a = 0; a < count; a++)
    for (int32_t b = 0; b < a; b++)
      if (overlap(written[a].region, written[b].region)) refuse_overlap(written[a].name, written[b].name);
  for (size_t i = 0; i < c.inputs.size(); i++) {
    const int32_t inner = row_rank(c.inputs[i].type);
    for (int32_t k = 0; k < bound.raw.inputs[i].count; k++) {
      const kw_tensor& t = bound.raw.inputs[i].tensors[k];
      Region region = region_of(t, inner);
      check_data(complain, c.inputs[i].name.c_str(), t, region);
      for (int32_t w = 0; w < count; w++)
        if (written[w].input != static_cast<int32_t>(i) && overlap(written[w].region, region))
          refuse_overlap(written[w].name, c.inputs[i].name.c_str());
    }
  }
  bound.raw.results = results;
}

}  // namespace kw
