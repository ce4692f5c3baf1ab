// CUDA C++ -> C++: the few things of device code that no header can express.
#pragma once
#include <string>
#include <vector>

namespace kwemu {
struct Rewritten {
  std::string text;                    // as many lines as before
  bool dynamic_shared = false;         // it had `extern __shared__`
  std::vector<std::string> includes;   // names, as written
  std::vector<std::string> c_kernels;  // names of `extern "C" __global__` functions
  std::string error;                   // a sentence, with the line, or empty
};
Rewritten rewrite(const std::string& source, const std::string& file);
}  // namespace kwemu
