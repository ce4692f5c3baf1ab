#include "kw/runtime/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kw/core/error.h"

namespace kw {
namespace {

struct Header {  // then the name, then the code
  char magic[8] = {'K', 'W', 'K', 'E', 'R', 'N', 'E', 'L'};
  uint32_t version = 1;
  uint32_t name_bytes = 0;
  uint64_t code_bytes = 0;
  Digest key{}, content{};
};
static_assert(sizeof(Header) == 88);

Digest content_of(const CompiledKernel& kernel) { return Sha256().add(kernel.name).add(kernel.code).finish(); }

void warn_once(std::atomic<bool>& told, const std::string& sentence) {
  if (!told.exchange(true)) std::fprintf(stderr, "kernelwright: %s; kernels are compiled anew in every process\n", sentence.c_str());
}

std::string wished_dir() {
  auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
  };
  if (const char* dir = set("KW_CACHE_DIR")) return dir;
  if (const char* dir = set("XDG_CACHE_HOME")) return std::string(dir) + "/kernelwright";
  if (const char* home = set("HOME")) return std::string(home) + "/.cache/kernelwright";
  return "";
}

bool make_dirs(const std::string& dir) {
  for (size_t slash = dir.find('/', 1);; slash = dir.find('/', slash + 1)) {
    if (mkdir(dir.substr(0, slash).c_str(), 0700) && errno != EEXIST) return false;
    if (slash == std::string::npos) return true;
  }
}

bool read_all(int fd, void* data, size_t bytes) {
  for (auto* p = static_cast<char*>(data); bytes;) {
    ssize_t n = read(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* data, size_t bytes) {
  for (auto* p = static_cast<const char*>(data); bytes;) {
    ssize_t n = write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}

struct File {
  int fd;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

std::string usable_dir() {
  static std::atomic<bool> told{false};
  std::string why, dir = disk_cache_dir(&why);
  if (dir.empty() && !why.empty()) warn_once(told, why);
  return dir;
}

}  // namespace

std::string disk_cache_dir(std::string* why) {
  auto refuse = [&](std::string sentence) {
    if (why) *why = std::move(sentence);
    return std::string();
  };
  if (const char* on = std::getenv("KW_CACHE"); on && std::strcmp(on, "0") == 0) return "";
  std::string dir = wished_dir();
  if (dir.empty()) return refuse("there is no place for the kernel cache: neither KW_CACHE_DIR, XDG_CACHE_HOME nor HOME is set");
  if (!make_dirs(dir)) return refuse("the kernel cache " + dir + " cannot be made: " + std::strerror(errno));
  struct stat s{};
  if (stat(dir.c_str(), &s) || !S_ISDIR(s.st_mode)) return refuse("the kernel cache " + dir + " is not a folder");
  if (s.st_uid != geteuid()) return refuse("the kernel cache " + dir + " belongs to another user and is not trusted");
  if (s.st_mode & 022) return refuse("the kernel cache " + dir + " may be written by other users and is not trusted (chmod go-w mends it)");
  return dir;
}

std::optional<CompiledKernel> load_from_disk(const Digest& key) {
  std::string dir = usable_dir();
  if (dir.empty()) return std::nullopt;
  File file{open((dir + "/" + hex(key) + ".kernel").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  Header header, wanted;
  struct stat s{};
  if (file.fd < 0 || fstat(file.fd, &s) || !S_ISREG(s.st_mode) || !read_all(file.fd, &header, sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, wanted.magic, sizeof header.magic) || header.version != wanted.version || header.key != key)
    return std::nullopt;
  // Sizes are believed only as far as the file goes.
  uint64_t rest = static_cast<uint64_t>(s.st_size) - sizeof header;
  if (header.name_bytes > rest || header.code_bytes != rest - header.name_bytes) return std::nullopt;
  CompiledKernel kernel;
  kernel.name.resize(header.name_bytes);
  kernel.code.resize(header.code_bytes);
  if (!read_all(file.fd, kernel.name.data(), kernel.name.size()) || !read_all(file.fd, kernel.code.data(), kernel.code.size()) ||
      content_of(kernel) != header.content)
    return std::nullopt;
  return kernel;
}

void save_to_disk(const Digest& key, const CompiledKernel& kernel) {
  static std::atomic<uint64_t> count{0};
  static std::atomic<bool> told{false};
  std::string dir = usable_dir();
  if (dir.empty()) return;
  Header header;
  header.name_bytes = static_cast<uint32_t>(kernel.name.size());
  header.code_bytes = kernel.code.size();
  header.key = key;
  header.content = content_of(kernel);
  std::string place = dir + "/" + hex(key) + ".kernel";
  std::string beside = format("%s.%ld.%llu.part", place.c_str(), static_cast<long>(getpid()), static_cast<unsigned long long>(count++));
  bool written;
  int error;
  {
    File file{open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    written = file.fd >= 0 && write_all(file.fd, &header, sizeof header) && write_all(file.fd, kernel.name.data(), kernel.name.size()) &&
              write_all(file.fd, kernel.code.data(), kernel.code.size());
    error = errno;
  }
  if (written && rename(beside.c_str(), place.c_str())) written = false, error = errno;
  if (written) return;
  unlink(beside.c_str());
  warn_once(told, "the kernel cache " + dir + " cannot be written: " + std::strerror(error));
}

}  // namespace kw
