// kw emulate: a whole CUDA program, with every access of its kernels watched. The emulator is a library of its own that knows nothing of
// us; the program runs in a child process, so that whatever it does ends there.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "emulator/kwemu.h"
#include "kw/core/error.h"
#include "kw/runtime/library.h"
#include "tools/kw/access.h"
#include "tools/kw/emulate_page.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {
namespace fs = std::filesystem;

constexpr int found_status = 1, no_program_status = 2;

struct Emulator {
  explicit Emulator(void* library) : library_(library) {}
  void* library() const { return library_; }
  template <class F>
  F* function(const char* name) const {
    auto* f = reinterpret_cast<F*>(dlsym(library_, name));
    if (!f) throw Error(KW_ERROR_TOOLCHAIN, format("libkwemu.so has no function %s", name));
    return f;
  }

 private:
  void* library_;
};

Emulator open_emulator() {
  const std::string given = [] {
    const char* path = std::getenv("KW_EMULATOR");
    return std::string(path ? path : "");
  }();
  std::string tried;
  for (const std::string& path : {given, own_dir() + "/libkwemu.so", own_dir() + "/../lib/libkwemu.so"}) {
    if (path.empty()) continue;
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return Emulator(library);
    tried += (tried.empty() ? "" : ", ") + path;
  }
  throw Error(KW_ERROR_TOOLCHAIN, "the emulator was not found (tried " + tried + "); KW_EMULATOR names it");
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / "kw-emulate-XXXXXX") {
    if (!mkdtemp(path_.data()))
      throw Error(KW_ERROR_TOOLCHAIN, "no temporary folder could be made in " + fs::temp_directory_path().string());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<const char*> pointers(const std::vector<std::string>& words) {
  std::vector<const char*> out;
  for (const std::string& w : words) out.push_back(w.c_str());
  return out;
}

// What the child leaves behind when it ends, however it calls exit.
struct AccessFile {
  void* library;
  std::string path;
} access_file;
void write_access_file() { std::ofstream(access_file.path) << to_lines(test::read_access(access_file.library)); }

// The program's exit status, 128 + signal when one ended it. `access`: a file for the access report, or "".
int run_child(const Emulator& emulator, const std::string& library, const std::string& access, std::vector<std::string> words) {
  auto* run = emulator.function<int(const char*, int, char**)>("kwemu_program_run");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(KW_ERROR_INTERNAL, "no process could be started");
  if (child == 0) {
    if (!access.empty()) {
      access_file = {emulator.library(), access};
      std::atexit(write_access_file);
    }
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    std::exit(run(library.c_str(), static_cast<int>(words.size()), argv.data()));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Counted {
  int errors = 0, warnings = 0, formal = 0;
  std::string lines;  // JSON objects, by commas
  std::vector<Finding> findings;
};
Counted count(const std::string& file) {
  Counted c;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    c.errors += line.find("\"severity\": \"error\"") != std::string::npos;
    c.warnings += line.find("\"severity\": \"warning\"") != std::string::npos;
    c.formal += line.find("\"severity\": \"formal\"") != std::string::npos;
    c.findings.push_back(finding_of_line(line));
    c.lines += (c.lines.empty() ? "\n " : ",\n ") + line;
  }
  return c;
}

void write_file(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  if (!(out << text << std::flush)) throw Error(KW_ERROR_INTERNAL, "writing " + file + " failed");
}

int run(const Options& options) {
  const auto own = options.words().begin() + static_cast<std::ptrdiff_t>(options.own_words());
  const std::vector<std::string> files(options.words().begin(), own), arguments(own, options.words().end());
  if (files.empty()) throw Usage{"kw emulate needs a source file: kw emulate program.cu"};

  const Emulator emulator = open_emulator();
  auto* set = emulator.function<int(const char*, const char*)>("kwemu_set");
  const auto give = [&](const char* name, const std::string& value) {
    if (set(name, value.c_str())) throw Usage{std::string("--") + name + " does not take " + value};
  };
  const Folder folder;
  const std::string log = folder.path() + "/findings", library = folder.path() + "/program.so", json_file = options.get("--json");
  const std::string html_file = options.get("--html");
  const bool access = options.has("--access") || !html_file.empty();
  const std::string access_lines = access ? folder.path() + "/access" : "";
  give("formal", options.has("--strict") ? "1" : "0");
  give("strict", options.has("--strict") ? "1" : "0");
  give("max_reports", "1000");
  give("findings", log);
  if (access) give("access", "1");
  for (const char* name : {"schedule", "seed", "sample", "arch", "sms"})
    if (options.has(std::string("--") + name)) give(name, options.get(std::string("--") + name));

  const auto sources = pointers(files);
  const std::vector<std::string> dirs = options.all("-I"), macros = options.all("-D"), sets = options.all("--set");
  const auto d = pointers(dirs), m = pointers(macros), s = pointers(sets);
  const std::string standard = options.get("--std", "17");
  const kwemu_program program{sources.data(),
                              d.data(),
                              m.data(),
                              s.data(),
                              static_cast<int>(sources.size()),
                              static_cast<int>(d.size()),
                              static_cast<int>(m.size()),
                              static_cast<int>(s.size()),
                              standard.c_str()};
  std::string text(1 << 20, '\0');
  if (emulator.function<int(const kwemu_program*, const char*, char*, size_t)>("kwemu_program_build")(&program, library.c_str(),
                                                                                                      text.data(), text.size())) {
    std::fprintf(stderr, "%s", text.c_str());
    return no_program_status;
  }
  std::vector<std::string> words = {files[0]};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const int status = run_child(emulator, library, access_lines, words);
  const Counted found = count(log);
  const std::string sampled =
      options.has("--sample") ? ", of every " + options.get("--sample") + "th block: the others did not run" : std::string();
  std::fprintf(stderr, "kw emulate: %d errors, %d warnings, %d formal%s; the program's exit status was %d\n", found.errors, found.warnings,
               found.formal, sampled.c_str(), status);
  test::AccessReport costs;
  std::string no_costs;
  if (access) {
    std::ifstream in(access_lines);
    std::ostringstream text_of_file;
    text_of_file << in.rdbuf();
    costs = from_lines(text_of_file.str());
    if (!in.is_open()) no_costs = "; there is no access report, because the program did not come to its end";
    if (options.has("--access")) std::fprintf(stderr, "%s", access_table(costs).c_str());
  }
  if (!no_costs.empty()) std::fprintf(stderr, "kw emulate%s\n", no_costs.c_str());
  if (!html_file.empty()) {
    std::string line = "kw emulate";
    for (size_t i = 2; i < command_line().size(); i++) line += " " + command_line()[i];
    write_file(html_file, emulate_page({files[0], line, status, found.findings, costs, sampled + no_costs}));
  }
  if (!json_file.empty()) {
    std::ostringstream out;
    out << "{\"program\": \"" << files[0] << "\", \"exit_status\": " << status << ", \"errors\": " << found.errors
        << ", \"warnings\": " << found.warnings << ", \"formal\": " << found.formal << ", \"findings\": [" << found.lines << "]";
    if (access) {
      Json json;
      json.open('{');
      write_access(json, costs);
      out << ", \"access\": " << json.close('}').text();
    }
    out << "}\n";
    write_file(json_file, out.str());
  }
  return found.errors ? found_status : status;
}

}  // namespace

const Verb emulate_verb = {
    "emulate",
    "FILE.cu...",
    "runs a CUDA program on the CPU and checks every access of its kernels",
    "Compiles a whole program (its main, its <<<>>>, the CUDA runtime's functions) with g++ and runs it, without a GPU. Each finding says\n"
    "what is wrong, where, by which thread, in which buffer, and what to do. What follows -- is the program's. Exit status: 1 when there\n"
    "was an error, else the program's own; 2 when it could not be built.\n\n"
    "example: kw emulate softmax.cu --set N=1000 -I include -- 3",
    {{"-I", "FOLDER", "where headers are; may be repeated"},
     {"-D", "NAME[=VALUE]", "a macro; may be repeated"},
     {"--set", "NAME=VALUE", "what a variable or a macro of the sources begins with instead; may be repeated"},
     {"--std", "NN", "the C++ standard (default 17)"},
     {"--schedule", "NAME", "inorder (default), greedy, shuffle, reverse: which GPU thread goes next"},
     {"--seed", "N", "of shuffle and greedy"},
     {"--sample", "N", "run only every Nth block of each grid"},
     {"--strict", nullptr, "warnings and formal findings are errors"},
     {"--arch", "NN", "the device's compute capability (default 90)"},
     {"--sms", "N", "the device's multiprocessors (default 4)"},
     {"--access", nullptr, "count what the kernels' loads and stores cost: sectors, bank conflicts, traffic of each buffer"},
     {"--html", "FILE", "also write one page there: the sources, with findings and costs at their lines"},
     {"--json", "FILE", "also write the findings there"}},
    run};

}  // namespace kw::tool
