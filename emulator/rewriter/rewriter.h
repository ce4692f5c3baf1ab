// CUDA C++ -> C++: the few things of device code that no header can express.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kwemu {
struct Rewritten {
  std::string text;                        // as many lines as before
  bool dynamic_shared = false;             // it had `extern __shared__`
  std::vector<std::string> includes;       // names, as written
  std::vector<std::string> c_kernels;      // names of `extern "C" __global__` functions
  std::set<std::string> device_functions;  // names behind __device__ or __global__
  std::string error;                       // a sentence, with the line, or empty
};

struct Dialect {
  bool program = false;  // a whole program, host code and all: launches, and the names by which it asks who compiles it
  std::vector<std::pair<std::string, std::string>> initialisers;  // variables that begin with another value: N -> "64"
  std::set<std::string> kernels;                                  // seen so far (filled by rewrite)
  std::vector<std::string> initialised;                           // of these, the ones that were found (filled by rewrite)
};
Rewritten rewrite(const std::string& source, const std::string& file, Dialect& dialect);
inline Rewritten rewrite(const std::string& source, const std::string& file) {
  Dialect device_code;
  return rewrite(source, file, device_code);
}
}  // namespace kwemu
