// Tokens with what can be asked of them without changing anything.
#pragma once
#include <cctype>

#include "emulator/rewriter/lexer.h"

namespace kwemu {
class TokenView {
 protected:
  TokenView(std::vector<Token> tokens, bool in_macro) : tokens_(std::move(tokens)), in_macro_(in_macro) {}
  size_t next(size_t i) const {  // the next token that is not space; tokens_.size() at the end
    do i++;
    while (i < tokens_.size() && is_space(i));
    return i;
  }
  bool is(size_t i, const char* text) const { return i < tokens_.size() && tokens_[i].text == text; }
  // A macro's lines are joined by backslashes, which mean nothing.
  bool is_space(size_t i) const { return tokens_[i].kind == kSpace || (in_macro_ && tokens_[i].text == "\\"); }
  bool is_word(size_t i) const { return i < tokens_.size() && tokens_[i].kind == kWord; }
  size_t closing(size_t open) const {  // of a parenthesis
    int depth = 0;
    for (size_t i = open; i < tokens_.size(); i++) {
      depth += is(i, "(") - is(i, ")");
      if (!depth) return i;
    }
    return tokens_.size();
  }
  std::string joined(size_t begin, size_t end) const {
    std::string text;
    for (size_t k = begin; k < end; k++) text += is_space(k) ? " " : tokens_[k].text;
    return text;
  }
  static void append_string(std::string& text, const std::string& literal) {  // without its quotes and escapes
    for (size_t k = 1; k + 1 < literal.size(); k++) {
      if (literal[k] != '\\') {
        text += literal[k];
      } else {
        k++;
        text += literal[k] == 'n' ? '\n' : literal[k] == 't' ? '\t' : literal[k];
      }
    }
  }
  // X<T>::f<n>(...): nvcc does without the `template` that C++ asks for when X<T> depends on a parameter.
  bool calls_member_template(size_t i) const {
    if (i < 2 || !is(i - 1, "::") || !is(i - 2, ">") || !is(i + 1, "<")) return false;
    int depth = 0;
    for (size_t k = i + 1; k < tokens_.size(); k++) {
      depth += is(k, "<") - is(k, ">");
      if (!depth) return is(k + 1, "(");
      bool plain = is_word(k) || tokens_[k].kind == kNumber || tokens_[k].kind == kSpace;
      if (!plain && !is(k, "<") && !is(k, ">") && !is(k, ",") && !is(k, "::")) return false;
    }
    return false;
  }
  // Behind "(" and, if there is one, a cast to void*: the kernel's type tells what its arguments are.
  size_t past_void_cast(size_t open) const {
    size_t end = past_void_cast_at(next(open));
    return end ? end : open + 1;
  }
  size_t past_void_cast_at(size_t i) const {  // 0: there is no cast
    if (!is(i, "(")) return 0;
    size_t word = next(i);
    if (is(word, "const")) word = next(word);
    return is(word, "void") && is(next(word), "*") && is(next(next(word)), ")") ? next(next(word)) + 1 : 0;
  }
  // The first token of the kernel's name in front of "<<<": ns::kernel<T, 4>
  size_t kernel_begin(size_t i) const {
    const auto before = [&](size_t k) {
      while (k > 0 && is_space(k - 1)) k--;
      return k;
    };
    size_t at = before(i);
    for (;;) {
      if (at && is(at - 1, ">")) {
        for (int depth = 0; at > 0;) {
          at--;
          depth += is(at, ">") - is(at, "<");
          if (!depth) break;
        }
        at = before(at);
      } else if (at && is(at - 1, ")")) {
        for (int depth = 0; at > 0;) {
          at--;
          depth += is(at, ")") - is(at, "(");
          if (!depth) return at;
        }
      }
      if (at && is_word(at - 1)) at--;
      if (size_t b = before(at); b && (is(b - 1, "::") || is(b - 1, ".") || is(b - 1, "->"))) {
        at = before(b - 1);
        continue;
      }
      return at;
    }
  }

  std::vector<Token> tokens_;
  bool in_macro_;
};
}  // namespace kwemu
