// Writes JSON, one value after the other; commas and quotes come by themselves.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "kw/core/error.h"

namespace kw::tool {

class Json {
 public:
  Json& open(char bracket) { return before(), text_ += bracket, first_ = true, *this; }
  Json& close(char bracket) { return text_ += bracket, first_ = false, *this; }
  Json& key(std::string_view name) {
    string(name);
    text_ += ": ";
    after_key_ = true;
    return *this;
  }
  Json& string(std::string_view value) {
    before();
    text_ += '"';
    for (unsigned char c : value) {
      if (c == '"' || c == '\\')
        text_ += '\\', text_ += static_cast<char>(c);
      else if (c < 0x20)
        text_ += format("\\u%04x", c);
      else
        text_ += static_cast<char>(c);
    }
    text_ += '"';
    return *this;
  }
  Json& number(double value) { return before(), text_ += std::isfinite(value) ? format("%.6g", value) : "null", *this; }
  Json& whole(int64_t value) { return before(), text_ += std::to_string(value), *this; }
  Json& boolean(bool value) { return before(), text_ += value ? "true" : "false", *this; }
  Json& null() { return before(), text_ += "null", *this; }
  const std::string& text() const { return text_; }

 private:
  void before() {
    if (!first_ && !after_key_) text_ += ", ";
    first_ = after_key_ = false;
  }
  std::string text_;
  bool first_ = true, after_key_ = false;
};

}  // namespace kw::tool
