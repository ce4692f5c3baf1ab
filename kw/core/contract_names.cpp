#include "kw/core/contract_names.h"

namespace kw {
namespace {

// One contract becomes a function in four languages; a name has to be free in all of them.
constexpr std::string_view python[] = {"false", "none",     "true",  "and",    "as",   "assert", "async",  "await",    "break",
                                       "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
                                       "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
                                       "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
constexpr std::string_view cpp[] = {
    "alignas",   "alignof",   "asm",       "auto",     "bool",    "case",      "catch",  "char",         "concept",  "const",
    "constexpr", "consteval", "constinit", "decltype", "default", "delete",    "do",     "double",       "enum",     "explicit",
    "export",    "extern",    "float",     "friend",   "goto",    "inline",    "int",    "long",         "mutable",  "namespace",
    "new",       "noexcept",  "nullptr",   "operator", "private", "protected", "public", "register",     "requires", "short",
    "signed",    "sizeof",    "static",    "struct",   "switch",  "template",  "this",   "thread_local", "throw",    "typedef",
    "typeid",    "typename",  "union",     "unsigned", "using",   "virtual",   "void",   "volatile"};
// torch: `self` and `out` change what a schema means; TensorFlow: every generated function takes `name`; the C++ call takes `stream`; the
// XLA handler takes `op`; Python callables take self, cls, args, kwargs.
constexpr std::string_view frameworks[] = {"self", "out", "name", "stream", "op", "cls", "args", "kwargs"};
constexpr std::string_view grammar[] = {"where", "gradient", "saved", "scratch", "capturable", "sum", "min", "max", "acc", "str"};

template <size_t n>
bool contains(const std::string_view (&list)[n], std::string_view name) {
  for (std::string_view word : list)
    if (word == name) return true;
  return false;
}

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<std::string> refuse_word(std::string_view name) {
  if (name.empty() || name.size() > 64) return "must have 1 to 64 characters";
  bool shaped = is_lower(name.front()) && name.back() != '_' && name.find("__") == name.npos;
  for (char c : name) shaped = shaped && (is_lower(c) || is_digit(c) || c == '_');
  if (!shaped) return "must be lower-case words joined by single underscores";
  return std::nullopt;
}

std::optional<std::string> refuse_name(std::string_view name) {
  if (auto why = refuse_word(name)) return why;
  if (contains(python, name)) return "is a word of Python";
  if (contains(cpp, name)) return "is a word of C++";
  if (contains(frameworks, name)) return "is reserved by the frameworks";
  if (contains(grammar, name)) return "is a word of the contract language";
  return std::nullopt;
}

std::optional<std::string> refuse_symbol(std::string_view name) {
  if (name.empty() || name.size() > 64) return "must have 1 to 64 characters";
  bool shaped = name.front() >= 'A' && name.front() <= 'Z';
  for (char c : name) shaped = shaped && (is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z'));
  if (!shaped) return "must begin with a capital and have letters and digits only";
  return std::nullopt;
}

}  // namespace kw
