// What can be found: how grave it is, what the launch then returns, and what to do about it.
#pragma once
#include <string_view>

namespace kwemu {
enum Severity { kError, kWarning, kFormal };  // formal: a rule is broken, and today's hardware does what was meant
struct Kind {
  const char* name;
  Severity severity;
  int result;  // a CUresult
  const char* advice;
};
const Kind& kind_of(std::string_view name);
}  // namespace kwemu
