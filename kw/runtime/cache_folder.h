// The folder of the disk cache: where it is, whether it may be trusted, and how large it grows.
//
// KW_CACHE_DIR, else $XDG_CACHE_HOME/kernelwright, else ~/.cache/kernelwright; made 0700. KW_CACHE=0 turns the cache off.
// A folder that another user owns or may write to is not used: code is loaded from here.
#pragma once
#include <cstdint>
#include <string>

namespace kw {

// The folder in use; "" when the cache is off or refused (then `why` says so; it stays empty when the cache is turned off).
std::string disk_cache_dir(std::string* why = nullptr);

// Bytes that the kernels may take: KW_CACHE_LIMIT ("512M", "2G", bytes), else 1 GiB, some 100 000 kernels. Warns of a value that is none.
int64_t disk_cache_limit();

struct CacheUse {
  int64_t files = 0, bytes = 0;
  int64_t oldest_use = 0;  // seconds since 1970; 0 when there is no file
};
CacheUse cache_use(const std::string& dir);

// Removes the least recently used kernels until at most `limit` bytes are left, and parts of files that a killed process left more than
// ten minutes ago (a save takes milliseconds). Returns what was removed. Safe beside any number of readers, writers and trimmers.
CacheUse trim_cache(const std::string& dir, int64_t limit);
CacheUse clear_cache(const std::string& dir);  // all kernels and parts; files that are not the cache's stay

}  // namespace kw
