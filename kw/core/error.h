// One exception inside the library; at every C border it becomes a status and a sentence (kw_last_error).
#pragma once
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <string>

#include "kw/core/abi.h"

namespace kw {

// A sentence that names op, argument, got and wanted: "rms_norm: weight has 4095 elements, but x has last dimension 4096".
class Error : public std::exception {
 public:
  Error(kw_status status, std::string text) : status_(status), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  kw_status status() const noexcept { return status_; }

 private:
  kw_status status_;
  std::string text_;
};

// printf into a string.
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* pattern, ...) {
  va_list args, again;
  va_start(args, pattern);
  va_copy(again, args);
  int length = std::vsnprintf(nullptr, 0, pattern, args);
  va_end(args);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

}  // namespace kw
