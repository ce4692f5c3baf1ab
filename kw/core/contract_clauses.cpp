#include <charconv>

#include "kw/core/contract_names.h"
#include "kw/core/contract_parser.h"
#include "kw/core/error.h"

namespace kw {

// ---- attributes --------------------------------------------------------------------------------------------------------------

void ContractParser::attribute() {
  const Token& token = expect_name("the name of an attribute");
  Attribute a;
  a.name = name_of(token, "the attribute name");
  for (const Input& i : c_.inputs)
    if (i.name == a.name) fail(token, "there are two arguments named " + a.name);
  for (const Attribute& other : c_.attributes)
    if (other.name == a.name) fail(token, "there are two arguments named " + a.name);
  if (c_.attributes.size() == KW_MAX_ARGUMENTS) fail(token, format("an op has at most %d attributes", KW_MAX_ARGUMENTS));
  expect(":", "after " + a.name);
  const Token& type = expect_name("the type of " + a.name);
  if (is("[")) fail(type, a.name + " is a tensor: tensors come before '*'");
  using Type = Attribute::Type;
  if (is("|")) {
    a.type = Type::enumeration;
    const Token* word = &type;
    for (;;) {
      std::string value(word->text);
      if (auto why = refuse_word(value)) fail(*word, "the choice " + quote(*word) + " " + *why);
      for (const std::string& v : a.values)
        if (v == value) fail(*word, "the choice " + value + " is there twice");
      a.values.push_back(std::move(value));
      if (!accept("|")) break;
      word = &expect_name("a choice of " + a.name);
    }
  } else if (type.text == "float" || type.text == "int") {
    a.type = type.text == "float" ? Type::floating : Type::integer;
    bounds(a);
  } else if (type.text == "bool" || type.text == "str") {
    a.type = type.text == "bool" ? Type::boolean : Type::string;
  } else {
    fail(type, quote(type) + " is not a type of attributes (float int bool str, or choices such as mean|sum)");
  }
  default_value(a);
  places_.attributes.push_back(token.at);
  c_.attributes.push_back(std::move(a));
}

double ContractParser::number(bool integer) {
  bool negative = accept("-");
  const Token& token = peek();
  if (token.kind != Token::Kind::number) fail(token, "expected a number, but found " + quote(token));
  double value = 0;
  const char* end = token.text.data() + token.text.size();
  auto [stop, fault] = std::from_chars(token.text.data(), end, value);
  if (fault != std::errc() || stop != end) fail(token, quote(token) + " does not fit a double");
  if (integer && (token.text.find_first_not_of("0123456789") != token.text.npos || value >= 9007199254740992.0))
    fail(token, quote(token) + " is not a whole number below 2^53");
  take();
  return negative ? -value : value;
}

void ContractParser::bounds(Attribute& a) {
  for (;;) {
    auto* bound = is(">=") ? &a.at_least : is(">") ? &a.above : is("<=") ? &a.at_most : is("<") ? &a.below : nullptr;
    if (!bound) break;
    const Token& token = take();
    bool lower = token.text.front() == '>';
    if (lower ? a.at_least || a.above : a.at_most || a.below)
      fail(token, std::string("a second ") + (lower ? "lower" : "upper") + " bound of " + a.name);
    *bound = number(a.type == Attribute::Type::integer);
    bool closed = a.at_least && a.at_most;
    auto low = a.at_least ? a.at_least : a.above, high = a.at_most ? a.at_most : a.below;
    if (low && high && (closed ? *low > *high : *low >= *high)) fail(token, "no value of " + a.name + " is within its bounds");
  }
}

void ContractParser::check_within(const Attribute& a, const Token& token) {
  if ((a.at_least && !(a.number >= *a.at_least)) || (a.above && !(a.number > *a.above)) || (a.at_most && !(a.number <= *a.at_most)) ||
      (a.below && !(a.number < *a.below)))
    fail(token, "the default of " + a.name + " is outside its bounds");
}

void ContractParser::default_value(Attribute& a) {
  if (!accept("=")) return;
  a.has_default = true;
  const Token& token = peek();
  using Type = Attribute::Type;
  if (a.type == Type::floating || a.type == Type::integer) {
    a.number = number(a.type == Type::integer);
    check_within(a, token);
    return;
  }
  take();
  if (a.type == Type::string) {
    if (token.kind != Token::Kind::string)
      fail(token, "expected a text in '\"' as the default of " + a.name + ", but found " + quote(token));
    a.text = token.text;
  } else if (a.type == Type::boolean) {
    if (token.kind != Token::Kind::name || (token.text != "true" && token.text != "false"))
      fail(token, "expected true or false as the default of " + a.name + ", but found " + quote(token));
    a.number = token.text == "true";
  } else {
    size_t i = 0;
    while (i < a.values.size() && (token.kind != Token::Kind::name || token.text != a.values[i])) i++;
    if (i == a.values.size()) fail(token, quote(token) + " is not a choice of " + a.name);
    a.number = static_cast<double>(i);
  }
}

// ---- where -------------------------------------------------------------------------------------------------------------------

void ContractParser::find_types() {
  for (pos_ = 0; peek().kind != Token::Kind::end && !(is_word("where") && !is(":", 1)); pos_++) {
  }
  if (is_word("where")) {
    where_begin_ = pos_;
    places_.where = take().at;
    do type_variable();
    while (accept(","));
    where_end_ = pos_;
  }
  pos_ = 0;
}

void ContractParser::type_variable() {
  const Token& token = expect_name("a type variable");
  if (auto why = refuse_symbol(token.text)) fail(token, "the type variable " + quote(token) + " " + *why);
  TypeVariable v;
  v.name = token.text;
  auto find = [&](std::string_view name) {
    size_t i = 0;
    while (i < c_.types.size() && c_.types[i].name != name) i++;
    return i;
  };
  if (find(v.name) < c_.types.size()) fail(token, "the type " + v.name + " is declared twice");
  if (c_.types.size() == KW_MAX_SYMBOLS) fail(token, format("an op has at most %d type variables", KW_MAX_SYMBOLS));
  expect(":", "after " + v.name);
  if (peek().kind != Token::Kind::name) fail(peek(), "expected an element type that " + v.name + " may be, but found " + quote(peek()));
  // The options end at ',', at the next clause, or at the end.
  while (peek().kind == Token::Kind::name) {
    TypeVariable::Option option;
    if (auto dtype = parse_dtype(peek().text)) {
      option.dtype = *dtype;
    } else if (size_t other = find(peek().text); other < c_.types.size()) {
      option.variable = static_cast<int>(other);
    } else if (peek().text.front() >= 'A' && peek().text.front() <= 'Z') {
      fail(peek(), "the type " + std::string(peek().text) + " is not declared before " + v.name);
    } else if (!v.options.empty() &&
               (is_word("gradient") || is_word("saved") || is_word("scratch") || is_word("not") || is_word("where"))) {
      break;
    } else {
      fail(peek(), quote(peek()) + " is not an element type (f16 bf16 f32 f64 i8 u8 i32 i64 bool fp8e4m3 fp8e5m2)");
    }
    for (const auto& o : v.options)
      if (o.variable == option.variable && (o.variable >= 0 || o.dtype == option.dtype)) fail(peek(), quote(peek()) + " is there twice");
    v.options.push_back(option);
    take();
  }
  places_.types.push_back(token.at);
  c_.types.push_back(std::move(v));
}

// ---- clauses -----------------------------------------------------------------------------------------------------------------

void ContractParser::clauses() {
  for (;;) {
    const Token& token = peek();
    if (is_word("where")) {
      if (pos_ != where_begin_) fail(token, "a second 'where'");
      pos_ = where_end_;
    } else if (is_word("gradient")) {
      if (c_.gradient) fail(token, "a second 'gradient'");
      gradient();
    } else if (is_word("saved")) {
      if (!saved_.empty()) fail(token, "a second 'saved': list the results after one, with ','");
      extra_results(Result::Kind::saved);
    } else if (is_word("scratch")) {
      if (!scratch_.empty()) fail(token, "a second 'scratch': list the results after one, with ','");
      extra_results(Result::Kind::scratch);
    } else if (is_word("not") && is_word("capturable", 1)) {
      if (!c_.capturable) fail(token, "a second 'not capturable'");
      take(), take();
      c_.capturable = false;
    } else {
      return;
    }
  }
}

void ContractParser::extra_results(Result::Kind kind) {
  take();
  auto& list = kind == Result::Kind::saved ? saved_ : scratch_;
  auto& at = kind == Result::Kind::saved ? saved_at_ : scratch_at_;
  do {
    size_t place = peek().at;
    Result r = result(kind);
    list.push_back(std::move(r));
    at.push_back(place);
  } while (accept(","));
}

void ContractParser::gradient() {
  places_.gradient = take().at;
  Gradient g;
  size_t result = 0;
  do {
    do {
      const Token& target = expect_name("the gradient of an input, such as dx");
      places_.targets.push_back(target.at);
      g.targets.emplace_back(target.text);
      g.results.push_back(result);
    } while (is_word("and") && (take(), true));
    result++;
  } while (accept(","));
  expect("=", "after the gradients");
  const Token& backward = expect_name("the name of the backward op");
  places_.backward = backward.at;
  g.op = name_of(backward, "the backward op's name");
  expect("(", "after " + g.op);
  if (!is(")")) {
    do {
      const Token& argument = expect_name("an argument of " + g.op);
      places_.arguments.push_back(argument.at);
      g.arguments.emplace_back(argument.text);
    } while (accept(","));
  }
  expect(")", "after the arguments of " + g.op);
  c_.gradient = std::move(g);
}

}  // namespace kw
