// What this machine is and how fast it copies: for `kw doctor` and `kw bench`.
#pragma once
#include <string>

#include "tools/kw/json.h"

namespace kw::tool {

std::string cpu_model();
int cpu_cores();  // that this process may use
// Bytes read plus bytes written per second, over 1e9, of a copy of 128 MiB on all threads: the ceiling of memory-bound CPU kernels.
// Median of `repeats`.
double cpu_copy_rate(int repeats = 9);
// Of the source tree that the working folder is in; "" when unknown, "-dirty" behind it when files are changed.
std::string git_commit();
std::string utc_now();  // "2026-11-30T12:00:00Z"
// {"cpu": ..., "cores": ..., "threads": ..., "isa": ..., "os": ...}
void write_machine(Json& json);

}  // namespace kw::tool
