#include "kw/runtime/file.h"

#include <fcntl.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <limits>

#include "kw/core/error.h"

namespace kw {

bool read_at(int fd, void* data, size_t bytes, uint64_t offset) {
  for (auto* p = static_cast<char*>(data); bytes;) {
    const ssize_t n = pread(fd, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n, bytes -= static_cast<size_t>(n), offset += static_cast<uint64_t>(n);
  }
  return true;
}

bool read_all(int fd, std::string& text) {
  char piece[16384];
  while (true) {
    const ssize_t n = read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    text.append(piece, static_cast<size_t>(n));
  }
}

static bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

int write_and_rename(const std::string& path, const std::vector<std::string_view>& parts, unsigned mode) {
  static std::atomic<uint64_t> count{0};
  std::string beside;
  int error = EEXIST;
  // A name may be taken: by a process of another container with our number, or by a dead one that had it.
  for (int tries = 0; error == EEXIST && tries < 100; tries++) {
    beside = format("%s.%ld.%llu.part", path.c_str(), static_cast<long>(getpid()), static_cast<unsigned long long>(count++));
    const File file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    error = file.fd < 0 ? errno : 0;
    for (std::string_view part : parts)
      if (!error && !write_all(file.fd, part)) error = errno;
    if (file.fd < 0 && error != EEXIST) return error;
  }
  if (error == EEXIST) return error;
  if (!error && std::rename(beside.c_str(), path.c_str())) error = errno;
  if (error) unlink(beside.c_str());
  return error;
}

int64_t parse_bytes(std::string_view text) {
  int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || number < 0) return -1;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (shift < 0 || number > std::numeric_limits<int64_t>::max() >> shift) return -1;
  return number << shift;
}

}  // namespace kw
