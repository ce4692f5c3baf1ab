// Plain files, read and written whole.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace kw {

struct File {  // a descriptor, closed at the end
  int fd = -1;
  explicit File(int descriptor) : fd(descriptor) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

// `bytes` from `offset` on; false when the file ends before, or cannot be read.
bool read_at(int fd, void* data, size_t bytes, uint64_t offset);

// Adds the rest of the file to `text`; false when it cannot be read. (Not by <fstream>: the streams' locales are 430 KB of the library.)
bool read_all(int fd, std::string& text);

// Writes the parts one after the other beside the file's place and renames: no reader ever sees half a file, and of several writers the
// last one's stays. 0 or the errno of what failed; then nothing is left behind. What a killed process leaves is "<path>.<pid>.<n>.part".
int write_and_rename(const std::string& path, const std::vector<std::string_view>& parts, unsigned mode);

// "512M": a number of bytes with K, M or G (binary) behind it; -1 for anything else.
int64_t parse_bytes(std::string_view text);

}  // namespace kw
