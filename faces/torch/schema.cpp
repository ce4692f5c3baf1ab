#include "faces/torch/schema.h"

#include <charconv>

#include "kw/core/error.h"

namespace kw::torch_face {
namespace {

std::string number(double value) {  // the shortest text that reads back as the same double
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string type_of(const TensorType& type, char& alias) {
  std::string text = "Tensor";
  if (type.written) text += format("(%c!)", alias++);
  if (type.list) return text + "[]";
  return type.optional ? text + "?" : text;
}

struct Argument {
  std::string text, value;  // "float eps", "1e-06"; no value: required
};

Argument argument(const Attribute& a) {
  switch (a.type) {
    case Attribute::Type::floating:
      return {"float " + a.name, a.has_default ? number(a.number) : ""};
    case Attribute::Type::integer:
      return {"int " + a.name, a.has_default ? format("%lld", static_cast<long long>(a.number)) : ""};
    case Attribute::Type::boolean:
      return {"bool " + a.name, a.has_default ? (a.number != 0 ? "True" : "False") : ""};
    case Attribute::Type::string:
      return {"str " + a.name, a.has_default ? quoted(a.text) : ""};
    case Attribute::Type::enumeration:
      return {"str " + a.name, a.has_default ? quoted(a.values.at(static_cast<size_t>(a.number))) : ""};
  }
  return {};
}

}  // namespace

std::string schema(const Contract& contract, bool with_saved) {
  std::vector<Argument> arguments;
  char alias = 'a';
  for (const Input& i : contract.inputs)
    arguments.push_back({type_of(i.type, alias) + " " + i.name, i.type.optional && !i.type.list ? "None" : ""});
  for (const Attribute& a : contract.attributes) arguments.push_back(argument(a));

  size_t first_default = arguments.size();
  while (first_default > 0 && !arguments[first_default - 1].value.empty()) first_default--;

  std::string text = (with_saved ? "_" : "") + contract.name + "(";
  for (size_t i = 0; i < arguments.size(); i++) {
    if (i) text += ", ";
    text += arguments[i].text;
    if (i >= first_default) text += "=" + arguments[i].value;
  }
  std::string results;
  int count = 0;
  for (const Result& r : contract.results) {
    if (r.kind == Result::Kind::scratch || (r.kind == Result::Kind::saved && !with_saved)) continue;
    results += count++ ? ", Tensor" : "Tensor";
  }
  return text + ") -> " + (count == 1 ? results : "(" + results + ")");
}

}  // namespace kw::torch_face
