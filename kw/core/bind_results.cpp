#include "kw/core/bind_sentences.h"
#include "kw/core/error.h"

namespace kw {
namespace {

struct Region {  // memory that a tensor covers: rows of `length` bytes, `stride` bytes apart
  uintptr_t begin = 0, end = 0;
  int64_t count = 0, length = 0, stride = 0;
};

Region region_of(const kw_tensor& t, int32_t inner) {
  Rows rows;
  fold_rows(t, inner, rows);
  if (rows.count == 0) return {};
  const int64_t bytes = dtype_bytes(t.dtype);
  if (rows.stride == 0) rows.count = 1;  // an expanded tensor reads one row again and again
  Region r{reinterpret_cast<uintptr_t>(t.data), 0, rows.count, rows.length * bytes, rows.stride * bytes};
  r.end = r.begin + static_cast<uintptr_t>((r.count - 1) * r.stride + r.length);
  return r;
}

// Exact where the rows of both are equally far apart (two column slices of one buffer do not overlap), else by first and last byte.
bool overlap(const Region& a, const Region& b) {
  if (a.count == 0 || b.count == 0 || a.end <= b.begin || b.end <= a.begin) return false;
  const int64_t stride = a.count > 1 ? a.stride : b.stride;
  if ((a.count == 1 && b.count == 1) || (a.count > 1 && b.count > 1 && a.stride != b.stride)) return true;
  const int64_t ahead = b.begin >= a.begin ? static_cast<int64_t>((b.begin - a.begin) % static_cast<uintptr_t>(stride))
                                           : stride - 1 - static_cast<int64_t>((a.begin - b.begin - 1) % static_cast<uintptr_t>(stride));
  return ahead < a.length || ahead + b.length > stride;
}

void check_data(const Complaint& complain, const char* name, const kw_tensor& t, const Region& region) {
  const auto address = reinterpret_cast<uintptr_t>(t.data);
  if (region.count == 0) return;
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
  Rows rows;
  const bool folds = fold_rows(t, row_rank(result.type), rows);
  if (!countable(t, rows)) complain.too_large(name);
  if (!folds) complain.layout(name, t);
  if (rows.count > 1 && rows.stride < rows.length) complain.written_rows(name);
  Region region = region_of(t, row_rank(result.type));
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
