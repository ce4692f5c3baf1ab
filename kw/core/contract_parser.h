// Recursive descent over the words of a contract: internal. The grammar is in docs/contract.md; each function reads one rule of it.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "kw/core/contract.h"
#include "kw/core/contract_lexer.h"

namespace kw {

// Where names stand in the text, by the same index as in Contract: what is checked at the end still points at its place.
struct ContractPlaces {
  size_t name = 0, arrow = 0, where = 0, gradient = 0, backward = 0;
  std::vector<size_t> inputs, attributes, results, types, targets, arguments;
};

class ContractParser {
 public:
  explicit ContractParser(std::string_view text) : text_(text), words_(text_.tokens()) {}
  Contract parse();  // the whole, checked

 private:
  enum class Part { input, result, scratch };  // of a contract; sizes may say more in a later part

  // Words.
  const Token& peek(size_t ahead = 0) const { return words_[std::min(pos_ + ahead, words_.size() - 1)]; }
  const Token& take() { return words_[pos_ + 1 < words_.size() ? pos_++ : pos_]; }
  bool is(std::string_view symbol, size_t ahead = 0) const;
  bool is_word(std::string_view word, size_t ahead = 0) const;
  bool accept(std::string_view symbol);
  void expect(std::string_view symbol, const std::string& place);  // "expected ']' after the dimensions of x, but found ..."
  const Token& expect_name(const std::string& what);
  std::string name_of(const Token& token, const std::string& what);  // checked against the reserved names
  [[noreturn]] void fail(const Token& token, const std::string& sentence) const { text_.fail(token.at, sentence); }

  // contract_parse.cpp
  void arguments();
  void input();
  void results();
  Result result(Result::Kind kind);
  TensorType tensor(const std::string& owner, Part part);
  ElementType element(const std::string& owner);
  void marks(TensorType& type, const std::string& owner, Part part);
  void present_with(Result& result, const Token& token);
  Dim dim(Part part);
  Size size(Part part, int depth);
  Size product(Part part, int depth);
  Size factor(Part part, int depth);
  Size operation(Size::Kind kind, Size a, Size b);
  Size dim_name(const Token& token, bool variadic, Part part);

  // contract_clauses.cpp
  void attribute();
  void bounds(Attribute& attribute);
  void default_value(Attribute& attribute);
  void check_within(const Attribute& attribute, const Token& token);
  double number(bool integer);
  void find_types();  // reads `where` ahead of everything: whether a capital is a type is known before its use
  void type_variable();
  void clauses();
  void extra_results(Result::Kind kind);
  void gradient();

  ContractText text_;
  std::vector<Token> words_;
  size_t pos_ = 0, where_begin_ = 0, where_end_ = 0;
  int operations_ = 0;  // of the size at hand
  Contract c_;
  ContractPlaces places_;
  std::vector<Result> saved_, scratch_;
  std::vector<size_t> saved_at_, scratch_at_;
};

// contract_check.cpp: what can only be said of the whole. Throws like the parser.
void check_contract(const Contract& contract, const ContractText& text, const ContractPlaces& places);

}  // namespace kw
