#include "emulator/rewriter/rewriter.h"

#include <cctype>

#include "emulator/rewriter/ptx.h"
#include "emulator/rewriter/token_view.h"

namespace kwemu {
namespace {
class Rewriter : TokenView {
 public:
  Rewriter(const std::string& source, std::string file, Dialect& dialect, int line = 1, bool in_macro = false)
      : TokenView(tokens_of(source, !in_macro), in_macro), file_(std::move(file)), dialect_(dialect), line_(line) {
    starts_.resize(tokens_.size() + 1);
  }
  Rewritten run() {
    range(0, tokens_.size());
    return std::move(out_);
  }

 private:
  void range(size_t begin, size_t end) {
    for (size_t i = begin; i < end && out_.error.empty();) {
      starts_[i] = out_.text.size();
      i = step(i);
    }
  }
  void emit(size_t i) {
    out_.text += tokens_[i].text;
    for (char c : tokens_[i].text) line_ += c == '\n';
    if (tokens_[i].kind != kSpace) previous_ = tokens_[i].text;
  }

  size_t step(size_t i) {
    const Token& t = tokens_[i];
    if (t.kind == kDirective) {
      if (is_define(t.text)) return step_define(i);
      note_include(t.text);
      if (dialect_.program) return step_condition(i);
    } else if (t.kind == kPunctuation) {
      if (t.text == "<<<") return step_launch(i);
      if (t.text == "{") braces_.push_back(namespace_opens_), namespace_opens_ = false;
      if (t.text == "}" && !braces_.empty()) braces_.pop_back();
      if (t.text == ";" || t.text == "}") namespace_opens_ = false;
    } else if (t.kind == kWord) {
      if (t.text == "namespace") namespace_opens_ = true;
      if (t.text == "__device__" || t.text == "__global__") note_device_function(i);
      if (t.text == "extern") return step_extern(i);
      if (t.text == "asm" || t.text == "__asm__" || t.text == "__asm")
        if (size_t end = step_asm(i)) return end;
      if (size_t end = step_builtin(i)) return end;
      if (dialect_.program)
        if (size_t end = step_program_word(i)) return end;
    }
    if (dialect_.program && t.text == "(")
      if (size_t end = step_address(i)) return end;
    emit(i);
    return i + 1;
  }
  void fail(const std::string& sentence) { out_.error = file_ + ":" + std::to_string(line_) + ": error: " + sentence + "\n"; }

  static bool is_define(const std::string& directive) {
    size_t at = directive.find_first_not_of(" \t", 1);
    return at != std::string::npos && directive.compare(at, 6, "define") == 0;
  }
  size_t step_define(size_t i) {  // a macro's text is code like any other
    const std::string& text = tokens_[i].text;
    size_t body = text.find("define") + 6;
    Rewritten r = Rewriter(with_new_value(text.substr(body)), file_, dialect_, line_, true).run();
    out_.text += text.substr(0, body) + r.text;
    out_.dynamic_shared |= r.dynamic_shared;
    out_.device_functions.merge(r.device_functions);
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

  // ---- inline PTX: becomes C++ -----------------------------------------------------------------------------------------------
  size_t step_asm(size_t i) {
    size_t open = next(i);
    while (is(open, "volatile") || is(open, "__volatile__") || is(open, "inline")) open = next(open);
    if (!is(open, "(")) return 0;
    const size_t end = closing(open);
    InlineAsm code;
    size_t k = next(open);
    for (; k < end; k = next(k)) {  // the text: nothing but strings
      if (tokens_[k].kind != kString) break;
      append_string(code.text, tokens_[k].text);
    }
    if (is_host_assembly(code.text)) return 0;
    std::string missing = k < end && !is(k, ":") && !is(k, "::") ? "a text that is not all strings" : "", text;
    int part = 0;
    for (AsmOperand now; k < end && missing.empty(); k = next(k)) {
      if (is(k, ":") || is(k, "::")) {
        part += is(k, ":") ? 1 : 2;
      } else if (part < 3 && tokens_[k].kind == kString && is(next(k), "(")) {
        const size_t close = closing(next(k));
        now.constraint = tokens_[k].text;
        now.expression = joined(next(k) + 1, close);
        code.operands.push_back(now);
        code.outputs += part == 1;
        now = {};
        k = close;
      } else if (part < 3 && is(k, "[")) {
        now.name = tokens_[next(k)].text;
        k = next(next(k));
      }
    }
    if (missing.empty()) text = translate_ptx(code, missing);
    if (!missing.empty()) text = "_Pragma(\"GCC error \\\"the emulator has no PTX for " + missing + "\\\"\")";
    int lines = 0;
    for (size_t n = i; n <= end && n < tokens_.size(); n++)
      for (char c : tokens_[n].text) lines += c == '\n';
    Dialect plain = dialect_;
    out_.text += Rewriter(text, file_, plain, line_, true).run().text;
    for (line_ += lines; lines; lines--) out_.text += in_macro_ ? "\\\n" : "\n";
    previous_ = ")";
    return end + 1;
  }

  // ---- whole programs -------------------------------------------------------------------------------------------------------
  // Device and host code are one unit here, so the macros that tell them apart would reach the toolkit's own headers too.
  static const char* program_name(const std::string& word) {
    return word == "__CUDA_ARCH__" ? "KWEMU_CUDA_ARCH" : word == "__CUDACC__" || word == "__NVCC__" ? "KWEMU_CUDACC" : nullptr;
  }
  size_t step_condition(size_t i) {  // #if, #ifdef and their kin
    out_.text += "#";
    for (const Token& t : tokens_of(tokens_[i].text.substr(1), false)) {
      const char* other = t.kind == kWord ? program_name(t.text) : nullptr;
      out_.text += other ? other : t.text;
    }
    for (char c : tokens_[i].text) line_ += c == '\n';
    return i + 1;
  }
  size_t step_program_word(size_t i) {
    const std::string& w = tokens_[i].text;
    if (const char* other = program_name(w)) {
      out_.text += other;
    } else if (w == "__noinline__" && previous_ != "(") {  // no macro: the standard library has an attribute of that name
      out_.text += "__attribute__((noinline))";
    } else if ((w == "cudaLaunchCooperativeKernel" || w == "cudaLaunchKernel") && is(next(i), "(")) {
      out_.text += w + "(";
      previous_ = "(";
      return past_void_cast(next(i));
    } else if (w == "static" && is(next(i), "__shared__")) {  // the word that __shared__ becomes is static already
      return i + 1;
    } else if (w == "NULL" && in_launch_) {
      out_.text += "nullptr";
    } else if (calls_member_template(i)) {
      out_.text += "template " + w;
    } else {
      return is(next(i), "=") && !is(next(i) + 1, "=") ? step_initialiser(i) : 0;
    }
    previous_ = w;
    return i + 1;
  }
  // (void*)kernel: with its type forgotten, its address alone must be enough to launch it.
  size_t step_address(size_t i) {
    size_t end = past_void_cast_at(i);
    if (!end || previous_ == "sizeof") return 0;
    while (end < tokens_.size() && tokens_[end].kind == kSpace) end++;
    if (is(end, "&")) end = next(end);
    if (!is_word(end) || !dialect_.kernels.count(tokens_[end].text)) return 0;
    size_t last = end;
    if (is(next(end), "<"))
      for (int depth = 0; ++last < tokens_.size();) {
        depth += is(last, "<") - is(last, ">");
        if (!depth && !tokens_[last].text.empty() && is(last, ">")) break;
      }
    out_.text += "kwemu_kernel_address(";
    for (; end <= last && end < tokens_.size(); end++) emit(end);
    out_.text += ")";
    previous_ = ")";
    return last + 1;
  }
  const std::string* new_value(const std::string& name) {
    for (auto& [n, value] : dialect_.initialisers) {
      if (n != name) continue;
      dialect_.initialised.push_back(n);
      return &value;
    }
    return nullptr;
  }
  size_t step_initialiser(size_t i) {  // int N = 8192, M = 4;
    bool declares =
        previous_ == "," || previous_ == "*" || (!previous_.empty() && (isalnum((unsigned char)previous_[0]) || previous_ == ">"));
    const std::string* value = declares && previous_ != "return" ? new_value(tokens_[i].text) : nullptr;
    if (!value) return 0;
    out_.text += tokens_[i].text + " = " + *value;
    size_t end = next(i);
    for (int depth = 0; end < tokens_.size(); end++) {
      if (!depth && (is(end, ";") || is(end, ","))) break;
      depth += (is(end, "(") || is(end, "{") || is(end, "[")) - (is(end, ")") || is(end, "}") || is(end, "]"));
      if (depth < 0) break;
      for (char c : tokens_[end].text)
        if (c == '\n') out_.text += c, line_++;
    }
    previous_ = *value;
    return end;
  }
  std::string with_new_value(const std::string& macro) {  // " N 8192" of a #define
    size_t name = macro.find_first_not_of(" \t");
    if (!dialect_.program || name == std::string::npos) return macro;
    size_t end = name;
    while (end < macro.size() && (isalnum((unsigned char)macro[end]) || macro[end] == '_')) end++;
    const std::string* value = end < macro.size() && macro[end] != '(' ? new_value(macro.substr(name, end - name)) : nullptr;
    return value ? macro.substr(0, end) + " " + *value : macro;
  }

  // kernel<<<grid, block>>>(arguments)  ->  kwemu_start(kwemu_config(grid, block), "kernel", [=](auto... a) { kernel(a...); }, arguments)
  size_t step_launch(size_t i) {
    if (!dialect_.program) return fail("a launch from device code cannot run in the emulator"), tokens_.size();
    size_t begin = kernel_begin(i), close = i + 1;
    for (int depth = 0; close < tokens_.size(); close++) {
      if (!depth && is(close, ">") && is(close + 1, ">") && is(close + 2, ">")) break;
      depth += (is(close, "(") || is(close, "{")) - (is(close, ")") || is(close, "}"));
    }
    size_t open = close < tokens_.size() ? next(close + 2) : tokens_.size();
    if (begin == i || !is(open, "(")) return fail("expected `kernel<<<grid, block>>>(arguments)`"), tokens_.size();
    size_t end = closing(open);
    std::string kernel = out_.text.substr(starts_[begin]), name;
    out_.text.resize(starts_[begin]);
    int lines = 0;  // that would be lost with the space before "<<<"
    for (; !kernel.empty() && (isspace((unsigned char)kernel.back()) || kernel.back() == '\\'); kernel.pop_back())
      lines += kernel.back() == '\n';
    for (char c : kernel)
      if (c != '\\' && c != '"' && !isspace((unsigned char)c)) name += c;
    out_.text += "kwemu_start(kwemu_config(";
    in_launch_ = true;
    range(i + 1, close);
    out_.text += "), \"" + name + "\", [=](auto... kwemu_a) { " + kernel + "(kwemu_a...); }";
    if (next(open) < end) out_.text += ", ";
    range(open + 1, end);
    in_launch_ = false;
    out_.text += ")";
    for (; lines; lines--) out_.text += in_macro_ ? "\\\n" : "\n";
    previous_ = ")";
    return end + 1;
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
      fail("expected `extern __shared__ T name[];`");
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

  void note_device_function(size_t i) {
    const bool kernel = is(i, "__global__");
    for (; i < tokens_.size() && !is(i, ";") && !is(i, "{") && !is(i, "="); i = next(i)) {
      if (is(i, "__launch_bounds__") || is(i, "__align__") || is(i, "__attribute__") || is(i, "alignas"))
        i = closing(next(i));
      else if (is_word(i) && is(next(i), "("))
        return note_name(is(i, "operator") ? "operator" : tokens_[i].text, kernel);
      else if (is(i, "operator"))
        return void(out_.device_functions.insert("operator"));
    }
  }
  void note_name(const std::string& name, bool kernel) {
    out_.device_functions.insert(name);
    if (kernel) dialect_.kernels.insert(name);
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

  std::string file_;
  Dialect& dialect_;
  Rewritten out_;
  std::vector<size_t> starts_;  // of each token in the new text
  bool in_launch_ = false;
  int line_;
  std::string previous_;          // text of the last token that is not space
  std::vector<bool> braces_;      // open ones: of a namespace or linkage block?
  bool namespace_opens_ = false;  // the next brace is one of these
};
}  // namespace

Rewritten rewrite(const std::string& source, const std::string& file, Dialect& dialect) { return Rewriter(source, file, dialect).run(); }
}  // namespace kwemu
