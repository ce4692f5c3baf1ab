#include "testing/check.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>

#include "testing/catalogue.h"
#include "tools/kw/check_picture.h"
#include "tools/kw/devices.h"
#include "tools/kw/json.h"
#include "tools/kw/progress.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

test::Case case_asked(const Op& op, const Options& options, uint64_t seed) {
  test::Case c;
  c.arguments = test::parse_arguments(op, options.all("--arg"));
  test::refuse_strides(op, c.arguments);
  c.arguments.saved = !options.has("--no-saved");
  c.seed = seed;
  if (options.has("--values")) {
    auto values = test::parse_values(options.get("--values"));
    if (!values) throw Usage{"there are no values '" + options.get("--values").substr(0, 40) + "'; kw check --help lists them"};
    c.values = *values;
  }
  if (options.has("--layout")) {
    auto layout = test::parse_layout(options.get("--layout"));
    if (!layout) throw Usage{"there is no layout '" + options.get("--layout").substr(0, 40) + "'; kw check --help lists them"};
    c.layout = *layout;
  }
  int64_t bytes = 0;
  for (const test::Argument& a : c.arguments.inputs)
    bytes += a.present ? std::accumulate(a.sizes.begin(), a.sizes.end(), int64_t{dtype_bytes(a.dtype)}, std::multiplies<>()) : 0;
  if (bytes > int64_t{1} << 32)
    throw Usage{"a single case holds its tensors in double on the host several times; above 4 GiB that is too much"};
  return c;
}

void write(Json& json, const test::LayerReport& layer) {
  json.open('{')
      .key("level")
      .string(layer.level)
      .key("layer")
      .string(layer.layer)
      .key("ok")
      .boolean(layer.ok)
      .key("cases")
      .whole(layer.cases);
  json.key("worst").number(layer.worst).key("seconds").number(layer.seconds);
  if (!layer.skipped.empty()) json.key("skipped").string(layer.skipped);
  if (!layer.ok)
    json.key("failure").string(layer.sentence).key("reproduce").string(layer.reproduce).key("cause").string(test::likely_cause(layer));
  json.close('}');
}

void print(const Op& op, const char* device, const test::LayerReport& layer) {
  if (!layer.skipped.empty())
    return void(std::printf("  %-2s %-8s does not apply: %s\n", layer.level.c_str(), layer.layer.c_str(), layer.skipped.c_str()));
  std::printf("  %-2s %-8s %-6s %5lld cases %7.2f s", layer.level.c_str(), layer.layer.c_str(), layer.ok ? "ok" : "FAILED",
              static_cast<long long>(layer.cases), layer.seconds);
  if (layer.worst > 0) std::printf("   largest error %.2f of the bound", layer.worst);
  std::printf("\n");
  if (layer.ok) return;
  std::string text = layer.sentence;  // the emulator's have several lines
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 12) text.replace(at, 1, "\n           ");
  std::printf("           %s\n", text.c_str());
  if (const std::string cause = test::likely_cause(layer); !cause.empty()) std::printf("           likely: %s\n", cause.c_str());
  if (layer.reproduce.empty()) return;
  const char* kernels = std::getenv("KW_KERNEL_PATH");  // without it the command would check the library's own text
  std::printf("           next: %s%s%skw check %s --device %s %s\n", kernels ? "KW_KERNEL_PATH=" : "", kernels ? kernels : "",
              kernels ? " " : "", op.contract.name.c_str(), device, layer.reproduce.c_str());
}

int run(const Options& options) {
  const std::vector<const Op*> list = ops_named(options.words());
  const bool as_json = options.has("--json"), single = options.has("--arg");
  if (single && list.size() != 1) throw Usage{"--arg describes a call of one op: name it"};
  if (!single && (options.has("--values") || options.has("--layout") || options.has("--no-saved")))
    throw Usage{"--values, --layout and --no-saved belong to a single case: add --arg"};
  test::CheckOptions check;
  check.scope.quick = options.has("--quick");
  check.scope.seed = static_cast<uint64_t>(options.whole("--seed", 1, 0, 1ll << 62));
  test::Case one;
  if (single) one = case_asked(*list[0], options, check.scope.seed);
  const std::string name = options.get("--device", "cpu");
  const std::string picture_file = options.get("--picture");
  if (!picture_file.empty() && !std::ofstream(picture_file)) throw Usage{"cannot write " + picture_file};
  CheckPicture picture;
  const auto device = open_device(name);
  Progress progress;
  Json json;
  json.open('{').key("device").string(name).key("seed").whole(static_cast<int64_t>(check.scope.seed)).key("ops").open('[');
  int bad = 0;
  for (const Op* op : list) {
    if (!as_json) std::printf("%s on %s\n", op->contract.name.c_str(), name.c_str());
    json.open('{').key("op").string(op->contract.name).key("layers").open('[');
    bool ok = true;
    auto report = [&](const test::LayerReport& layer) {
      progress.clear();
      ok &= layer.ok;
      write(json, layer);
      if (!as_json) print(*op, name.c_str(), layer), std::fflush(stdout);
    };
    check.progress = [&](const std::string& layer, int64_t done, int64_t of) { progress.show(op->contract.name + " " + layer, done, of); };
    check.graded = [&](const test::Case& c, const test::Outcome& outcome) { picture.add(*op, c, outcome); };
    if (single) {
      const test::Outcome outcome = test::check_case(*device, *op, one);
      picture.add(*op, one, outcome);
      report({.layer = "case", .ok = outcome.ok, .cases = 1, .worst = outcome.worst, .sentence = outcome.sentence, .kind = outcome.kind});
    } else {
      test::check_op(*device, *op, check, report);
    }
    json.close(']').key("ok").boolean(ok).close('}');
    bad += !ok;
  }
  json.close(']').key("ok").boolean(bad == 0).close('}');
  if (!picture_file.empty() && !(std::ofstream(picture_file) << picture.svg(name)).flush()) throw Usage{"cannot write " + picture_file};
  if (as_json)
    std::printf("%s\n", json.text().c_str());
  else if (bad)
    std::printf("%d of %zu %s failed\n", bad, list.size(), list.size() == 1 ? "op" : "ops");
  else
    std::printf("%zu %s right on %s\n", list.size(), list.size() == 1 ? "op is" : "ops are", name.c_str());
  return bad ? 1 : 0;
}

}  // namespace

const Verb check_verb = {
    "check",
    "[OP...]",
    "whether ops keep their promises, on hostile inputs",
    "Derives inputs from each op's contract and grades every element against the room's reference in double, on the same rounded inputs.\n"
    "Layers: shapes, dtypes, values, layouts, repeat (same bits again, after other calls, on other thread counts), rows (a row alone "
    "gives\n"
    "the same bits; NaN stays in its row), places (so it does at any address), far (beyond 2^31 elements), refusal (wrong calls get a\n"
    "sentence). In every case results start as poison between guard\n"
    "bands and inputs must stay as they were; on the emulator all that it reports counts. testing/compare.h has the bound.\n"
    "A failure prints the command that repeats it alone; exit status 1 then.\n\n"
    "values:  random constant huge small tiny mean1000 below ones outlier last zeros infinity masked denormal largest\n"
    "         cancel nan\n"
    "layouts: plain row_gap offset both odd_ones distances transposed expanded repeated shift mixed\n\n"
    "example: kw check --device emulate --quick",
    {{"--device", "NAME", "cpu (default), emulate, or cuda"},
     {"--quick", nullptr, "fewer shapes per layer"},
     {"--seed", "N", "of the random inputs (default 1)"},
     {"--arg", "NAME=VALUE", "a single case instead: its tensors and attributes, as kw plan takes them"},
     {"--values", "NAME", "of the single case (default random)"},
     {"--layout", "NAME", "of the single case (default plain)"},
     {"--no-saved", nullptr, "of the single case: results that only a gradient needs are not asked for"},
     {"--picture", "FILE", "draw errors as SVG: a histogram in spacings of the result's type, and a heat map row length x values"},
     {"--json", nullptr, "the report as JSON"}},
    run};

}  // namespace kw::tool
