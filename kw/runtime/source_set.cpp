#include "kw/runtime/source_set.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>

#include "kw/core/error.h"
#include "kw/core/op.h"
#include "kw/runtime/file.h"

namespace kw {
namespace {

struct State {
  std::mutex mutex;
  std::string root;
  std::map<std::pair<std::string, bool>, std::shared_ptr<const SourceSet>> sets;
};
State& state() {
  static State* s = [] {
    auto* fresh = new State;
    if (const char* root = std::getenv("KW_KERNEL_PATH")) fresh->root = root;
    return fresh;
  }();
  return *s;
}

std::atomic<uint64_t> generation{0};

int64_t nanoseconds(const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; }

FileStamp stamp_of(const std::string& path) {
  struct stat s{};
  if (stat(path.c_str(), &s) || !S_ISREG(s.st_mode)) return {};
  return {nanoseconds(s.st_mtim), nanoseconds(s.st_ctim), s.st_size, static_cast<int64_t>(s.st_ino)};
}

// File times move in steps of a few ms, so a file that changed just before it was read may change again without a new time. Such a
// stamp is made invalid: the next look reads the file again.
constexpr int64_t settled_ns = 50'000'000;

// A file that is not there is the library's own text; anything else that keeps us from reading it is said, lest an edit seem checked.
std::optional<SourceFile> read_file(const std::string& root, const std::string& path) {
  std::string full = root + "/" + path;
  struct stat s{};
  if (stat(full.c_str(), &s)) {
    if (stat(root.c_str(), &s) || !S_ISDIR(s.st_mode))
      throw Error(KW_ERROR_TOOLCHAIN, format("KW_KERNEL_PATH is %s, which is not a folder that can be read", root.c_str()));
    return std::nullopt;
  }
  FileStamp stamp = stamp_of(full);
  if (stamp == FileStamp{}) throw Error(KW_ERROR_TOOLCHAIN, format("%s (of KW_KERNEL_PATH) is not a regular file", full.c_str()));
  const File in(open(full.c_str(), O_RDONLY | O_CLOEXEC));
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (nanoseconds(now) - stamp.changed_ns < settled_ns) stamp.inode = -1;
  std::string text;
  if (!read_all(in.fd, text)) throw Error(KW_ERROR_TOOLCHAIN, format("%s (of KW_KERNEL_PATH) cannot be read", full.c_str()));
  return SourceFile{path, std::move(text), stamp, true};
}

std::optional<SourceFile> find_file(const std::string& root, const std::string& path) {
  if (!root.empty())
    if (auto file = read_file(root, path)) return file;
  if (const kw_source* embedded = find_source(path)) return SourceFile{path, embedded->text, {}, false};
  return std::nullopt;
}

// Names between quotes in #include lines. A line inside a comment or a dead #if counts too: one file more in the hash does no harm.
std::vector<std::string> includes_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    auto skip = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skip();
    if (!line.starts_with('#')) continue;
    line.remove_prefix(1), skip();
    if (!line.starts_with("include")) continue;
    line.remove_prefix(7), skip();
    if (!line.starts_with('"')) continue;
    line.remove_prefix(1);
    if (size_t close = line.find('"'); close != std::string_view::npos) out.emplace_back(line.substr(0, close));
  }
  return out;
}

void hash(SourceSet& set) {
  Sha256 sha;
  sha.add(set.preamble);
  for (const auto& file : set.files) sha.add(file.path).add(file.text);
  set.digest = sha.finish();
}

std::shared_ptr<const SourceSet> read_set(const std::string& root, const std::string& path, bool strided) {
  auto set = std::make_shared<SourceSet>();
  if (strided) set->preamble = "#define KW_STRIDED_ROWS\n";
  set->root = root;
  std::vector<std::string> wanted{path};
  for (size_t i = 0; i < wanted.size(); i++) {  // grows while we walk
    auto file = find_file(root, wanted[i]);
    if (!file && i == 0)
      throw Error(KW_ERROR_CONTRACT,
                  "the kernel source " + path + " is not in the library" + (root.empty() ? "" : ", nor below KW_KERNEL_PATH=" + root));
    if (!file) continue;
    for (auto& name : includes_of(file->text))
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) wanted.push_back(std::move(name));
    set->files.push_back(std::move(*file));
  }
  hash(*set);
  return set;
}

}  // namespace

bool is_current(const SourceSet& set) {
  if (set.root.empty()) return true;
  for (const auto& file : set.files)
    if (stamp_of(set.root + "/" + file.path) != file.stamp) return false;
  return true;
}

std::shared_ptr<const SourceSet> source_set(const std::string& path, bool strided) {
  std::lock_guard lock(state().mutex);
  auto& known = state().sets[{path, strided}];
  if (known && is_current(*known)) return known;
  return known = read_set(state().root, path, strided);
}

SourceSet source_set_of_text(std::string path, std::string text) {
  SourceSet set;
  set.files.push_back({std::move(path), std::move(text), {}, false});
  hash(set);
  return set;
}

void set_kernel_path(const std::string& root) {
  std::lock_guard lock(state().mutex);
  state().root = root;
  state().sets.clear();
  generation++;
}

uint64_t kernel_path_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace kw
