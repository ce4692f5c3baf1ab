// g++ as the compiler of device code: the flags under which it observes every access, and how it is run.
#pragma once
#include <string>
#include <vector>

namespace kwemu {
extern const std::vector<std::string> kStrictFlags;

class TemporaryFolder {  // removed with all that it holds, unless KWEMU_KEEP is set
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }  // empty: there is none

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
bool write_file(const std::string& path, const std::string& text);  // and the folders on the way
std::string compiler_name();
// Runs a program in `folder`; its output goes to `log`. The exit status, or -errno when it could not start.
int run(const std::vector<std::string>& command, const std::string& folder, std::string& log);
std::string compiler_trouble(const std::string& folder);  // empty if the compiler will do, else a sentence
// What the compiler has to say after a failed run of it: its log, after a sentence if it is the wrong one.
std::string explained(int status, const std::string& log, const std::string& folder);
std::string library_path();  // of this library
}  // namespace kwemu
