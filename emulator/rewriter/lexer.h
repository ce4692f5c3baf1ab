// CUDA C++ as tokens; the texts joined are the source again.
#pragma once
#include <string>
#include <vector>

namespace kwemu {
enum TokenKind { kSpace, kWord, kNumber, kString, kPunctuation, kDirective };
struct Token {
  TokenKind kind;
  std::string text;
};
// Comments count as space, a preprocessor line is one token, `::`, `->` and `<<<` are one each. `line_start`: does the text begin a line?
std::vector<Token> tokens_of(const std::string& source, bool line_start);
}  // namespace kwemu
