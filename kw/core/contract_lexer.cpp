#include "kw/core/contract_lexer.h"

#include <algorithm>

#include "kw/core/error.h"

namespace kw {
namespace {

// Not <cctype>: its answers depend on the locale.
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

constexpr std::string_view symbols[] = {"...", "->", ">=", "<=", "(", ")", "[", "]", ",", ":",
                                        "*",   "?",  "!",  ">",  "<", "=", "+", "-", "/", "|"};
constexpr size_t shown = 140;  // characters of a line that an error shows

}  // namespace

void ContractText::fail(size_t at, const std::string& sentence) const {
  at = std::min(at, text_.size());
  size_t begin = at, end = at;
  while (begin > 0 && text_[begin - 1] != '\n') begin--;
  while (end < text_.size() && text_[end] != '\n') end++;
  while (begin < at && is_space(text_[begin])) begin++;
  if (at - begin > shown * 2 / 3) begin = at - shown * 2 / 3;
  end = std::min(end, begin + shown);
  std::string line(text_.substr(begin, end - begin));
  for (char& c : line)
    if (!is_printable(c)) c = c == '\t' ? ' ' : '?';

  size_t first = 0, last = 0;
  while (first < text_.size() && is_space(text_[first])) first++;
  last = first;
  while (last < text_.size() && last - first < 64 && (is_letter(text_[last]) || is_digit(text_[last]))) last++;
  std::string op(text_.substr(first, last - first));
  throw Error(KW_ERROR_CONTRACT,
              (op.empty() ? "contract" : op) + ": " + sentence + "\n  " + line + "\n  " + std::string(at - begin, ' ') + "^");
}

Token ContractText::next(size_t at) const {
  auto here = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  auto token = [&](Token::Kind kind, size_t end) { return Token{kind, text_.substr(at, end - at), at}; };
  size_t end = at;
  if (is_letter(text_[at])) {
    while (is_letter(here(end)) || is_digit(here(end))) end++;
    return token(Token::Kind::name, end);
  }
  if (is_digit(text_[at])) {
    while (is_digit(here(end))) end++;
    if (here(end) == '.' && is_digit(here(end + 1)))
      for (end++; is_digit(here(end));) end++;
    if (here(end) == 'e' || here(end) == 'E') {
      size_t digits = end + (here(end + 1) == '-' || here(end + 1) == '+' ? 2 : 1);
      if (is_digit(here(digits)))
        for (end = digits; is_digit(here(end));) end++;
    }
    if (is_letter(here(end))) fail(end, "a letter follows a number");
    return token(Token::Kind::number, end);
  }
  if (text_[at] == '"') {
    for (end++; is_printable(here(end)) && here(end) != '"' && here(end) != '\\';) end++;
    if (here(end) != '"') fail(end, "expected '\"' at the end of a text of printable characters without '\\'");
    return {Token::Kind::string, text_.substr(at + 1, end - at - 1), at};
  }
  for (std::string_view s : symbols)
    if (text_.substr(at, s.size()) == s) return token(Token::Kind::symbol, at + s.size());
  if (is_printable(text_[at])) fail(at, format("'%c' has no meaning in a contract", text_[at]));
  fail(at, format("the byte 0x%02x has no meaning in a contract", static_cast<unsigned char>(text_[at])));
}

std::vector<Token> ContractText::tokens() const {
  std::vector<Token> result;
  size_t after = 0;  // the last word: the end of a contract is there, not after the blank lines that follow
  for (size_t at = 0; at < text_.size();) {
    if (is_space(text_[at])) {
      at++;
      continue;
    }
    result.push_back(next(at));
    at += result.back().text.size() + (result.back().kind == Token::Kind::string ? 2 : 0);
    after = at;
  }
  result.push_back({Token::Kind::end, {}, after});
  return result;
}

std::string quote(const Token& token) {
  if (token.kind == Token::Kind::end) return "the end of the contract";
  if (token.kind == Token::Kind::string) return "\"" + std::string(token.text) + "\"";
  return "'" + std::string(token.text.substr(0, 64)) + "'";
}

}  // namespace kw
