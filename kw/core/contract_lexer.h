// The words of a contract, and how to complain about one: internal to the contract parser.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kw {

struct Token {
  enum class Kind { end, name, number, string, symbol };
  Kind kind = Kind::end;
  std::string_view text;  // a string without its quotes
  size_t at = 0;          // byte offset in the contract
};

// A contract's text. Tokens and views point into it.
class ContractText {
 public:
  explicit ContractText(std::string_view text) : text_(text) {}
  std::string_view whole() const { return text_; }
  // Throws KW_ERROR_CONTRACT: "op: sentence", the line, and a caret below the byte `at`.
  [[noreturn]] void fail(size_t at, const std::string& sentence) const;
  std::vector<Token> tokens() const;  // ends with Kind::end; throws on a character that no contract has

 private:
  Token next(size_t at) const;
  std::string_view text_;
};

// "'('", "the end of the contract": how a sentence names a token.
std::string quote(const Token& token);

}  // namespace kw
