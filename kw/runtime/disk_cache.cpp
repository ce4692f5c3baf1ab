#include "kw/runtime/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>

#include "kw/core/log.h"
#include "kw/runtime/file.h"

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

void warn_of(const std::string& trouble) { warn(trouble + "; kernels are compiled anew in every process"); }

std::string usable_dir() {
  std::string why, dir = disk_cache_dir(&why);
  if (dir.empty() && !why.empty()) warn_of(why);
  return dir;
}

std::string path_of(const std::string& dir, const Digest& key) { return dir + "/" + hex(key) + ".kernel"; }

// The folder is looked through at a process's first save and then whenever it has written a sixteenth of the limit: 10 000 files take
// 20 ms. An eighth more than needed is removed, so that the next saves find room.
void keep_within_limit(const std::string& dir, size_t bytes) {
  static std::atomic<int64_t> written{int64_t{1} << 62};
  const int64_t limit = disk_cache_limit();
  if (written.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes) <= limit / 16) return;
  written = 0;
  const CacheUse use = cache_use(dir);
  trim_cache(dir, use.bytes <= limit ? limit : limit - limit / 8);  // within the limit: stale parts alone
}

}  // namespace

std::optional<CompiledKernel> load_from_disk(const Digest& key) {
  const std::string dir = usable_dir();
  if (dir.empty()) return std::nullopt;
  const File file(open(path_of(dir, key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  Header header, wanted;
  struct stat s{};
  if (file.fd < 0 || fstat(file.fd, &s) || !S_ISREG(s.st_mode) || !read_at(file.fd, &header, sizeof header, 0)) return std::nullopt;
  if (std::memcmp(header.magic, wanted.magic, sizeof header.magic) || header.version != wanted.version || header.key != key)
    return std::nullopt;
  // Sizes are believed only as far as the file goes.
  const uint64_t rest = static_cast<uint64_t>(s.st_size) - sizeof header;
  if (header.name_bytes > rest || header.code_bytes != rest - header.name_bytes) return std::nullopt;
  CompiledKernel kernel;
  kernel.name.resize(header.name_bytes);
  kernel.code.resize(header.code_bytes);
  if (!read_at(file.fd, kernel.name.data(), kernel.name.size(), sizeof header) ||
      !read_at(file.fd, kernel.code.data(), kernel.code.size(), sizeof header + header.name_bytes) || content_of(kernel) != header.content)
    return std::nullopt;
  futimens(file.fd, nullptr);  // used now; on a read-only disk nothing is ever removed either
  return kernel;
}

bool is_on_disk(const Digest& key) {
  const std::string dir = disk_cache_dir();
  return !dir.empty() && access(path_of(dir, key).c_str(), R_OK) == 0;
}

void save_to_disk(const Digest& key, const CompiledKernel& kernel) {
  const std::string dir = usable_dir();
  if (dir.empty()) return;
  Header header;
  header.name_bytes = static_cast<uint32_t>(kernel.name.size());
  header.code_bytes = kernel.code.size();
  header.key = key;
  header.content = content_of(kernel);
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  const int error = write_and_rename(path_of(dir, key), {head, kernel.name, kernel.code}, 0600);
  if (error && error != ENOENT)  // ENOENT: someone has cleared the cache in this moment
    warn_of("the kernel cache " + dir + " cannot be written: " + std::strerror(error));
  keep_within_limit(dir, sizeof header + kernel.name.size() + kernel.code.size());
}

}  // namespace kw
