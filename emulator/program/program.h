// Whole CUDA programs: their sources become one shared library for the host, which this process loads and whose main it calls.
#pragma once
#include <string>
#include <vector>

namespace kwemu {
struct ProgramSources {
  std::vector<std::string> files, include_dirs, defines;
  std::vector<std::pair<std::string, std::string>> initialisers;  // name, new value
  std::string standard = "17";
  unsigned arch = 90;
};
// Writes the library to `output`. Empty on success, else what is wrong, in the compiler's words and the user's places.
std::string build_program(const ProgramSources& sources, const std::string& output);
}  // namespace kwemu
