#include "testing/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace kw::test {

namespace {

[[noreturn]] void complain(const Op& op, const std::string& text) { throw Error(KW_ERROR_ARGUMENT, op.contract.name + ": " + text); }

std::string quote(std::string_view text) {  // printable, and not endless
  std::string out = "'";
  for (char c : text.substr(0, 60)) out += c >= ' ' && c < 127 ? c : '?';
  return out + (text.size() > 60 ? "...'" : "'");
}

int64_t parse_size(const Op& op, std::string_view name, std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    complain(op, format("the size %s of %s does not fit in 64 bits", quote(text).c_str(), std::string(name).c_str()));
  if (error != std::errc() || end != text.data() + text.size())
    complain(op,
             format("%s is not a size of %s: write whole numbers, as in bf16[8192,4096]", quote(text).c_str(), std::string(name).c_str()));
  if (value < 0) complain(op, format("%s has a negative size, %lld", std::string(name).c_str(), static_cast<long long>(value)));
  return value;
}

Argument parse_tensor(const Op& op, const std::string& name, std::string_view text) {
  Argument a;
  if (text == "none") return a;
  const size_t open = text.find('[');
  if (open == text.npos || text.back() != ']')
    complain(op, format("%s is not a tensor for %s: write dtype[sizes], as in %s=bf16[8192,4096]", quote(text).c_str(), name.c_str(),
                        name.c_str()));
  const std::string_view type = text.substr(0, open);
  const std::string_view list = text.substr(open + 1, text.size() - open - 2);
  auto dtype = parse_dtype(type);
  if (!dtype) {
    std::vector<std::string> names;
    for (const DTypeFacts& f : dtype_facts) names.push_back(f.name);
    complain(op, format("%s of %s is no dtype%s; there are f16 bf16 f32 f64 i8 u8 i32 i64 bool fp8e4m3 fp8e5m2", quote(type).c_str(),
                        name.c_str(), suggest(type, names).c_str()));
  }
  a.present = true;
  a.dtype = *dtype;
  const size_t colon = list.find(':');
  const auto numbers = [&](std::string_view text, std::vector<int64_t>& out) {
    while (!text.empty()) {
      const size_t comma = text.find(',');
      if (out.size() == KW_MAX_RANK) complain(op, format("%s has more than %d dimensions", name.c_str(), KW_MAX_RANK));
      out.push_back(parse_size(op, name, text.substr(0, comma)));
      if (comma == text.npos) break;
      text.remove_prefix(comma + 1);
      if (text.empty()) parse_size(op, name, text);
    }
  };
  numbers(list.substr(0, colon), a.sizes);
  if (colon != list.npos) {
    numbers(list.substr(colon + 1), a.strides);
    if (a.strides.size() != a.sizes.size())
      complain(op, format("%s has %zu sizes, but %zu strides", name.c_str(), a.sizes.size(), a.strides.size()));
  }
  int64_t bytes = dtype_bytes(a.dtype);
  for (int64_t s : a.sizes)
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(s, 1), &bytes))
      complain(op, format("%s has more bytes than 64 bits can count", name.c_str()));
  return a;
}

AttributeValue parse_attribute(const Op& op, const Attribute& attribute, std::string_view text) {
  AttributeValue v;
  const char* name = attribute.name.c_str();
  const char* end = text.data() + text.size();
  switch (attribute.type) {
    case Attribute::Type::floating: {
      auto result = std::from_chars(text.data(), end, v.f);
      if (result.ec != std::errc() || result.ptr != end) complain(op, format("%s=%s is not a number", name, quote(text).c_str()));
      break;
    }
    case Attribute::Type::integer: {
      auto result = std::from_chars(text.data(), end, v.i);
      if (result.ec != std::errc() || result.ptr != end)
        complain(op, format("%s=%s is not a whole number of 64 bits", name, quote(text).c_str()));
      break;
    }
    case Attribute::Type::boolean:
      if (text != "true" && text != "false") complain(op, format("%s=%s is neither true nor false", name, quote(text).c_str()));
      v.i = text == "true";
      break;
    case Attribute::Type::enumeration: {
      auto at = std::find(attribute.values.begin(), attribute.values.end(), text);
      std::string all;
      for (const std::string& s : attribute.values) all += (all.empty() ? "" : ", ") + s;
      if (at == attribute.values.end()) complain(op, format("%s=%s is not one of %s", name, quote(text).c_str(), all.c_str()));
      v.i = at - attribute.values.begin();
      break;
    }
    case Attribute::Type::string:
      v.s = text;
      break;
  }
  return v;
}

std::vector<std::string> names_of(const Contract& c) {
  std::vector<std::string> names;
  for (const Input& i : c.inputs) names.push_back(i.name);
  for (const Attribute& a : c.attributes) names.push_back(a.name);
  return names;
}

}  // namespace

Arguments parse_arguments(const Op& op, const std::vector<std::string>& words) {
  const Contract& c = op.contract;
  Arguments out;
  out.inputs.resize(c.inputs.size());
  for (size_t i = 0; i < c.attributes.size(); i++) out.attributes.push_back(default_value(op, i));
  std::vector<bool> given(c.inputs.size() + c.attributes.size());
  std::vector<std::string> parts;
  for (const std::string& word : words)
    for (size_t at = 0; at < word.size();) {
      const size_t blank = std::min(word.find(' ', at), word.size());
      if (blank > at) parts.push_back(word.substr(at, blank - at));
      at = blank + 1;
    }
  const std::vector<std::string> names = names_of(c);
  for (const std::string& part : parts) {
    const size_t equals = part.find('=');
    if (equals == part.npos || equals == 0 || equals + 1 == part.size())
      complain(op, format("%s is not an argument: write name=dtype[sizes] or name=value", quote(part).c_str()));
    const std::string name = part.substr(0, equals);
    const std::string_view text = std::string_view(part).substr(equals + 1);
    const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size()) {
      std::string all;
      for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
      complain(op, format("there is no argument %s%s; it takes %s", quote(name).c_str(), suggest(name, names).c_str(), all.c_str()));
    }
    if (given[at]) complain(op, format("%s is given twice", name.c_str()));
    given[at] = true;
    if (at < c.inputs.size()) {
      if (c.inputs[at].type.list) complain(op, format("%s is a list of tensors, which the command line cannot write yet", name.c_str()));
      out.inputs[at] = parse_tensor(op, name, text);
    } else {
      out.attributes[at - c.inputs.size()] = parse_attribute(op, c.attributes[at - c.inputs.size()], text);
    }
  }
  const Symbols symbols = solve(op, out);
  for (size_t i = 0; i < c.inputs.size(); i++) {
    if (given[i] || c.inputs[i].type.optional) continue;
    out.inputs[i] = instantiate(c.inputs[i].type, symbols);
    if (!out.inputs[i].present)
      complain(op, format("%s is missing: add --arg %s=dtype[sizes]", c.inputs[i].name.c_str(), c.inputs[i].name.c_str()));
  }
  return out;
}

std::string describe(const Op& op, const Arguments& arguments) {
  const Contract& c = op.contract;
  std::string text;
  auto add = [&](const std::string& name, const std::string& value) { text += (text.empty() ? "" : " ") + name + "=" + value; };
  for (size_t i = 0; i < c.inputs.size(); i++)
    if (arguments.inputs[i].present) {
      const Argument& a = arguments.inputs[i];
      std::string sizes = std::string(dtype_name(a.dtype)) + "[";
      for (size_t k = 0; k < a.sizes.size(); k++) sizes += (k ? "," : "") + std::to_string(a.sizes[k]);
      for (size_t k = 0; k < a.strides.size(); k++) sizes += (k ? "," : ":") + std::to_string(a.strides[k]);
      add(c.inputs[i].name, sizes + "]");
    }
  for (size_t i = 0; i < c.attributes.size(); i++) {
    const AttributeValue v = arguments.attributes[i], d = default_value(op, i);
    if (v.f == d.f && v.i == d.i && v.s == d.s) continue;
    const Attribute& a = c.attributes[i];
    switch (a.type) {
      case Attribute::Type::floating:
        add(a.name, format("%.17g", v.f));
        break;
      case Attribute::Type::integer:
        add(a.name, std::to_string(v.i));
        break;
      case Attribute::Type::boolean:
        add(a.name, v.i ? "true" : "false");
        break;
      case Attribute::Type::enumeration:
        add(a.name, a.values[static_cast<size_t>(v.i)]);
        break;
      case Attribute::Type::string:
        add(a.name, v.s);
        break;
    }
  }
  return text;
}

void refuse_strides(const Op& op, const Arguments& arguments) {
  for (size_t i = 0; i < arguments.inputs.size(); i++)
    if (!arguments.inputs[i].strides.empty())
      complain(op, format("strides for %s: only kw plan takes them; kw check has --layout", op.contract.inputs[i].name.c_str()));
}

Symbols unknown_symbols(const Contract& c) {
  Symbols s;
  s.leading.resize(c.dims.size());
  s.dims.assign(c.dims.size(), -1);
  s.types.assign(c.types.size(), -1);
  return s;
}

Symbols solve(const Op& op, const Arguments& arguments) {
  const Contract& c = op.contract;
  Symbols s = unknown_symbols(c);
  for (size_t i = 0; i < c.inputs.size(); i++) {
    const Argument& a = arguments.inputs[i];
    const TensorType& type = c.inputs[i].type;
    if (!a.present) continue;
    if (type.element.kind == ElementType::Kind::variable && s.types[static_cast<size_t>(type.element.variable)] < 0)
      s.types[static_cast<size_t>(type.element.variable)] = a.dtype;
    const size_t places = type.shape.size();
    const auto variadic = static_cast<size_t>(std::find_if(type.shape.begin(), type.shape.end(), [](const Dim& d) { return d.variadic; }) -
                                              type.shape.begin());
    const bool has = variadic < places;
    if (has ? a.sizes.size() + 1 < places : a.sizes.size() != places) continue;  // bind_inputs will say so
    const size_t spread = has ? a.sizes.size() + 1 - places : 0;                 // dimensions that the variadic one stands for
    for (size_t p = 0, d = 0; p < places; p++) {
      const Size& size = type.shape[p].size;
      const auto name = static_cast<size_t>(size.value);
      if (type.shape[p].variadic) {
        s.leading[name].assign(a.sizes.begin() + static_cast<ptrdiff_t>(d), a.sizes.begin() + static_cast<ptrdiff_t>(d + spread));
        s.dims[name] = std::accumulate(s.leading[name].begin(), s.leading[name].end(), int64_t{1}, std::multiplies<>());
        d += spread;
        continue;
      }
      if (size.kind == Size::Kind::dim && s.dims[name] < 0) s.dims[name] = a.sizes[d];
      d++;
    }
  }
  for (size_t t = 0; t < c.types.size(); t++) {  // an unbound variable takes its first option
    for (size_t hop = t, n = 0; s.types[t] < 0 && n <= c.types.size(); n++) {
      const TypeVariable::Option& first = c.types[hop].options.front();
      if (first.variable < 0)
        s.types[t] = first.dtype;
      else if (s.types[static_cast<size_t>(first.variable)] >= 0)
        s.types[t] = s.types[static_cast<size_t>(first.variable)];
      else
        hop = static_cast<size_t>(first.variable);
    }
  }
  return s;
}

int64_t evaluate(const Size& size, const Symbols& s) {
  if (size.kind == Size::Kind::constant) return size.value;
  if (size.kind == Size::Kind::dim) return s.dims[static_cast<size_t>(size.value)];
  const int64_t a = evaluate(size.operands[0], s), b = evaluate(size.operands[1], s);
  if (a < 0 || b < 0) return -1;
  int64_t r = -1;
  switch (size.kind) {
    case Size::Kind::add:
      return __builtin_add_overflow(a, b, &r) ? -1 : r;
    case Size::Kind::sub:
      return a >= b ? a - b : -1;
    case Size::Kind::mul:
      return __builtin_mul_overflow(a, b, &r) ? -1 : r;
    case Size::Kind::div:
      return b > 0 && a % b == 0 ? a / b : -1;
    case Size::Kind::min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

Argument instantiate(const TensorType& type, const Symbols& s) {
  Argument a;
  int dtype = type.element.dtype;
  if (type.element.kind != ElementType::Kind::fixed) dtype = s.types[static_cast<size_t>(type.element.variable)];
  if (dtype < 0) return a;
  a.dtype = type.element.kind == ElementType::Kind::accumulator ? accumulator(dtype) : static_cast<DType>(dtype);
  for (const Dim& d : type.shape) {
    const auto name = static_cast<size_t>(d.size.value);
    if (d.variadic) {
      if (s.dims[name] < 0) return a;
      a.sizes.insert(a.sizes.end(), s.leading[name].begin(), s.leading[name].end());
    } else {
      a.sizes.push_back(evaluate(d.size, s));
      if (a.sizes.back() < 0) return a;
    }
  }
  a.present = a.sizes.size() <= KW_MAX_RANK;
  return a;
}

AttributeValue default_value(const Op& op, size_t index) {
  const Attribute& a = op.contract.attributes[index];
  AttributeValue v;
  if (a.has_default) {
    v.s = a.text;
    if (a.type == Attribute::Type::floating)
      v.f = a.number;
    else
      v.i = static_cast<int64_t>(a.number);
    return v;
  }
  for (const Op* forward : ops()) {  // "eps" of a backward: the forward's default
    if (!forward->contract.gradient || forward->contract.gradient->op != op.contract.name || forward == &op) continue;
    for (size_t i = 0; i < forward->contract.attributes.size(); i++)
      if (forward->contract.attributes[i].name == a.name) return default_value(*forward, i);
  }
  double number = a.type == Attribute::Type::floating ? 0.5 : 1;
  if (a.at_least) number = std::max(number, *a.at_least);
  if (a.above) number = std::max(number, *a.above + 1);
  if (a.at_most) number = std::min(number, *a.at_most);
  if (a.below) number = std::min(number, a.above ? (*a.above + *a.below) / 2 : a.at_least ? (*a.at_least + *a.below) / 2 : *a.below - 1);
  if (a.type == Attribute::Type::floating)
    v.f = number;
  else if (a.type == Attribute::Type::integer)
    v.i = static_cast<int64_t>(number);
  return v;
}

std::vector<kw_attribute> raw_attributes(const Op& op, const Arguments& arguments) {
  std::vector<kw_attribute> raw(arguments.attributes.size());
  for (size_t i = 0; i < raw.size(); i++) {
    const AttributeValue& v = arguments.attributes[i];
    switch (op.contract.attributes[i].type) {
      case Attribute::Type::floating:
        raw[i].f = v.f;
        break;
      case Attribute::Type::string:
        raw[i].s = v.s.c_str();
        break;
      default:
        raw[i].i = v.i;
    }
  }
  return raw;
}

std::string suggest(std::string_view word, const std::vector<std::string>& names) {
  word = word.substr(0, 64);
  std::string best;
  size_t least = word.size() / 3 + 2;  // more changes than that are another word
  for (const std::string& name : names) {
    std::vector<size_t> row(name.size() + 1);  // edit distance
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < word.size(); i++) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t j = 0; j < name.size(); j++) {
        const size_t swap = diagonal + (word[i] != name[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({swap, diagonal + 1, row[j] + 1});
      }
    }
    size_t distance = row.back();
    if (word.size() > 2 && name.find(word) != name.npos) distance = std::min(distance, size_t{1});
    if (distance < least) least = distance, best = name;
  }
  return best.empty() ? "" : " (did you mean " + best + "?)";
}

}  // namespace kw::test
