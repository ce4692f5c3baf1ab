#include "tools/kw/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <vector>

#include "kw/cpu/isa.h"
#include "kw/cpu/parallel.h"

namespace kw::tool {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

int cpu_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double cpu_copy_rate(int repeats) {
  constexpr size_t bytes = size_t{128} << 20;  // beyond the caches of anything common
  constexpr size_t block = size_t{1} << 20;
  std::vector<char> from(bytes, 1), to(bytes, 2);  // touched, so that no page faults are measured
  std::vector<double> seconds;
  for (int i = 0; i < repeats; i++) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(bytes / block, 1, [&](int64_t first, int64_t last) {
      std::memcpy(&to[static_cast<size_t>(first) * block], &from[static_cast<size_t>(first) * block],
                  static_cast<size_t>(last - first) * block);
    });
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    from[static_cast<size_t>(i)]++;
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return 2.0 * static_cast<double>(bytes) / seconds[static_cast<size_t>(repeats / 2)] / 1e9;
}

std::string git_commit() {
  if (const char* given = std::getenv("KW_COMMIT")) return given;  // of a tree that was carried without its .git
  auto ask = [](const char* command) {
    std::string out;
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
    char buffer[256];
    while (pipe && std::fgets(buffer, sizeof buffer, pipe.get())) out += buffer;
    return out;
  };
  std::string commit = ask("git rev-parse --verify -q HEAD 2>/dev/null");
  commit.erase(std::remove(commit.begin(), commit.end(), '\n'), commit.end());
  if (commit.empty()) return "";
  return ask("git status --porcelain --untracked-files=no 2>/dev/null").empty() ? commit : commit + "-dirty";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

void write_machine(Json& json) {
  utsname os{};
  uname(&os);
  json.open('{')
      .key("cpu")
      .string(cpu_model())
      .key("cores")
      .whole(cpu_cores())
      .key("threads")
      .whole(thread_count())
      .key("isa")
      .string(isa_name(isa()));
  json.key("os").string(std::string(os.sysname) + " " + os.release).close('}');
}

}  // namespace kw::tool
