// A look at a shared library before the system's loader gets it.
#pragma once

namespace kw {

// Throws a sentence when the file at `path` ends before its ELF tables and segments do: an interrupted copy or download. The loader would
// map what is missing, and touching it kills the process (SIGBUS). A bare name, which the loader looks up, and what is no 64-bit ELF file
// are left to the loader's own sentence.
void expect_whole_library(const char* path);

}  // namespace kw
