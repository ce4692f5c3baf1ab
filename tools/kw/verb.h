// A verb of the command line; each has its own file.
#pragma once
#include <string>
#include <vector>

#include "kw/core/op.h"
#include "tools/kw/options.h"

namespace kw::tool {

// Exit statuses: 0 all is well, 1 something was found, 2 the command line or the machine does not allow it (a sentence says why).
struct Verb {
  const char* name;
  const char* operands;  // "OP [OP...]"
  const char* summary;   // one line
  const char* text;      // what --help says beside the options: paragraphs and an example
  std::vector<Option> options;
  int (*run)(const Options&);
};

extern const Verb doctor_verb, list_verb, plan_verb, check_verb, bench_verb, pack_verb, cache_verb, emulate_verb, mutate_verb;

const std::vector<std::string>& command_line();  // as it was given
// The op of this name; throws Usage with the nearest name.
const Op& op_named(const std::string& name);
std::vector<const Op*> ops_named(const std::vector<std::string>& names);  // all when none is named

}  // namespace kw::tool
