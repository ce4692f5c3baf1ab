#include <algorithm>
#include <charconv>

#include "kw/core/contract_names.h"
#include "kw/core/contract_parser.h"
#include "kw/core/error.h"

namespace kw {
namespace {

constexpr int max_depth = 16;                 // of parentheses in a size, and operations: sizes are walked by recursion
constexpr size_t max_text = size_t{1} << 16;  // bytes of a contract

int index_of(const std::vector<std::string>& names, std::string_view name) {
  auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

template <class List>
int index_by_name(const List& list, std::string_view name) {
  for (size_t i = 0; i < list.size(); i++)
    if (list[i].name == name) return static_cast<int>(i);
  return -1;
}

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \n\t\r"), last = text.find_last_not_of(" \n\t\r");
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

}  // namespace

Contract parse_contract(std::string_view text) {
  if (text.size() > max_text) ContractText(text).fail(max_text, "a contract is at most 65536 bytes long");
  return ContractParser(text).parse();
}

Contract ContractParser::parse() {
  c_.text = trim(text_.whole());
  find_types();
  const Token& name = expect_name("the name of the op");
  places_.name = name.at;
  c_.name = name_of(name, "the op's name");
  expect("(", "after the op's name");
  arguments();
  expect(")", "after the arguments");
  places_.arrow = peek().at;
  expect("->", "before the results");
  results();
  clauses();
  if (peek().kind != Token::Kind::end)
    fail(peek(), "expected 'where', 'gradient', 'saved', 'scratch', 'not capturable' or the end, but found " + quote(peek()));
  std::move(saved_.begin(), saved_.end(), std::back_inserter(c_.results));
  std::move(scratch_.begin(), scratch_.end(), std::back_inserter(c_.results));
  places_.results.insert(places_.results.end(), saved_at_.begin(), saved_at_.end());
  places_.results.insert(places_.results.end(), scratch_at_.begin(), scratch_at_.end());
  check_contract(c_, text_, places_);
  return std::move(c_);
}

// ---- words -------------------------------------------------------------------------------------------------------------------

bool ContractParser::is(std::string_view symbol, size_t ahead) const {
  return peek(ahead).kind == Token::Kind::symbol && peek(ahead).text == symbol;
}

bool ContractParser::is_word(std::string_view word, size_t ahead) const {
  return peek(ahead).kind == Token::Kind::name && peek(ahead).text == word;
}

bool ContractParser::accept(std::string_view symbol) {
  if (!is(symbol)) return false;
  take();
  return true;
}

void ContractParser::expect(std::string_view symbol, const std::string& place) {
  if (!accept(symbol)) fail(peek(), "expected '" + std::string(symbol) + "' " + place + ", but found " + quote(peek()));
}

const Token& ContractParser::expect_name(const std::string& what) {
  if (peek().kind != Token::Kind::name) fail(peek(), "expected " + what + ", but found " + quote(peek()));
  return take();
}

std::string ContractParser::name_of(const Token& token, const std::string& what) {
  if (auto why = refuse_name(token.text)) fail(token, what + " " + quote(token) + " " + *why);
  return std::string(token.text);
}

// ---- arguments and results ---------------------------------------------------------------------------------------------------

void ContractParser::arguments() {
  if (is(")")) return;
  bool tensors = true;
  do {
    if (is("*")) {
      if (!tensors) fail(peek(), "a second '*': it stands once, between the tensors and the attributes");
      take();
      tensors = false;
      if (!is(",")) expect(",", "after '*', before the attributes");
    } else if (tensors) {
      input();
    } else {
      attribute();
    }
  } while (accept(","));
}

void ContractParser::input() {
  const Token& token = expect_name("the name of an input, or '*'");
  Input in{name_of(token, "the input name"), {}, -1};
  if (index_by_name(c_.inputs, in.name) >= 0) fail(token, "there are two arguments named " + in.name);
  if (c_.inputs.size() == KW_MAX_ARGUMENTS) fail(token, format("an op has at most %d inputs", KW_MAX_ARGUMENTS));
  expect(":", "after " + in.name);
  in.type = tensor(in.name, Part::input);
  if (accept("<")) {
    const Token& dim = expect_name("the dimension that the numbers of " + in.name + " count within");
    in.below = static_cast<int>(dim_name(dim, false, Part::input).value);
  }
  places_.inputs.push_back(token.at);
  c_.inputs.push_back(std::move(in));
}

void ContractParser::results() {
  bool several = accept("(");
  if (several && accept(")")) return;  // an op that only writes in place
  do {
    places_.results.push_back(peek().at);
    c_.results.push_back(result(Result::Kind::output));
  } while (several && accept(","));
  if (several) expect(")", "after the results");
}

Result ContractParser::result(Result::Kind kind) {
  const Token& token = expect_name("the name of a result");
  Result r;
  r.kind = kind;
  r.name = name_of(token, "the result name");
  for (const auto* list : {&c_.results, &saved_, &scratch_})
    if (index_by_name(*list, r.name) >= 0) fail(token, "there are two results named " + r.name);
  if (index_by_name(c_.inputs, r.name) >= 0 || index_by_name(c_.attributes, r.name) >= 0)
    fail(token, r.name + " is the name of an argument and of a result");
  if (r.name == c_.name) fail(token, "a result has the name of the op");
  if (c_.results.size() + saved_.size() + scratch_.size() == KW_MAX_ARGUMENTS)
    fail(token, format("an op has at most %d results", KW_MAX_ARGUMENTS));
  expect(":", "after " + r.name);
  Fold fold = is_word("sum") ? Fold::sum : is_word("max") ? Fold::max : is_word("all") ? Fold::all : Fold::none;
  if (fold != Fold::none) {
    if (kind == Result::Kind::scratch) fail(peek(), "nothing folds into scratch");
    take();
  }
  r.type = tensor(r.name, kind == Result::Kind::scratch ? Part::scratch : Part::result);
  r.type.fold = fold;
  present_with(r, token);
  return r;
}

void ContractParser::present_with(Result& r, const Token& token) {
  if (is_word("with")) {
    take();
    const Token& input = expect_name("the input that " + r.name + " comes with");
    if (!r.type.optional) fail(input, "expected '?' before 'with': " + r.name + " is not optional");
    r.present_with = index_by_name(c_.inputs, input.text);
    if (r.present_with < 0) fail(input, quote(input) + " is not an input");
    if (!c_.inputs[static_cast<size_t>(r.present_with)].type.optional)
      fail(input, std::string(input.text) + " is always there, so " + r.name + " is too: leave out the '?'");
    return;
  }
  if (!r.type.optional) return;
  // Without `with`: the gradient of an optional input belongs to it; else there has to be a single optional input.
  if (r.name.front() == 'd') r.present_with = index_by_name(c_.inputs, std::string_view(r.name).substr(1));
  if (r.present_with >= 0 && c_.inputs[static_cast<size_t>(r.present_with)].type.optional) return;
  int count = 0;
  for (size_t i = 0; i < c_.inputs.size(); i++)
    if (c_.inputs[i].type.optional) r.present_with = static_cast<int>(i), count++;
  if (count == 0) fail(token, r.name + " is optional, but no input is: a result may be absent only because an optional input is");
  if (count > 1) fail(token, "say which input " + r.name + " comes with: '? with input'");
}

// ---- tensors -----------------------------------------------------------------------------------------------------------------

TensorType ContractParser::tensor(const std::string& owner, Part part) {
  TensorType type;
  const Token& first = peek();
  type.element = element(owner);
  if (!is("[") && type.element.kind == ElementType::Kind::fixed && type.element.dtype == KW_BOOL && part == Part::input)
    fail(first, owner + " is an attribute: attributes come after '*'");
  expect("[", "after the element type of " + owner);
  if (!is("]")) {
    do {
      const Token& token = peek();
      if (type.shape.size() == KW_MAX_RANK) fail(token, format("%s has more than %d dimensions", owner.c_str(), KW_MAX_RANK));
      type.shape.push_back(dim(part));
      if (type.shape.back().variadic && type.shape.size() > 1) fail(token, "'*' stands for leading dimensions: it comes first in a shape");
    } while (accept(","));
  }
  expect("]", "after the dimensions of " + owner);
  marks(type, owner, part);
  return type;
}

void ContractParser::marks(TensorType& type, const std::string& owner, Part part) {
  for (;; take()) {
    bool* mark = is("?") ? &type.optional : is("...") ? &type.list : is("!") ? &type.written : nullptr;
    if (!mark) return;
    if (*mark) fail(peek(), "a second " + quote(peek()));
    if (part != Part::input && mark == &type.written) fail(peek(), "'!' is for inputs: a result is always written");
    if (part != Part::input && mark == &type.list) fail(peek(), owner + " cannot be a list: take a list and write to it in place ('!')");
    *mark = true;
  }
}

ElementType ContractParser::element(const std::string& owner) {
  const Token& token = expect_name("the element type of " + owner);
  ElementType e;
  if (auto dtype = parse_dtype(token.text)) {
    e.dtype = *dtype;
    return e;
  }
  for (std::string_view word : {"float", "int", "str"})
    if (token.text == word) fail(token, owner + " is an attribute: attributes come after '*'");
  const bool acc = token.text == "acc";
  if (acc) expect("(", "after 'acc'");
  const Token& variable = acc ? expect_name("a type variable") : token;
  e.kind = acc ? ElementType::Kind::accumulator : ElementType::Kind::variable;
  e.variable = index_by_name(c_.types, variable.text);
  if (e.variable < 0) {
    if (variable.text.front() >= 'A' && variable.text.front() <= 'Z')
      fail(variable,
           "the type " + std::string(variable.text) + " is not declared: add 'where " + std::string(variable.text) + ": f32 bf16'");
    fail(variable,
         quote(variable) + " is not an element type (f16 bf16 f32 f64 i8 u8 i32 i64 bool fp8e4m3 fp8e5m2, acc(T), or a variable)");
  }
  if (acc) expect(")", "after the type variable");
  return e;
}

// ---- dimensions --------------------------------------------------------------------------------------------------------------

Dim ContractParser::dim(Part part) {
  Dim d;
  operations_ = 0;
  d.variadic = accept("*");
  d.size = d.variadic ? dim_name(expect_name("the name of the leading dimensions"), true, part) : size(part, 0);
  return d;
}

Size ContractParser::operation(Size::Kind kind, Size a, Size b) {
  if (++operations_ > max_depth) fail(peek(), format("a size has at most %d operations", max_depth));
  Size s;
  s.kind = kind;
  s.operands.push_back(std::move(a));
  s.operands.push_back(std::move(b));
  return s;
}

Size ContractParser::size(Part part, int depth) {
  if (depth > max_depth) fail(peek(), "too many parentheses");
  Size left = product(part, depth);
  while (is("+") || is("-")) {
    Size::Kind kind = take().text == "+" ? Size::Kind::add : Size::Kind::sub;
    left = operation(kind, std::move(left), product(part, depth));
  }
  return left;
}

Size ContractParser::product(Part part, int depth) {
  Size left = factor(part, depth);
  while (is("*") || is("/")) {
    bool division = take().text == "/";
    const Token& token = peek();
    Size right = factor(part, depth);
    if (division && (right.kind != Size::Kind::constant || right.value == 0)) fail(token, "a size is divided by a positive number only");
    left = operation(division ? Size::Kind::div : Size::Kind::mul, std::move(left), std::move(right));
  }
  return left;
}

Size ContractParser::factor(Part part, int depth) {
  const Token& token = peek();
  if (token.kind == Token::Kind::number) {
    Size s;
    const char* end = token.text.data() + token.text.size();
    auto [stop, fault] = std::from_chars(token.text.data(), end, s.value);
    if (fault != std::errc() || stop != end) fail(token, quote(token) + " is not a whole number that fits 64 bits");
    take();
    return s;
  }
  if (accept("(")) {
    Size s = size(part, depth + 1);
    expect(")", "in a size");
    return s;
  }
  if (is_word("min") || is_word("max")) {
    if (part != Part::scratch) fail(token, quote(token) + " is for the upper bound of a scratch tensor only");
    Size::Kind kind = take().text == "min" ? Size::Kind::min : Size::Kind::max;
    expect("(", "after " + quote(token));
    Size a = size(part, depth + 1);
    expect(",", "between the two sizes of " + quote(token));
    Size b = size(part, depth + 1);
    expect(")", "after the two sizes of " + quote(token));
    return operation(kind, std::move(a), std::move(b));
  }
  return dim_name(expect_name("a dimension or a number"), false, part);
}

Size ContractParser::dim_name(const Token& token, bool variadic, Part part) {
  std::string name(token.text);
  if (index_by_name(c_.types, name) >= 0) fail(token, name + " is a type variable, not a dimension");
  if (auto why = refuse_symbol(name)) fail(token, "the dimension " + quote(token) + " " + *why);
  Size s;
  s.kind = Size::Kind::dim;
  s.value = index_of(c_.dims, name);
  if (s.value < 0) {
    if (part != Part::input) fail(token, name + " is not a dimension of any input");
    if (c_.dims.size() == KW_MAX_SYMBOLS) fail(token, format("an op has at most %d dimensions", KW_MAX_SYMBOLS));
    s.value = static_cast<int64_t>(c_.dims.size());
    c_.dims.push_back(name);
    c_.dim_variadic.push_back(variadic);
    return s;
  }
  bool is_variadic = c_.dim_variadic[static_cast<size_t>(s.value)];
  if (variadic && !is_variadic) fail(token, name + " is a single dimension elsewhere");
  if (!variadic && is_variadic && part == Part::input)
    fail(token, name + " stands for any number of dimensions: write *" + name + " (its product is for results and scratch)");
  return s;
}

}  // namespace kw
