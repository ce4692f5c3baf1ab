// Checks for plain test programs: count, and print file:line with the values where one fails.
//
//   int main() {
//     KW_EXPECT_EQ(1 + 1, 2);
//     KW_EXPECT_THROWS(kw::parse_contract("f("), "expected");
//     return kw::test::finish();
//   }
#pragma once
#include <concepts>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

namespace kw::test {

inline int passed = 0, failed = 0;

template <class T>
std::string show(const T& value) {
  std::ostringstream out;
  out.precision(17);
  if constexpr (std::convertible_to<T, std::string_view>) {
    out << '"' << std::string_view(value) << '"';
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (requires { out << value; }) {
    out << std::boolalpha << value;
  } else {
    out << '<' << sizeof(T) << " bytes>";
  }
  return out.str();
}

inline bool record(bool ok, const char* file, int line, const std::string& text) {
  (ok ? passed : failed)++;
  if (!ok) std::cerr << file << ':' << line << ": " << text << '\n';
  return ok;
}

// The last line of main: prints the totals, and is its exit status. A program without a single check fails.
inline int finish() {
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace kw::test

#define KW_EXPECT(condition) ::kw::test::record(static_cast<bool>(condition), __FILE__, __LINE__, "expected " #condition)

// Compares with ==; operands are evaluated once.
#define KW_EXPECT_EQ(a, b)                                                                                       \
  [&](const auto& kw_a, const auto& kw_b) {                                                                      \
    return ::kw::test::record(kw_a == kw_b, __FILE__, __LINE__,                                                  \
                              #a " is " + ::kw::test::show(kw_a) + ", but " #b " is " + ::kw::test::show(kw_b)); \
  }(a, b)

// The expression throws an exception whose what() contains `part`.
#define KW_EXPECT_THROWS(expression, part)                                                                                    \
  [&] {                                                                                                                       \
    std::string kw_text;                                                                                                      \
    try {                                                                                                                     \
      static_cast<void>(expression);                                                                                          \
      return ::kw::test::record(false, __FILE__, __LINE__, #expression " threw nothing");                                     \
    } catch (const std::exception& kw_error) {                                                                                \
      kw_text = kw_error.what();                                                                                              \
    }                                                                                                                         \
    return ::kw::test::record(kw_text.find(part) != std::string::npos, __FILE__, __LINE__,                                    \
                              #expression " threw " + ::kw::test::show(kw_text) + ", which lacks " + ::kw::test::show(part)); \
  }()
