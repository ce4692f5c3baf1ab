// kw: the workbench of Kernelwright.
#include <cstdio>
#include <cstring>
#include <new>

#include "kw/core/error.h"
#include "testing/arguments.h"
#include "tools/kw/verb.h"

namespace kw::tool {

static const Verb* const verbs[] = {&doctor_verb, &list_verb,  &plan_verb,    &check_verb, &bench_verb,
                                    &pack_verb,   &cache_verb, &emulate_verb, &mutate_verb};
static std::vector<std::string> words;

const std::vector<std::string>& command_line() { return words; }

const Op& op_named(const std::string& name) {
  if (const Op* op = find_op(name)) return *op;
  std::vector<std::string> names;
  for (const Op* op : ops()) names.push_back(op->contract.name);
  throw Usage{"there is no op '" + name.substr(0, 60) + "'" + test::suggest(name, names) + "; kw list shows what there is"};
}

std::vector<const Op*> ops_named(const std::vector<std::string>& names) {
  std::vector<const Op*> out;
  for (const std::string& name : names) out.push_back(&op_named(name));
  return names.empty() ? ops() : out;
}

static void print_help() {
  std::printf("kw: check, measure and look into Kernelwright's ops\n\n");
  for (const Verb* v : verbs) std::printf("  kw %-7s %-23s %s\n", v->name, v->operands, v->summary);
  std::printf(
      "\n  kw VERB --help   says more, with an example\n  kw --version\n\nExit status: 0 all is well, 1 something was found, 2 it could "
      "not be done.\n");
}

static void print_help(const Verb& v) {
  std::printf("kw %s: %s\n\nusage: kw %s [options] %s\n\n%s\n\noptions:\n", v.name, v.summary, v.name, v.operands, v.text);
  for (const Option& o : v.options)
    std::printf("  %-26s %s\n", (std::string(o.name) + (o.value ? std::string(" ") + o.value : "")).c_str(), o.help);
  std::printf("  %-26s %s\n", "--help", "this text");
}

static int run() {
  if (words.size() < 2 || words[1] == "--help" || words[1] == "-h" || words[1] == "help") return print_help(), words.size() < 2 ? 2 : 0;
  if (words[1] == "--version") return std::printf("kw %s\n", KW_VERSION), 0;
  std::vector<std::string> names;
  for (const Verb* v : verbs) {
    names.push_back(v->name);
    if (words[1] != v->name) continue;
    const std::vector<std::string> rest(words.begin() + 2, words.end());
    for (const std::string& word : rest)
      if (word == "--help" || word == "-h") return print_help(*v), 0;
    return v->run(Options(rest, v->options));
  }
  throw Usage{"there is no verb '" + words[1].substr(0, 60) + "'" + test::suggest(words[1], names) + "; kw --help lists them"};
}

}  // namespace kw::tool

int main(int argc, char** argv) {
  kw::tool::words.assign(argv, argv + argc);
  try {
    const int status = kw::tool::run();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    std::fprintf(stderr, "kw: the output could not be written\n");
  } catch (const kw::tool::Usage& usage) {
    std::fprintf(stderr, "kw: %s\n", usage.sentence.c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "kw: there is not enough memory for this\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kw: %s\n", error.what());
  }
  return 2;
}
