#include <algorithm>
#include <cstdio>

#include "kw/core/manifest.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

int run(const Options& options) {
  if (options.has("--json")) return std::printf("%s\n", manifest().c_str()), 0;
  for (const Op* op : ops_named(options.words())) {
    std::printf("%s\n", op->contract.name.c_str());
    const std::string& text = op->contract.text;  // as the room wrote it; its indentation is the room's own
    for (size_t at = 0; at < text.size();) {
      const size_t stop = std::min(text.find('\n', at), text.size()), first = text.find_first_not_of(' ', at);
      if (first < stop)
        std::printf("  %s%.*s\n", at <= text.find(op->contract.name) ? "" : "  ", static_cast<int>(stop - first), &text[first]);
      at = stop + 1;
    }
  }
  return 0;
}

}  // namespace

const Verb list_verb = {"list",
                        "[OP...]",
                        "the ops and their contracts",
                        "Prints each op's contract: its inputs with their dtypes and shapes, attributes, results and gradient.\n"
                        "--json is the manifest that the Python faces register from (its form is in kw/core/manifest.h).\n\nexample: kw "
                        "list --json | python3 -m json.tool",
                        {{"--json", nullptr, "the whole registry as JSON"}},
                        run};

}  // namespace kw::tool
