// kw cache: the disk cache of compiled kernels.
#include <cstdio>
#include <ctime>

#include "kw/runtime/cache_folder.h"
#include "kw/runtime/file.h"
#include "tools/kw/json.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string days_ago(int64_t when) {
  return when ? format("%.1f days ago", static_cast<double>(std::time(nullptr) - when) / 86400) : "never";
}

int run(const Options& options) {
  const std::string what = options.words().empty() ? "show" : options.words()[0];
  if (what != "show" && what != "path" && what != "clear" && what != "trim")
    throw Usage{"kw cache takes show, path, clear or trim, not '" + what.substr(0, 40) + "'"};
  if (options.words().size() > 1) throw Usage{"kw cache takes one word"};
  if (options.has("--limit") && what != "trim") throw Usage{"--limit goes with kw cache trim; KW_CACHE_LIMIT sets it for every process"};
  int64_t limit = disk_cache_limit();
  if (options.has("--limit") && (limit = parse_bytes(options.get("--limit"))) < 0) throw Usage{"--limit takes a size, for example 512M"};
  std::string why;
  const std::string dir = disk_cache_dir(&why);
  if (dir.empty()) throw Usage{why.empty() ? "the kernel cache is turned off (KW_CACHE=0)" : why};

  CacheUse removed;
  if (what == "clear") removed = clear_cache(dir);
  if (what == "trim") removed = trim_cache(dir, limit);
  const CacheUse use = cache_use(dir);
  if (options.has("--json")) {
    Json json;
    json.open('{').key("path").string(dir).key("files").whole(use.files).key("bytes").whole(use.bytes).key("limit").whole(limit);
    json.key("oldest_use").whole(use.oldest_use).key("removed_files").whole(removed.files).key("removed_bytes").whole(removed.bytes);
    std::printf("%s\n", json.close('}').text().c_str());
  } else if (what == "path") {
    std::printf("%s\n", dir.c_str());
  } else {
    if (what != "show") std::printf("removed  %lld files, %.1f MiB\n", static_cast<long long>(removed.files), mib(removed.bytes));
    std::printf("path     %s\nkernels  %lld, %.1f MiB of %.0f MiB\noldest   used %s\n", dir.c_str(), static_cast<long long>(use.files),
                mib(use.bytes), mib(limit), days_ago(use.oldest_use).c_str());
  }
  return 0;
}

}  // namespace

const Verb cache_verb = {
    "cache",
    "[show|path|clear|trim]",
    "the disk cache of compiled kernels",
    "show (the default): where it is and how large. path: the folder alone. clear: removes all kernels. trim: removes the least\n"
    "recently used until the limit holds (every process does so by itself), and what killed processes left behind. All\n"
    "are safe while other processes use the cache.\n\n"
    "example: kw cache trim --limit 200M",
    {{"--limit", "SIZE", "for trim: bytes, or with K, M or G behind the number; without it, KW_CACHE_LIMIT or 1G"},
     {"--json", nullptr, "the same as JSON"}},
    run};

}  // namespace kw::tool
