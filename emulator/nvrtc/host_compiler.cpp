#include "emulator/nvrtc/host_compiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace kwemu {
namespace fs = std::filesystem;

// -O1 with everything off that drops, merges or moves an access; all is inlined, because GCC does not observe structs that calls pass.
const std::vector<std::string> kStrictFlags = {"-O1",
                                               "-g1",
                                               "-w",
                                               "-fPIC",
                                               "-fvisibility=hidden",
                                               "-fno-gnu-unique",
                                               "-fno-diagnostics-show-caret",
                                               "-fno-tree-sra",
                                               "-fno-tree-fre",
                                               "-fno-tree-dse",
                                               "-fno-tree-loop-im",
                                               "-fno-tree-dce",
                                               "-fno-tree-forwprop",
                                               "-fno-tree-copy-prop",
                                               "-fno-tree-dominator-opts",
                                               "-finline-functions",
                                               "-finline-small-functions",
                                               "--param=max-inline-insns-auto=3000",
                                               "--param=max-inline-insns-single=3000",
                                               "--param=inline-unit-growth=2000",
                                               "--param=large-function-growth=2000",
                                               "-fsanitize=thread,alignment,bounds,shift,signed-integer-overflow,integer-divide-by-zero",
                                               "--param=tsan-instrument-func-entry-exit=0",
                                               "--param=tsan-distinguish-volatile=1",
                                               "-fno-builtin-memcpy",
                                               "-fno-builtin-memmove",
                                               "-fno-builtin-memset",
                                               "-fno-strict-aliasing",
                                               "-fno-omit-frame-pointer",
                                               "-ffp-contract=off",
                                               "-fno-threadsafe-statics"};

TemporaryFolder::TemporaryFolder() {
  const char* base = getenv("TMPDIR");
  std::string name = std::string(base && *base ? base : "/tmp") + "/kwemu.XXXXXX";
  if (mkdtemp(name.data())) path_ = name;  // mode 0700
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty() && !getenv("KWEMU_KEEP")) fs::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}
bool write_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  std::ofstream f(path, std::ios::binary);
  f << text;
  return f.flush().good();
}

std::string compiler_name() {
  const char* name = getenv("KWEMU_CXX");
  return name && *name ? name : "g++";
}

int run(const std::vector<std::string>& command, const std::string& folder, std::string& log) {
  std::vector<char*> argv;
  for (auto& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::string output = folder + "/output";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t pid = 0;
  int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error) return -error;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  log += read_file(output);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string compiler_trouble(const std::string& folder) {
  std::string text;
  int status = run({compiler_name(), "-dumpfullversion", "-dumpversion"}, folder, text);
  if (status == 127 || status < 0)
    return "error: the emulator compiles kernels with g++ (12 or later), but '" + compiler_name() +
           "' was not found; install it or set KWEMU_CXX\n";
  int major = atoi(text.c_str());
  if (status || major < 12)
    return "error: the emulator needs g++ 12 or later, but '" + compiler_name() + "' is version " + text.substr(0, text.find('\n')) + "\n";
  return "";
}

std::string explained(int status, const std::string& log, const std::string& folder) {
  std::string trouble = compiler_trouble(folder);
  return status < 0 || status == 127 ? log + trouble : trouble + log;
}

std::string library_path() {
  Dl_info info = {};
  dladdr((void*)&library_path, &info);
  return fs::absolute(info.dli_fname ? info.dli_fname : "libkwemu.so").string();
}
}  // namespace kwemu
