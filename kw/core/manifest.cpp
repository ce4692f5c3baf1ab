#include "kw/core/manifest.h"

#include <charconv>

#include "kw/core/op.h"

namespace kw {
namespace {

std::string quoted(std::string_view text) {
  static const char hex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {  // contracts are ASCII; any other byte is shown as the Latin-1 character
      out += std::string("\\u00") + hex[byte >> 4] + hex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

const char* boolean(bool b) { return b ? "true" : "false"; }

// The shortest decimal that reads back as the same double; always with a '.' or an exponent, so that a reader sees a float.
std::string number(double value) {
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string out(text, end);
  return out.find_first_of(".e") == out.npos ? out + ".0" : out;
}

template <class List, class F>
std::string array(const List& list, F&& item) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); i++) out += (i ? ", " : "") + item(list[i]);
  return out + "]";
}

class OpWriter {
 public:
  explicit OpWriter(const Op& op) : op_(op), c_(op.contract) {}

  std::string text() const {
    std::string dims = "[";
    for (size_t i = 0; i < c_.dims.size(); i++)
      dims += (i ? ", " : "") + ("{\"name\": " + quoted(c_.dims[i])) + ", \"variadic\": " + boolean(c_.dim_variadic[i]) + "}";
    return "{\"index\": " + std::to_string(op_.index) + ", \"name\": " + quoted(c_.name) + ", \"room\": " + quoted(op_.room->name) +
           ", \"contract\": " + quoted(c_.text) + ", \"capturable\": " + boolean(c_.capturable) + ", \"backward_of\": " + backward_of() +
           ",\n  \"dims\": " + dims + "],\n  \"types\": " + array(c_.types, [&](const TypeVariable& t) { return type(t); }) +
           ",\n  \"inputs\": " + array(c_.inputs, [&](const Input& i) { return input(i); }) +
           ",\n  \"attributes\": " + array(c_.attributes, [&](const Attribute& a) { return attribute(a); }) +
           ",\n  \"results\": " + array(c_.results, [&](const Result& r) { return result(r); }) + ",\n  \"gradient\": " + gradient() + "}";
  }

 private:
  std::string backward_of() const {
    for (const Op* op : ops())
      if (op->contract.gradient && op->contract.gradient->op == c_.name) return quoted(op->contract.name);
    return "null";
  }

  std::string variable(int index) const { return "{\"variable\": " + quoted(c_.types[static_cast<size_t>(index)].name) + "}"; }

  std::string type(const TypeVariable& t) const {
    auto option = [&](const TypeVariable::Option& o) { return o.variable < 0 ? quoted(dtype_name(o.dtype)) : variable(o.variable); };
    return "{\"name\": " + quoted(t.name) + ", \"options\": " + array(t.options, option) + "}";
  }

  std::string element(const ElementType& e) const {
    if (e.kind == ElementType::Kind::fixed) return quoted(dtype_name(e.dtype));
    if (e.kind == ElementType::Kind::variable) return variable(e.variable);
    return "{\"accumulator\": " + quoted(c_.types[static_cast<size_t>(e.variable)].name) + "}";
  }

  std::string size(const Size& s) const {
    static const char* const names[] = {"", "", "add", "sub", "mul", "div", "min", "max"};
    if (s.kind == Size::Kind::constant) return std::to_string(s.value);
    if (s.kind == Size::Kind::dim) return quoted(c_.dims[static_cast<size_t>(s.value)]);
    return "[" + quoted(names[static_cast<size_t>(s.kind)]) + ", " + size(s.operands[0]) + ", " + size(s.operands[1]) + "]";
  }

  std::string tensor(const std::string& name, const TensorType& t) const {
    auto dim = [&](const Dim& d) { return d.variadic ? quoted("*" + c_.dims[static_cast<size_t>(d.size.value)]) : size(d.size); };
    return "\"name\": " + quoted(name) + ", \"element\": " + element(t.element) + ", \"shape\": " + array(t.shape, dim);
  }

  std::string input(const Input& i) const {
    return "{" + tensor(i.name, i.type) + ", \"optional\": " + boolean(i.type.optional) + ", \"list\": " + boolean(i.type.list) +
           ", \"written\": " + boolean(i.type.written) +
           (i.below < 0 ? "" : ", \"below\": " + quoted(c_.dims[static_cast<size_t>(i.below)])) + "}";
  }

  std::string result(const Result& r) const {
    static const char* const kinds[] = {"output", "saved", "scratch"};
    static const char* const folds[] = {"null", "\"sum\"", "\"max\"", "\"all\""};
    return "{" + tensor(r.name, r.type) + ", \"kind\": \"" + kinds[static_cast<size_t>(r.kind)] +
           "\", \"fold\": " + folds[static_cast<size_t>(r.type.fold)] +
           ", \"present_with\": " + (r.present_with < 0 ? "null" : quoted(c_.inputs[static_cast<size_t>(r.present_with)].name)) + "}";
  }

  std::string attribute(const Attribute& a) const {
    using Type = Attribute::Type;
    static const char* const types[] = {"float", "int", "bool", "str", "enum"};
    auto value = [&](double v) { return a.type == Type::integer ? std::to_string(static_cast<int64_t>(v)) : number(v); };
    std::string text = "{\"name\": " + quoted(a.name) + ", \"type\": \"" + types[static_cast<size_t>(a.type)] + "\"";
    if (a.type == Type::enumeration) text += ", \"values\": " + array(a.values, [](const std::string& v) { return quoted(v); });
    if (a.has_default) {
      text += ", \"default\": ";
      text += a.type == Type::boolean       ? boolean(a.number != 0)
              : a.type == Type::string      ? quoted(a.text)
              : a.type == Type::enumeration ? quoted(a.values[static_cast<size_t>(a.number)])
                                            : value(a.number);
    }
    auto bound = [&](const char* name, const std::optional<double>& b) {
      if (b) text += std::string(", \"") + name + "\": " + value(*b);
    };
    bound("at_least", a.at_least), bound("above", a.above), bound("at_most", a.at_most), bound("below", a.below);
    return text + "}";
  }

  std::string gradient() const {
    if (!c_.gradient) return "null";
    auto name = [](const std::string& s) { return quoted(s); };
    return "{\"targets\": " + array(c_.gradient->targets, name) +
           ", \"results\": " + array(c_.gradient->results, [](size_t r) { return std::to_string(r); }) +
           ", \"op\": " + quoted(c_.gradient->op) + ", \"arguments\": " + array(c_.gradient->arguments, name) + "}";
  }

  const Op& op_;
  const Contract& c_;
};

}  // namespace

std::string manifest() {
  return "{\"version\": " + quoted(KW_VERSION) + ", \"ops\": " + array(ops(), [](const Op* op) { return "\n " + OpWriter(*op).text(); }) +
         "}\n";
}

}  // namespace kw
