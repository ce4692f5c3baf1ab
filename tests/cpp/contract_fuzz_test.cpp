// Broken contracts: no crash, and whatever is refused is refused with KW_ERROR_CONTRACT and a caret below a character of the text.
#include <chrono>
#include <random>

#include "kw/core/contract.h"
#include "kw/core/error.h"
#include "kw/core/size.h"
#include "testing/expect.h"
#include "tests/cpp/dozen.h"

using namespace kw;

namespace {

std::mt19937_64 random_bits(20261130);
size_t below(size_t n) { return n ? random_bits() % n : 0; }

constexpr const char* words[] = {"(",
                                 ")",
                                 "[",
                                 "]",
                                 ",",
                                 ":",
                                 "*",
                                 "?",
                                 "!",
                                 "...",
                                 "->",
                                 ">=",
                                 "<",
                                 "=",
                                 "+",
                                 "-",
                                 "/",
                                 "|",
                                 "where",
                                 "gradient",
                                 "saved",
                                 "scratch",
                                 "not",
                                 "capturable",
                                 "with",
                                 "sum",
                                 "max",
                                 "min",
                                 "acc",
                                 "T",
                                 "W",
                                 "*B",
                                 "N",
                                 "N/2",
                                 "f32",
                                 "bool",
                                 "float",
                                 "int",
                                 "str",
                                 "true",
                                 "1e-6",
                                 "0",
                                 "-1",
                                 "99999999999999999999",
                                 "dx",
                                 "dy",
                                 "x",
                                 "y",
                                 "\"a\"",
                                 "\"",
                                 "\n",
                                 "\t",
                                 "\0",
                                 "\xff",
                                 "\xc3\xa9",
                                 "((((((((((((((((((((",
                                 "N+N+N+N+N+N+N+N+N+N+N+N+N+N+N+N+N+N+N",
                                 "lambda",
                                 "self",
                                 "_",
                                 "$"};

std::string any_contract() { return test::dozen[below(std::size(test::dozen))]; }

std::string mutate(std::string text) {
  for (size_t n = 1 + below(4); n > 0; n--) {
    size_t at = below(text.size() + 1), length = std::min(text.size() - at, 1 + below(12));
    switch (below(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, words[below(std::size(words))]);
        break;
      case 2:
        text.replace(at, length, words[below(std::size(words))]);
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, length * 4));
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(random_bits());
        break;
      case 5:
        text.resize(at);
        break;
      default: {
        std::string other = any_contract();
        text = text.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }
  return text;
}

std::string noise() {
  std::string text(below(200), ' ');
  for (char& c : text) c = static_cast<char>(random_bits());
  return text;
}

bool whole_size(const Size& s, const Contract& c) {
  if (s.kind == Size::Kind::constant) return s.value >= 0 && s.operands.empty();
  if (s.kind == Size::Kind::dim) return s.value >= 0 && static_cast<size_t>(s.value) < c.dims.size();
  return s.operands.size() == 2 && whole_size(s.operands[0], c) && whole_size(s.operands[1], c);
}

// What everything behind the parser takes for granted.
bool whole_type(const TensorType& t, const Contract& c) {
  bool ok = t.shape.size() <= KW_MAX_RANK;
  for (size_t i = 0; i < t.shape.size(); i++) ok = ok && whole_size(t.shape[i].size, c) && (!t.shape[i].variadic || i == 0);
  if (t.element.kind == ElementType::Kind::fixed) return ok && is_dtype(t.element.dtype);
  return ok && t.element.variable >= 0 && static_cast<size_t>(t.element.variable) < c.types.size();
}

bool whole(const Contract& c) {
  bool ok = !c.name.empty() && c.inputs.size() <= KW_MAX_ARGUMENTS && c.results.size() <= KW_MAX_ARGUMENTS &&
            c.attributes.size() <= KW_MAX_ARGUMENTS && c.dims.size() <= KW_MAX_SYMBOLS && c.types.size() <= KW_MAX_SYMBOLS &&
            c.dims.size() == c.dim_variadic.size();
  for (const Input& i : c.inputs) ok = ok && whole_type(i.type, c);
  for (const Result& r : c.results) {
    ok = ok && whole_type(r.type, c) && r.type.optional == (r.present_with >= 0);
    if (r.present_with >= 0)
      ok = ok && static_cast<size_t>(r.present_with) < c.inputs.size() && c.inputs[static_cast<size_t>(r.present_with)].type.optional;
  }
  for (const TypeVariable& v : c.types) ok = ok && !v.options.empty();
  return ok;
}

// "op: sentence\n  line\n  ^": the line is part of the text, and the caret below it or one place behind it.
bool well_said(const std::string& text, const Error& e) {
  const std::string what = e.what();
  const size_t caret_line = what.rfind('\n');
  if (e.status() != KW_ERROR_CONTRACT || caret_line == what.npos || caret_line == 0) return false;
  const size_t shown_line = what.rfind('\n', caret_line - 1);
  if (shown_line == what.npos) return false;
  const std::string shown = what.substr(shown_line + 1, caret_line - shown_line - 1), caret = what.substr(caret_line + 1);
  for (char c : what)
    if (c != '\n' && (c < ' ' || c > '~')) return false;
  if (shown.size() < 2 || caret.size() < 3 || caret.back() != '^' || caret.find_first_not_of(' ') != caret.size() - 1) return false;
  std::string plain = text;
  for (char& c : plain)
    if (c != '\n' && (c < ' ' || c > '~')) c = c == '\t' ? ' ' : '?';
  return caret.size() - 1 <= shown.size() && plain.find(shown.substr(2)) != plain.npos;
}

}  // namespace

int main() {
  const auto start = std::chrono::steady_clock::now();
  int accepted = 0, refused = 0;
  for (int i = 0; i < 100000; i++) {
    const std::string text = i % 10 == 9 ? noise() : mutate(any_contract());
    try {
      const Contract c = parse_contract(text);
      accepted++;
      if (!whole(c)) test::record(false, __FILE__, __LINE__, "a contract with holes: " + text);
      if (parse_contract(c.text).text != c.text) test::record(false, __FILE__, __LINE__, "reads differently the second time: " + text);
      for (const Input& in : c.inputs) (void)to_text(in.type, c);
    } catch (const Error& e) {
      refused++;
      if (!well_said(text, e)) test::record(false, __FILE__, __LINE__, "badly refused: " + text + "\n" + e.what());
    }
  }
  // The mutations must reach both sides of the parser, or they test nothing.
  KW_EXPECT(accepted > 1000);
  KW_EXPECT(refused > 20000);
  std::cout << accepted << " accepted, " << refused << " refused, in "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s\n";
  return test::finish();
}
