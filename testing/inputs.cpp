#include "testing/inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "testing/values.h"

namespace kw::test {

std::string describe(const Op& op, const Case& c) {
  std::string text = "--arg '" + describe(op, c.arguments) + "'";
  if (c.values != Values::random) text += std::string(" --values ") + values_name(c.values);
  if (c.layout != Layout::plain) text += std::string(" --layout ") + layout_name(c.layout);
  if (!c.arguments.saved) text += " --no-saved";
  return text + " --seed " + std::to_string(c.seed);
}

std::vector<Output> outputs_of(const Op& op) {
  std::vector<Output> out;
  for (const Result& r : op.contract.results) out.push_back({r.name, r.type, r.kind == Result::Kind::scratch, -1});
  for (size_t i = 0; i < op.contract.inputs.size(); i++)
    if (const Input& in = op.contract.inputs[i]; in.type.written) out.push_back({in.name, in.type, false, static_cast<int>(i)});
  return out;
}

bool asked_for(const Result& result, const Arguments& arguments) { return result.kind != Result::Kind::saved || arguments.saved; }

bool has_rows(const TensorType& type) {
  return std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& d) { return d.variadic; });
}

int64_t row_count(const Op& op, const Arguments& arguments) {
  const Symbols s = solve(op, arguments);
  for (size_t d = 0; d < s.dims.size(); d++)
    if (op.contract.dim_variadic[d]) return std::max<int64_t>(s.dims[d], 0);
  return 1;
}

namespace {

// Every consistent value of the type variables; `W: T f32` takes T's value or f32.
void type_combinations(const Contract& c, size_t at, Symbols& s, std::vector<Symbols>& out) {
  if (at == c.types.size()) {
    out.push_back(s);
    return;
  }
  std::vector<int> seen;
  for (const TypeVariable::Option& o : c.types[at].options) {
    const int dtype = o.variable >= 0 ? s.types[static_cast<size_t>(o.variable)] : o.dtype;
    if (dtype < 0 || std::find(seen.begin(), seen.end(), dtype) != seen.end()) continue;
    seen.push_back(dtype);
    s.types[at] = dtype;
    type_combinations(c, at + 1, s, out);
  }
  s.types[at] = -1;
}
std::vector<Symbols> type_combinations(const Contract& c) {
  std::vector<Symbols> out;
  Symbols s = unknown_symbols(c);
  type_combinations(c, 0, s, out);
  return out;
}

// The values that attributes without a continuum can take, for floats the bound itself and a large one, for integers bounds or a small one.
std::vector<std::vector<AttributeValue>> attribute_combinations(const Op& op) {
  std::vector<std::vector<AttributeValue>> out{{}};
  for (size_t i = 0; i < op.contract.attributes.size(); i++) {
    const Attribute& a = op.contract.attributes[i];
    std::vector<AttributeValue> choices{default_value(op, i)};
    auto add = [&](double f, int64_t n) {
      AttributeValue v = choices[0];
      v.f = f, v.i = n;
      if (f != choices[0].f || n != choices[0].i) choices.push_back(v);
    };
    if (a.type == Attribute::Type::boolean) add(0, !choices[0].i);
    if (a.type == Attribute::Type::enumeration)
      for (size_t n = 0; n < a.values.size(); n++) add(0, static_cast<int64_t>(n));
    if (a.type == Attribute::Type::floating) {
      if (a.at_least) add(*a.at_least, 0);
      const double larger = choices[0].f + 0.75;
      if (!(a.at_most && larger > *a.at_most) && !(a.below && larger >= *a.below)) add(larger, 0);
    }
    if (a.type == Attribute::Type::integer) {
      if (a.at_least) add(0, static_cast<int64_t>(*a.at_least));
      if (a.at_most) add(0, static_cast<int64_t>(*a.at_most));
      if (!a.at_least && !a.at_most) add(0, 2);  // what indices may be: fill_indices draws it
    }
    std::vector<std::vector<AttributeValue>> longer;
    for (const auto& head : out)
      for (const AttributeValue& v : choices) {
        longer.push_back(head);
        longer.back().push_back(v);
      }
    out = std::move(longer);
  }
  return out;
}

// True when a number that has a floor by default, like eps, is zero: then squares of denormals vanish, powers of the inverse of tiny
// numbers overflow, and nobody promises what follows.
bool lacks_floor(const Op& op, const std::vector<AttributeValue>& attributes) {
  for (size_t i = 0; i < attributes.size(); i++)
    if (op.contract.attributes[i].type == Attribute::Type::floating && attributes[i].f == 0 && default_value(op, i).f != 0) return true;
  return false;
}

// In how many ways the first four optional inputs can be there or not: from 0, all there, to this less one, none.
uint32_t presences(const Op& op) {
  const std::vector<Input>& inputs = op.contract.inputs;
  return 1u << std::min<ptrdiff_t>(std::count_if(inputs.begin(), inputs.end(), [](const Input& i) { return i.type.optional; }), 4);
}

// Arguments for these symbols; bit k of `absent`: the k-th optional input is left out. Nothing when the shape expressions do not come out.
std::optional<Arguments> arguments_for(const Op& op, const Symbols& s, uint32_t absent) {
  Arguments a;
  int optional = 0;
  for (const Input& input : op.contract.inputs) {
    if (input.type.list)
      throw Error(KW_ERROR_UNSUPPORTED, op.contract.name + ": " + input.name + " is a list of tensors, which the checker cannot make yet");
    const bool leave = input.type.optional && (absent >> optional++ & 1u);
    a.inputs.push_back(leave ? Argument{} : instantiate(input.type, s));
    if (!leave && !a.inputs.back().present) return std::nullopt;
  }
  for (size_t i = 0; i < op.contract.attributes.size(); i++) a.attributes.push_back(default_value(op, i));
  return a;
}

void set_leading(const Contract& c, Symbols& s, const std::vector<int64_t>& leading) {
  for (size_t d = 0; d < c.dims.size(); d++)
    if (c.dim_variadic[d]) {
      s.leading[d] = leading;
      s.dims[d] = 1;
      for (int64_t n : leading) s.dims[d] *= n;
    }
}

// Every named dimension takes `length` in turn, the others a small number of their own; rounded up until divisions come out.
std::vector<Arguments> arguments_with(const Op& op, Symbols s, const std::vector<int64_t>& leading, int64_t length, uint32_t absent) {
  const Contract& c = op.contract;
  set_leading(c, s, leading);
  std::vector<Arguments> out;
  size_t named = 0;
  for (size_t d = 0; d < c.dims.size(); d++) named += !c.dim_variadic[d];
  for (size_t turn = 0; turn < std::max<size_t>(named, 1); turn++)
    for (int64_t up = 0; up < 64; up++) {  // divisors of shapes are small
      size_t n = 0;
      for (size_t d = 0; d < c.dims.size(); d++) {
        if (c.dim_variadic[d]) continue;
        s.dims[d] = (n == turn ? length : static_cast<int64_t>(4 + 4 * n)) + up;
        n++;
      }
      if (auto a = arguments_for(op, s, absent)) {
        out.push_back(*a);
        break;
      }
    }
  return out;
}

int64_t largest_tensor(const Arguments& a) {
  int64_t most = 0;
  for (const Argument& t : a.inputs) {
    int64_t n = 1;
    for (int64_t s : t.sizes) n *= s;
    if (t.present) most = std::max(most, n);
  }
  return most;
}

struct Shape {
  std::vector<int64_t> leading;
  int64_t length;
};

void add_cases(const Op& op, const Scope& scope, std::vector<Case>& out, const Symbols& types, const Shape& shape, uint32_t absent,
               Values values = Values::random, Layout layout = Layout::plain) {
  for (Arguments& a : arguments_with(op, types, shape.leading, shape.length, absent)) {
    if (largest_tensor(a) > scope.largest) continue;
    out.push_back({std::move(a), values, layout, scope.seed + out.size()});
  }
}

}  // namespace

std::vector<Case> plain_cases(const Op& op, int64_t rows, int64_t length, const Scope& scope) {
  std::vector<Case> out;
  for (const Symbols& types : type_combinations(op.contract)) {
    std::vector<Arguments> all = arguments_with(op, types, {rows}, length, 0);
    if (!all.empty()) out.push_back({std::move(all[0]), Values::random, Layout::plain, scope.seed + out.size()});
  }
  return out;
}

std::vector<Case> shape_cases(const Op& op, const Scope& scope) {
  std::vector<Case> out;
  const std::vector<Symbols> types = type_combinations(op.contract);
  // Empty, one, primes, vector widths, warp and block sizes and powers of two with their neighbours, hidden sizes, long rows.
  std::vector<int64_t> lengths = {0,    1,     2,     3,     4,     5,     7,     8,     9,     13,    15,    16,   17,   31,   32,
                                  33,   63,    64,    65,    127,   128,   129,   251,   255,   256,   257,   511,  512,  513,  1000,
                                  1021, 1023,  1024,  1025,  2047,  2048,  2049,  3072,  4093,  4095,  4096,  4097, 5120, 8191, 8192,
                                  8193, 12289, 16383, 16384, 16385, 32767, 32769, 50257, 65535, 65536, 65537, 70000};
  if (scope.quick) lengths = {0, 1, 2, 7, 16, 33, 255, 257, 1000, 1024, 4095, 4096, 4097, 16385, 70000};
  size_t turn = 0;
  for (int64_t length : lengths)
    add_cases(op, scope, out, types[turn++ % types.size()], {{3}, length}, 0);  // the dtypes take turns; the next layer combines them
  std::vector<Shape> shapes = {
      {{}, 33},      {{0}, 33},       {{1}, 33},    {{2, 3}, 65}, {{0, 5}, 7},     {{2, 1, 3}, 17}, {{1, 1, 1}, 8}, {{2, 2, 2, 2, 2}, 5},
      {{7}, 64},     {{64}, 129},     {{129}, 256}, {{1025}, 31}, {{4097}, 3},     {{1023}, 8},     {{65536}, 1},   {{70001}, 2},
      {{2048}, 257}, {{37, 29}, 128}, {{1}, 0},     {{0}, 0},     {{5, 0, 2}, 16}, {{1024}, 512},   {{131}, 4096},  {{1}, 20011},
      {{1}, 70000},  {{2}, 16385},    {{1}, 131072}};
  for (const Shape& shape : shapes) {
    if (scope.quick && shape.leading.size() == 1 && shape.leading[0] > 64 && shape.leading[0] % 2 == 0) continue;
    add_cases(op, scope, out, types[turn++ % types.size()], shape, 0);
  }
  // The longest rows that ops promise, on slow devices too: two seconds in the emulator. The widest type, and another.
  Scope long_rows = scope;
  if (!scope.quick) long_rows.largest = std::max<int64_t>(scope.largest, 2 * scope.longest);  // of a packed op too
  add_cases(op, long_rows, out, types[turn++ % types.size()], {{1}, scope.longest}, 0);
  if (scope.quick) return out;
  add_cases(op, long_rows, out, types.back(), {{2}, scope.longest}, 0);
  // So many long rows that a cluster of blocks, of which a GPU runs few at once, takes row after row.
  for (const Shape& shape : std::vector<Shape>{{{9}, 16384}, {{9}, 32768}, {{7}, 65536}})
    for (const Symbols& s : types) add_cases(op, long_rows, out, s, shape, 0);
  // And so many that a block takes batches of them, 16 rows each: the emulated GPU runs four blocks. In the widest type, where such rows
  // take the kernels for any length.
  add_cases(op, long_rows, out, types.back(), {{67}, 15013}, 0);
  // What stands in for an optional input may be made from all rows, in parts.
  if (presences(op) > 1) add_cases(op, long_rows, out, types[turn++ % types.size()], {{70001}, 2}, presences(op) - 1);
  return out;
}

std::vector<Case> dtype_cases(const Op& op, const Scope& scope) {
  std::vector<Case> out;
  const std::vector<Shape> shapes = scope.quick ? std::vector<Shape>{{{5}, 33}} : std::vector<Shape>{{{5}, 33}, {{3}, 1024}, {{2}, 4097}};
  for (const Symbols& types : type_combinations(op.contract))
    for (uint32_t absent = 0; absent < presences(op); absent++)
      for (const Shape& shape : shapes) add_cases(op, scope, out, types, shape, absent);
  const std::vector<Symbols> types = type_combinations(op.contract);
  for (const std::vector<AttributeValue>& attributes : attribute_combinations(op)) {
    const size_t first = out.size();
    // What is left out may be made up for under some attributes only.
    for (uint32_t absent = 0; absent < presences(op); absent += std::max(1u, presences(op) - 1))
      add_cases(op, scope, out, types[out.size() % types.size()], {{5}, 127}, absent);
    for (size_t i = first; i < out.size(); i++) out[i].arguments.attributes = attributes;
  }
  const auto is_saved = [](const Result& r) { return r.kind == Result::Kind::saved; };
  if (std::none_of(op.contract.results.begin(), op.contract.results.end(), is_saved)) return out;
  // What is computed where no gradient is wanted takes kernels of its own.
  for (const Symbols& s : types)
    for (const Shape& shape : scope.quick ? std::vector<Shape>{{{5}, 33}, {{3}, 20011}}
                                          : std::vector<Shape>{{{5}, 33}, {{7}, 1024}, {{3}, 20011}, {{4}, 32768}}) {
      const size_t first = out.size();
      add_cases(op, scope, out, s, shape, 0);
      for (size_t i = first; i < out.size(); i++) out[i].arguments.saved = false;
    }
  return out;
}

std::vector<Case> value_cases(const Op& op, const Scope& scope) {
  std::vector<Case> out;
  const std::vector<Shape> shapes =
      scope.quick ? std::vector<Shape>{{{5}, 67}} : std::vector<Shape>{{{7}, 67}, {{131}, 67}, {{3}, 1024}, {{1}, 9}, {{3}, 20011}};
  const std::vector<Symbols> types = type_combinations(op.contract);
  for (const Symbols& s : types)
    for (int v = 0; v < static_cast<int>(Values::count); v++)
      for (const Shape& shape : shapes) add_cases(op, scope, out, s, shape, 0, static_cast<Values>(v));
  // Attributes choose other formulas, which other values break; of all combinations, each value meets some.
  int v = 0;
  for (const std::vector<AttributeValue>& attributes : attribute_combinations(op))
    for (const Shape& shape : scope.quick ? std::vector<Shape>{{{5}, 67}} : std::vector<Shape>{{{5}, 67}, {{3}, 20011}}) {
      const size_t first = out.size();
      for (int n = 0; n < (scope.quick ? 1 : 6); n++, v++) {
        const auto values = static_cast<Values>(v % static_cast<int>(Values::count));
        if ((values == Values::denormal || values == Values::tiny) && lacks_floor(op, attributes)) continue;
        const auto turn = static_cast<uint32_t>(v);
        add_cases(op, scope, out, types[turn % types.size()], shape, turn / 2 % presences(op), values);
      }
      // Factors of both signs would hide what infinities do.
      if (!scope.quick) add_cases(op, scope, out, types[static_cast<size_t>(v) % types.size()], shape, presences(op) - 1, Values::masked);
      for (size_t i = first; i < out.size(); i++) out[i].arguments.attributes = attributes;
    }
  // Long rows far from zero, so many that what is one number a row can be compared with the CPU kernel's (compare.h); in f32, where that
  // shows.
  Scope large = scope;
  large.largest = std::max<int64_t>(scope.largest, 2 * scope.longest);
  const auto is_f32 = [](const Symbols& s) { return std::find(s.types.begin(), s.types.end(), KW_F32) != s.types.end(); };
  const auto narrow = std::find_if(types.begin(), types.end(), is_f32);
  if (!scope.quick && narrow != types.end())
    for (const std::vector<AttributeValue>& attributes : attribute_combinations(op)) {
      const size_t first = out.size();
      add_cases(op, large, out, *narrow, {{67}, 15000}, 0, Values::mean1000);
      for (size_t i = first; i < out.size(); i++) out[i].arguments.attributes = attributes;
    }
  return out;
}

std::vector<Case> layout_cases(const Op& op, const Scope& scope) {
  std::vector<Case> out;
  const std::vector<Shape> shapes =
      scope.quick ? std::vector<Shape>{{{5}, 64}, {{1, 3, 1}, 33}, {{2, 3, 4}, 40}}
                  : std::vector<Shape>{{{5}, 64},   {{1, 3, 1}, 33}, {{2, 3}, 256},   {{4}, 1000},         {{1}, 129},    {{}, 40},
                                       {{3}, 8200}, {{2, 3, 4}, 40}, {{3, 2, 5}, 33}, {{2, 3, 1, 2}, 130}, {{33, 3}, 520}};
  const std::vector<Symbols> types = type_combinations(op.contract);
  size_t turn = 0;
  for (int l = 1; l < static_cast<int>(Layout::count); l++)
    for (const Shape& shape : shapes)  // the dtypes take turns where there are many
      for (size_t n = 0; n < std::min<size_t>(types.size(), 2); n++)
        add_cases(op, scope, out, types[turn++ % types.size()], shape, 0, Values::random, static_cast<Layout>(l));
  // Every offset that a vector of 16 bytes can have, and their neighbours' kernels with it.
  for (uint64_t offset = 0; offset < 15; offset += scope.quick ? 7 : 1) {
    const size_t first = out.size();
    add_cases(op, scope, out, types[turn++ % types.size()], {{4}, 64}, 0, Values::random, Layout::shift);
    for (size_t i = first; i < out.size(); i++) out[i].seed = offset;
  }
  return out;
}

}  // namespace kw::test
