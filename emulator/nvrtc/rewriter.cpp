#include "emulator/nvrtc/rewriter.h"

#include <cctype>
#include <cstring>

namespace kwemu {
namespace {
enum Kind { kSpace, kWord, kNumber, kString, kPunctuation, kDirective };
struct Token {
  Kind kind;
  std::string text;
};

bool word_start(char c) { return isalpha((unsigned char)c) || c == '_' || c == '$'; }
bool word_char(char c) { return word_start(c) || isdigit((unsigned char)c); }

// Comments count as space, a preprocessor line is one token, `::`, `->` and `<<<` are one each; the texts joined are the source again.
class Lexer {
 public:
  Lexer(const std::string& s, bool line_start) : s_(s), line_start_(line_start) {}
  std::vector<Token> all() {
    while (at_ < s_.size()) one();
    return std::move(tokens_);
  }

 private:
  void take(Kind kind, size_t end) {
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

class Rewriter {
 public:
  Rewriter(const std::string& source, std::string file, int line = 1, bool in_macro = false)
      : tokens_(Lexer(source, !in_macro).all()), file_(std::move(file)), line_(line), in_macro_(in_macro) {}
  Rewritten run() {
    for (size_t i = 0; i < tokens_.size() && out_.error.empty();) i = step(i);
    return std::move(out_);
  }

 private:
  size_t next(size_t i) const {  // the next token that is not space; tokens_.size() at the end
    do i++;
    while (i < tokens_.size() && tokens_[i].kind == kSpace);
    return i;
  }
  bool is(size_t i, const char* text) const { return i < tokens_.size() && tokens_[i].text == text; }
  bool is_word(size_t i) const { return i < tokens_.size() && tokens_[i].kind == kWord; }
  void emit(size_t i) {
    out_.text += tokens_[i].text;
    for (char c : tokens_[i].text) line_ += c == '\n';
    if (tokens_[i].kind != kSpace) previous_ = tokens_[i].text;
  }
  size_t closing(size_t open) const {  // of a parenthesis
    int depth = 0;
    for (size_t i = open; i < tokens_.size(); i++) {
      depth += is(i, "(") - is(i, ")");
      if (!depth) return i;
    }
    return tokens_.size();
  }

  size_t step(size_t i) {
    const Token& t = tokens_[i];
    if (t.kind == kDirective) {
      if (is_define(t.text)) return step_define(i);
      note_include(t.text);
    } else if (t.kind == kPunctuation) {
      if (t.text == "<<<")
        out_.error = file_ + ":" + std::to_string(line_) + ": error: a launch from device code cannot run in the emulator\n";
      if (t.text == "{") braces_.push_back(namespace_opens_), namespace_opens_ = false;
      if (t.text == "}" && !braces_.empty()) braces_.pop_back();
      if (t.text == ";" || t.text == "}") namespace_opens_ = false;
    } else if (t.kind == kWord) {
      if (t.text == "namespace") namespace_opens_ = true;
      if (t.text == "extern") return step_extern(i);
      if (size_t end = step_builtin(i)) return end;
    }
    emit(i);
    return i + 1;
  }

  static bool is_define(const std::string& directive) {
    size_t at = directive.find_first_not_of(" \t", 1);
    return at != std::string::npos && directive.compare(at, 6, "define") == 0;
  }
  size_t step_define(size_t i) {  // a macro's text is code like any other
    const std::string& text = tokens_[i].text;
    size_t body = text.find("define") + 6;
    Rewritten r = Rewriter(text.substr(body), file_, line_, true).run();
    out_.text += text.substr(0, body) + r.text;
    out_.dynamic_shared |= r.dynamic_shared;
    if (out_.error.empty()) out_.error = r.error;
    for (char c : text) line_ += c == '\n';
    return i + 1;
  }

  void note_include(const std::string& line) {
    size_t at = line.find_first_not_of(" \t", 1);
    if (at == std::string::npos || line.compare(at, 7, "include")) return;
    size_t open = line.find_first_of("\"<", at + 7);
    if (open == std::string::npos) return;
    size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    if (close != std::string::npos) out_.includes.push_back(line.substr(open + 1, close - open - 1));
  }

  // threadIdx and its kin become calls, but not where a program has a member or a parameter of that name.
  size_t step_builtin(size_t i) {
    const std::string& w = tokens_[i].text;
    if (w != "threadIdx" && w != "blockIdx" && w != "blockDim" && w != "gridDim") return 0;
    if (previous_ == "." || previous_ == "->" || previous_ == "::") return 0;
    size_t n = next(i);
    bool component = is(n, ".") && (is(next(n), "x") || is(next(n), "y") || is(next(n), "z"));
    bool whole = (previous_ == "=" || previous_ == "(" || previous_ == "," || previous_ == "return" || previous_ == "{") &&
                 (is(n, ";") || is(n, ")") || is(n, ",") || is(n, "}"));
    if (!component && !whole) return 0;
    out_.text += "kwemu_" + w + "()";
    previous_ = ")";
    return i + 1;
  }

  // extern "C" __global__ ... name(   and   extern __shared__ T name[];
  size_t step_extern(size_t i) {
    size_t n = next(i);
    if (n < tokens_.size() && tokens_[n].kind == kString) {
      if (is(next(n), "{")) namespace_opens_ = true;  // a linkage block is no function
      note_c_kernel(next(n));
      emit(i);
      return i + 1;
    }
    size_t shared = n;
    std::string before;  // specifiers in front of __shared__
    for (; shared < tokens_.size() && !is(shared, "__shared__") && !is(shared, ";") && !is(shared, "{"); shared++)
      before += tokens_[shared].text;
    if (!is(shared, "__shared__")) {
      emit(i);
      return i + 1;
    }
    std::vector<size_t> declarator;  // type and name
    size_t j = shared + 1;
    for (; j < tokens_.size() && !is(j, "[") && !is(j, ";"); j++) {
      if (is(j, "__align__") || is(j, "alignas") || is(j, "__attribute__"))
        j = closing(next(j));  // the arena is aligned to 1024 bytes anyway
      else
        declarator.push_back(j);
    }
    std::string type, name;
    while (!declarator.empty() && tokens_[declarator.back()].kind == kSpace) declarator.pop_back();
    if (!declarator.empty() && is_word(declarator.back())) {
      name = tokens_[declarator.back()].text;
      declarator.pop_back();
    }
    for (size_t k : declarator) type += tokens_[k].text;
    size_t end = is(j, "[") ? next(next(j)) : j;
    if (!is(j, "[") || !is(next(j), "]") || !is(end, ";") || name.empty()) {
      out_.error = file_ + ":" + std::to_string(line_) + ": error: expected `extern __shared__ T name[];`\n";
      return tokens_.size();
    }
    out_.dynamic_shared = true;
    type = strip_alignment(before) + " " + type;
    int lines = 0;
    for (size_t k = i; k <= end; k++)
      for (char c : tokens_[k].text) lines += c == '\n';
    for (char& c : type) c = c == '\n' ? ' ' : c;
    bool in_function = in_macro_;
    for (bool is_namespace : braces_) in_function |= !is_namespace;
    // In a function a reference; at namespace scope another name of the arena (in templates GCC loses such a label).
    out_.text += in_function ? type + "(&" + name + ")[] = *(" + type + "(*)[])kwemu_dynamic<char>();"
                             : "extern __thread " + type + " " + name + "[] __asm__(\"kwemu_dynamic_shared\");";
    for (int k = 0; k < lines; k++) out_.text += in_macro_ ? "\\\n" : "\n";
    line_ += lines;
    previous_ = ";";
    return end + 1;
  }
  static std::string strip_alignment(const std::string& s) {
    for (const char* word : {"__align__", "alignas", "__attribute__"}) {
      size_t at = s.find(word);
      if (at == std::string::npos) continue;
      size_t i = s.find('(', at);
      for (int depth = 0; i < s.size(); i++) {
        depth += (s[i] == '(') - (s[i] == ')');
        if (!depth) break;
      }
      return strip_alignment(s.substr(0, at) + (i < s.size() ? s.substr(i + 1) : ""));
    }
    return s;
  }

  void note_c_kernel(size_t i) {
    bool kernel = false;
    std::string name;
    for (; i < tokens_.size() && !is(i, ";") && !is(i, "{"); i = next(i)) {
      if (is(i, "__global__")) kernel = true;
      if (is(i, "__launch_bounds__")) {
        i = closing(next(i));
      } else if (is(i, "(")) {
        break;
      } else if (is_word(i)) {
        name = tokens_[i].text;
      }
    }
    if (kernel && is(i, "(") && !name.empty()) out_.c_kernels.push_back(name);
  }

  std::vector<Token> tokens_;
  std::string file_;
  Rewritten out_;
  int line_;
  bool in_macro_;
  std::string previous_;          // text of the last token that is not space
  std::vector<bool> braces_;      // open ones: of a namespace or linkage block?
  bool namespace_opens_ = false;  // the next brace is one of these
};
}  // namespace

Rewritten rewrite(const std::string& source, const std::string& file) { return Rewriter(source, file).run(); }
}  // namespace kwemu
