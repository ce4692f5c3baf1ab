// Warnings: what a person should know although the call goes on. Each sentence is said once in a process.
#pragma once
#include <string>

#include "kw/core/abi.h"

namespace kw {

// Says the sentence, unless it has been said before: to the function given to set_log, else on stderr with "kernelwright: " before it.
// Safe under any lock: with a function set, it is only kept until deliver_warnings.
void warn(const std::string& sentence);

// Hands kept warnings to the function. Called at the library's borders, where no lock of ours is held: the function may want a lock that
// another thread holds while it waits for us (Python's).
void deliver_warnings();

// Null: stderr again. A function must stay callable until another one is set and may be called from any thread.
void set_log(kw_log_function function, void* context);

}  // namespace kw
