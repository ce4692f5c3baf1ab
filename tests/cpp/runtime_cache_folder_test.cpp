// The folder of the disk cache: 32 processes at once, the size limit, what killed processes leave, disks that are full or read-only.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "kw/core/log.h"
#include "kw/runtime/disk_cache.h"
#include "kw/runtime/file.h"
#include "testing/expect.h"

namespace fs = std::filesystem;
using namespace kw;

static std::vector<std::string> warnings;

static Digest key_of(int i) { return Sha256().add(i).finish(); }
static CompiledKernel kernel_of(int i, size_t bytes = 4000) { return {"_Z" + std::to_string(i), std::string(bytes, static_cast<char>(i))}; }
static bool is_right(int i, const std::optional<CompiledKernel>& k, size_t bytes = 4000) {
  return k && k->name == kernel_of(i).name && k->code == kernel_of(i, bytes).code;
}
static fs::path file_of(const fs::path& dir, int i) { return dir / (hex(key_of(i)) + ".kernel"); }
static void age(const fs::path& file, int seconds) {
  timespec times[2] = {};
  times[0].tv_sec = times[1].tv_sec = time(nullptr) - seconds;
  KW_EXPECT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
}

// The exit status of `body` in a process of its own.
static int in_a_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Everybody writes and reads the same 20 kernels in a cache that holds 11, one process is killed in the middle of it all: what is found is
// right, nothing but kernels is left, and the limit holds.
static void many_processes(const fs::path& dir) {
  setenv("KW_CACHE_DIR", dir.c_str(), 1);
  setenv("KW_CACHE_LIMIT", "12M", 1);
  constexpr int processes = 32, kernels = 20, rounds = 3;
  constexpr size_t size = 1 << 20;
  std::vector<pid_t> children;
  int gate[2];
  KW_EXPECT_EQ(pipe(gate), 0);
  for (int p = 0; p < processes; p++) {
    const pid_t child = fork();
    if (child == 0) {
      int found = 0;
      char none;
      close(gate[1]);
      if (read(gate[0], &none, 1) != 0) _exit(5);  // until all are there
      for (int i = 0; i < rounds * kernels; i++) {
        const int n = (i < 4 ? i : i * 7 + p) % kernels;
        if (auto k = load_from_disk(key_of(n))) {
          if (!is_right(n, k, size)) _exit(2);
          found++;
        } else {
          save_to_disk(key_of(n), kernel_of(n, size));
        }
      }
      deliver_warnings();
      _exit(warnings.empty() ? found > 0 ? 0 : 3 : 4);
    }
    children.push_back(child);
  }
  close(gate[0]), close(gate[1]);
  usleep(20000);
  kill(children[5], SIGKILL);
  for (int p = 0; p < processes; p++) {
    int status = 0;
    waitpid(children[static_cast<size_t>(p)], &status, 0);
    if (p != 5) KW_EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  }
  const CacheUse use = cache_use(dir);
  // Each process looks at its own time: the last to save may have been followed by saves that were under way.
  KW_EXPECT(use.files > 0 && use.bytes <= (12 << 20) + processes * 1100000);
  trim_cache(dir, 12 << 20);
  KW_EXPECT(cache_use(dir).bytes <= 12 << 20);
  for (int n = 0; n < kernels; n++) {
    const auto k = load_from_disk(key_of(n));
    KW_EXPECT(!k || is_right(n, k, size));
  }
}

// The one that was used last stays; what was read counts as used.
static void least_recently_used(const fs::path& dir) {
  setenv("KW_CACHE_DIR", dir.c_str(), 1);
  unsetenv("KW_CACHE_LIMIT");
  for (int n = 0; n < 10; n++) save_to_disk(key_of(n), kernel_of(n));
  for (int n = 0; n < 10; n++) age(file_of(dir, n), 10000 - 100 * n);
  KW_EXPECT(load_from_disk(key_of(0)) && load_from_disk(key_of(3)));
  const fs::path foreign = dir / "notes.txt", part = file_of(dir, 11).string() + ".12345.0.part", fresh = part.string() + ".part";
  for (const fs::path& f : {foreign, part, fresh}) std::ofstream(f) << "x";
  age(foreign, 100000), age(part, 700), age(fresh, 10);  // killed long ago; being written now
  const CacheUse removed = trim_cache(dir, 5 * 4200);
  KW_EXPECT_EQ(removed.files, 6);  // five kernels and the part
  for (int n = 0; n < 10; n++) KW_EXPECT_EQ(load_from_disk(key_of(n)).has_value(), n == 0 || n == 3 || n >= 7);
  KW_EXPECT(fs::exists(foreign) && fs::exists(fresh) && !fs::exists(part));
  setenv("KW_CACHE_LIMIT", "a lot", 1);
  KW_EXPECT_EQ(disk_cache_limit(), int64_t{1} << 30);
  deliver_warnings();
  KW_EXPECT(!warnings.empty() && warnings.back().starts_with("KW_CACHE_LIMIT=a lot is not a size"));
  unsetenv("KW_CACHE_LIMIT");
  const CacheUse cleared = clear_cache(dir);
  KW_EXPECT_EQ(cleared.files, 6);  // five kernels and a part
  KW_EXPECT_EQ(cache_use(dir).files, 0);
  KW_EXPECT(fs::exists(foreign));
}

static void sizes() {
  KW_EXPECT_EQ(parse_bytes("0"), 0);
  KW_EXPECT_EQ(parse_bytes("4096"), 4096);
  KW_EXPECT_EQ(parse_bytes("512M"), int64_t{512} << 20);
  KW_EXPECT_EQ(parse_bytes("2G"), int64_t{2} << 30);
  for (const char* bad : {"", "-1", "M", "1T", "1 M", "1.5G", "9999999999999999999", "9223372036854775807K"})
    KW_EXPECT_EQ(parse_bytes(bad), -1);
}

// Said once, nothing left behind, and reading goes on.
static void no_room(const fs::path& dir) {
  setenv("KW_CACHE_DIR", dir.c_str(), 1);
  save_to_disk(key_of(1), kernel_of(1));
  KW_EXPECT_EQ(
      in_a_child([&] {  // a file can grow to 1000 bytes only: to write, as good as a full disk
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{1000, 1000};
        if (setrlimit(RLIMIT_FSIZE, &limit)) return 1;
        for (int n = 2; n < 6; n++) save_to_disk(key_of(n), kernel_of(n));
        deliver_warnings();
        if (warnings.size() != 1 || warnings[0].find("cannot be written: File too large; kernels are compiled anew") == std::string::npos)
          return 2;
        return is_right(1, load_from_disk(key_of(1))) ? 0 : 3;
      }),
      0);
  KW_EXPECT_EQ(std::distance(fs::directory_iterator(dir), fs::directory_iterator()), 1);
  // A read-only folder. Root may write everywhere, so another user tries.
  if (geteuid() == 0) {
    KW_EXPECT_EQ(chown(dir.c_str(), 12345, 12345), 0);
    KW_EXPECT_EQ(chown(file_of(dir, 1).c_str(), 12345, 12345), 0);
  }
  chmod(dir.c_str(), 0500);
  KW_EXPECT_EQ(in_a_child([&] {
                 if (geteuid() == 0 && setuid(12345)) return 1;
                 for (int n = 2; n < 6; n++) save_to_disk(key_of(n), kernel_of(n));
                 deliver_warnings();
                 if (warnings.size() != 1 || warnings[0].find("cannot be written: Permission denied") == std::string::npos) return 2;
                 return is_right(1, load_from_disk(key_of(1))) ? 0 : 3;
               }),
               0);
  chmod(dir.c_str(), 0700);
}

int main() {
  unsetenv("KW_CACHE");
  set_log([](const char* sentence, void*) { warnings.emplace_back(sentence); }, nullptr);
  char temporary[] = "/tmp/kw_cache_folder_test_XXXXXX";
  const fs::path root = mkdtemp(temporary);
  chmod(root.c_str(), 0755);
  sizes();
  many_processes(root / "many");
  least_recently_used(root / "used");
  warnings.clear();
  no_room(root / "full");
  fs::remove_all(root);
  return kw::test::finish();
}
