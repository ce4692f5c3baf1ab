// Device code -> a shared library for the host, by g++ with its access instrumentation.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace kwemu {
struct Job {
  std::string source, name;                    // text and file name of the program
  std::map<std::string, std::string> headers;  // include name -> text
  std::vector<std::string> include_dirs, defines;
  std::string standard = "17";
  unsigned arch = 90;
  std::vector<std::string> expressions;  // kernels by C++ name
};
struct Built {
  bool ok = false;
  std::string log;
  std::string image;                           // ImageHeader and library
  std::map<std::string, std::string> lowered;  // expression -> name in the module
};
Built compile(const Job&);
}  // namespace kwemu
