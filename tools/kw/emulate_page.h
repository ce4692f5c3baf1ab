// What `kw emulate` found in a program, as data and as one HTML page: the sources with the lines marked.
#pragma once
#include <string>
#include <vector>

#include "testing/access.h"

namespace kw::tool {

struct Finding {
  std::string severity, kind, kernel, thread, at, what, help;  // severity: error, warning, formal; at: "a.cuh:20 < b.cu:7"
};
// One line of the emulator's file of findings.
Finding finding_of_line(const std::string& json);

struct Emulated {
  std::string program, command;
  int exit_status = 0;
  std::vector<Finding> findings;
  test::AccessReport access;
  std::string remark;  // "of every 8th block"; or why there is no access report
};
// Needs nothing else to be shown: no script, no other file.
std::string emulate_page(const Emulated& run);

}  // namespace kw::tool
