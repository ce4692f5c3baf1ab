// The access report for people and for programs: of `kw plan --access` and `kw emulate --access`.
#pragma once
#include <string>

#include "testing/access.h"
#include "tools/kw/json.h"

namespace kw::tool {

// By kernel: its loads and stores with what they cost, then its buffers.
std::string access_table(const test::AccessReport& report);
// "kernels": [{"kernel", "launches", "accesses": [...], "buffers": [...]}]
void write_access(Json& json, const test::AccessReport& report);

// As lines of text, from the process that ran a program to the one that prints.
std::string to_lines(const test::AccessReport& report);
test::AccessReport from_lines(const std::string& text);

}  // namespace kw::tool
