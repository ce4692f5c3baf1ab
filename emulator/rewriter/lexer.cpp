#include "emulator/rewriter/lexer.h"

#include <cctype>
#include <cstring>

namespace kwemu {
namespace {
bool word_start(char c) { return isalpha((unsigned char)c) || c == '_' || c == '$'; }
bool word_char(char c) { return word_start(c) || isdigit((unsigned char)c); }

class Lexer {
 public:
  Lexer(const std::string& s, bool line_start) : s_(s), line_start_(line_start) {}
  std::vector<Token> all() {
    while (at_ < s_.size()) one();
    return std::move(tokens_);
  }

 private:
  void take(TokenKind kind, size_t end) {
    tokens_.push_back({kind, s_.substr(at_, end - at_)});
    if (kind != kSpace) line_start_ = false;
    if (tokens_.back().text.find('\n') != std::string::npos) line_start_ = true;
    at_ = end;
  }
  bool starts(const char* t) const { return s_.compare(at_, strlen(t), t) == 0; }
  size_t find_end(const char* t, size_t from) const {
    size_t e = s_.find(t, from);
    return e == std::string::npos ? s_.size() : e;
  }
  size_t quoted_end(size_t i) const {
    char quote = s_[i++];
    while (i < s_.size() && s_[i] != quote && s_[i] != '\n') i += s_[i] == '\\' ? 2 : 1;
    return std::min(i + 1, s_.size());
  }
  size_t directive_end() const {
    size_t i = at_;
    while (i < s_.size() && s_[i] != '\n') {
      if (s_[i] == '\\' && i + 1 < s_.size()) {
        i += 2;
      } else if (s_.compare(i, 2, "//") == 0) {
        return find_end("\n", i);
      } else if (s_.compare(i, 2, "/*") == 0) {
        i = std::min(find_end("*/", i + 2) + 2, s_.size());
      } else {
        i++;
      }
    }
    return std::min(i, s_.size());
  }
  void one() {
    char c = s_[at_];
    if (isspace((unsigned char)c)) return take(kSpace, at_ + 1);
    if (starts("//")) return take(kSpace, find_end("\n", at_));
    if (starts("/*")) return take(kSpace, std::min(find_end("*/", at_ + 2) + 2, s_.size()));
    if (c == '#' && line_start_) return take(kDirective, directive_end());
    if (starts("R\"")) {
      size_t open = find_end("(", at_);
      std::string close = ")" + s_.substr(at_ + 2, open - at_ - 2) + "\"";
      return take(kString, std::min(find_end(close.c_str(), open) + close.size(), s_.size()));
    }
    if (c == '"' || c == '\'') return take(kString, quoted_end(at_));
    size_t end = at_ + 1;
    if (isdigit((unsigned char)c)) {
      while (end < s_.size() && (word_char(s_[end]) || s_[end] == '.' || s_[end] == '\'')) end++;
      return take(kNumber, end);
    }
    if (word_start(c)) {
      while (end < s_.size() && word_char(s_[end])) end++;
      return take(kWord, end);
    }
    take(kPunctuation, at_ + (starts("<<<") ? 3 : starts("::") || starts("->") ? 2 : 1));
  }

  const std::string& s_;
  size_t at_ = 0;
  bool line_start_;
  std::vector<Token> tokens_;
};
}  // namespace

std::vector<Token> tokens_of(const std::string& source, bool line_start) { return Lexer(source, line_start).all(); }
}  // namespace kwemu
