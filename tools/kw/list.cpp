#include <cstdio>

#include "kw/core/manifest.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

int run(const Options& options) {
  if (options.has("--json")) return std::printf("%s\n", manifest().c_str()), 0;
  for (const Op* op : ops_named(options.words())) {
    std::string text = op->contract.text;  // as the room wrote it, without its indentation
    size_t least = std::string::npos;
    for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) {
      const size_t first = text.find_first_not_of(" \n", at);
      if (first != text.npos) least = std::min(least, first - text.rfind('\n', first) - 1);
    }
    const size_t begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
    text = text.substr(begin, end - begin + 1);
    std::printf("%s\n", op->contract.name.c_str());
    for (size_t at = 0; at <= text.size();) {
      const size_t stop = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, stop - at);
      const size_t blank = line.find_first_not_of(' ');
      const size_t cut = at == 0 ? 0 : std::min(least == std::string::npos ? 0 : least, blank == line.npos ? line.size() : blank);
      std::printf("    %s\n", line.substr(cut).c_str());
      at = stop + 1;
    }
  }
  return 0;
}

}  // namespace

const Verb list_verb = {"list", "[OP...]", "the ops and their contracts",
                        "Prints each op's contract: its inputs with their dtypes and shapes, attributes, results and gradient.\n"
                        "--json is the manifest that the Python faces register from (its form is in kw/core/manifest.h).\n\nexample: kw list --json | python3 -m json.tool",
                        {{"--json", nullptr, "the whole registry as JSON"}},
                        run};

}  // namespace kw::tool
