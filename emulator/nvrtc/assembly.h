// What is done to the compiler's output: its assembly, and its last intermediate form.
#pragma once
#include <string>
#include <vector>

namespace kwemu {
struct Assembly {
  std::string text;
  std::vector<std::string> shared_names;  // of __shared__ arrays, short
  std::string error;                      // compiler-like lines, or empty
};
// Gives the sanitizers' callbacks our names (a process may hold the real ones), sends memcpy and memset through the checker, and puts a
// gap after every __shared__ array, so that an index past its end meets no neighbour. Inline PTX is an error with its place.
Assembly edit_assembly(const std::string& text, bool dynamic_shared);

// GCC observes assignments, not the operands of calls: a struct in memory that is passed or returned by value to a function that was not
// inlined is read or written unseen. One sentence for each such call in the dump of -fdump-tree-optimized.
std::vector<std::string> unobserved_accesses(const std::string& dump, const std::vector<std::string>& shared_names);
}  // namespace kwemu
