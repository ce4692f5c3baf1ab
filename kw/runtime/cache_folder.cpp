#include "kw/runtime/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "kw/core/log.h"
#include "kw/runtime/file.h"
#include "kw/runtime/sha256.h"

namespace fs = std::filesystem;

namespace kw {
namespace {

constexpr int64_t usual_limit = int64_t{1} << 30;
constexpr int64_t stale_seconds = 600;

std::string wished_dir() {
  auto set = [](const char* value) { return value && *value ? value : nullptr; };
  if (const char* dir = set(std::getenv("KW_CACHE_DIR"))) return dir;
  if (const char* dir = set(std::getenv("XDG_CACHE_HOME"))) return std::string(dir) + "/kernelwright";
  if (const char* home = set(std::getenv("HOME"))) return std::string(home) + "/.cache/kernelwright";
  return "";
}

bool make_dirs(const std::string& dir) {
  for (size_t slash = dir.find('/', 1);; slash = dir.find('/', slash + 1)) {
    if (mkdir(dir.substr(0, slash).c_str(), 0700) && errno != EEXIST) return false;
    if (slash == std::string::npos) return true;
  }
}

struct Entry {
  std::string path;
  int64_t bytes = 0, used = 0;  // seconds
  bool part = false;            // of a file that is being written, or was when its process died
};

// The cache's own files: "<64 hex digits>.kernel", and the same with ".<pid>.<n>.part" behind it.
std::vector<Entry> entries(const std::string& dir) {
  std::vector<Entry> out;
  std::error_code none;
  for (auto it = fs::directory_iterator(dir, none); !none && it != fs::directory_iterator(); it.increment(none)) {
    const std::string name = it->path().filename().string();
    constexpr size_t digits = 2 * sizeof(Digest);
    if (name.find_first_not_of("0123456789abcdef") != digits || !std::string_view(name).substr(digits).starts_with(".kernel")) continue;
    const bool whole = name.size() == digits + 7;
    struct stat s{};
    if ((!whole && !name.ends_with(".part")) || lstat(it->path().c_str(), &s) || !S_ISREG(s.st_mode)) continue;
    out.push_back({it->path().string(), s.st_size, s.st_mtim.tv_sec, !whole});
  }
  return out;
}

// Gone is gone, whoever removed it.
void remove(const Entry& e, CacheUse& removed) {
  if (unlink(e.path.c_str()) && errno != ENOENT) return;
  removed.files++, removed.bytes += e.bytes;
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

int64_t disk_cache_limit() {
  const char* text = std::getenv("KW_CACHE_LIMIT");
  if (!text || !*text) return usual_limit;
  const int64_t limit = parse_bytes(text);
  if (limit >= 0) return limit;
  warn(std::string("KW_CACHE_LIMIT=") + text + " is not a size; write for example 512M. The limit is 1G");
  return usual_limit;
}

CacheUse cache_use(const std::string& dir) {
  CacheUse use;
  for (const Entry& e : entries(dir)) {
    if (e.part) continue;
    use.files++, use.bytes += e.bytes;
    if (!use.oldest_use || e.used < use.oldest_use) use.oldest_use = e.used;
  }
  return use;
}

CacheUse trim_cache(const std::string& dir, int64_t limit) {
  CacheUse removed;
  std::vector<Entry> all = entries(dir);
  int64_t total = 0;
  for (const Entry& e : all) {
    if (!e.part)
      total += e.bytes;
    else if (std::time(nullptr) - e.used > stale_seconds)
      remove(e, removed);
  }
  if (total <= limit) return removed;
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : all) {
    if (total <= limit) break;
    if (e.part) continue;
    remove(e, removed);
    total -= e.bytes;
  }
  return removed;
}

CacheUse clear_cache(const std::string& dir) {
  CacheUse removed;
  for (const Entry& e : entries(dir)) remove(e, removed);
  return removed;
}

}  // namespace kw
