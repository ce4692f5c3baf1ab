// A progress bar on stderr, for terminals only.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace kw::tool {

class Progress {
 public:
  Progress() : on_(isatty(STDERR_FILENO)) {}
  ~Progress() { clear(); }
  void show(const std::string& what, int64_t done, int64_t of) {
    if (!on_ || of <= 0) return;
    constexpr int width = 30;
    const auto full = static_cast<int>(done * width / of);
    std::fprintf(stderr, "\r\033[K%-24.40s [%.*s%.*s] %lld/%lld", what.c_str(), full, "##############################", width - full,
                 "                              ", static_cast<long long>(done), static_cast<long long>(of));
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  bool on_, shown_ = false;
};

}  // namespace kw::tool
