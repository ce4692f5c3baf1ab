// kw mutate: the checker's own strength, measured with planted bugs.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "kw/runtime/device.h"
#include "kw/runtime/source_set.h"
#include "testing/inputs.h"
#include "tools/kw/json.h"
#include "tools/kw/kernels_of.h"
#include "tools/kw/machine.h"
#include "tools/kw/progress.h"
#include "tools/kw/trial.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

// All device code that kernels of these ops are made of, as it is now (KW_KERNEL_PATH).
Texts device_code(const std::vector<const Op*>& ops) {
  Texts out;
  const kw_device_facts gpu = facts_of_arch("sm_90");
  test::Scope scope;
  scope.quick = true;
  for (const Op* op : ops)
    for (const test::Case& c : test::shape_cases(*op, scope))
      for (const std::string& path : kernels_of(*op, c, gpu).files)
        if (!out.count(path)) out[path] = source_set(path, false)->files.front().text;
  return out;
}

struct Result {
  const Mutant* mutant;
  Verdict verdict;
};

class Campaign {
 public:
  Campaign(const Texts& texts, std::vector<const Op*> ops, size_t jobs, bool quick)
      : texts_(texts), ops_(std::move(ops)), jobs_(jobs), quick_(quick) {
    const char* base = std::getenv("TMPDIR");
    std::string name = std::string(base && *base ? base : "/tmp") + "/kw-mutate-XXXXXX";
    if (!mkdtemp(name.data())) throw Error(KW_ERROR_INTERNAL, "cannot create a folder like " + name);
    folder_ = name;
  }
  ~Campaign() {
    trials_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  // What passes a first, short trial goes through a long one, unless all is `quick`; a legal variant through one in between.
  std::vector<Result> run(const std::vector<const Mutant*>& mutants, const std::function<void(const std::vector<Result>&)>& report) {
    std::vector<Result> out;
    std::deque<std::pair<const Mutant*, bool>> queue;
    for (const Mutant* m : mutants) queue.emplace_back(m, false);
    while (!queue.empty() || !trials_.empty()) {
      while (!queue.empty() && trials_.size() < jobs_) {
        const auto [mutant, thorough] = queue.front();
        queue.pop_front();
        const Effort first{true, 4, 400}, legal{true, 4, 600}, last{false, 8, 900};
        const std::string folder = folder_ + "/" + std::to_string(count_++);
        const Effort& effort = thorough ? last : mutant->legal() ? legal : first;
        trials_.push_back({std::make_unique<Trial>(*mutant, texts_, ops_, effort, folder), thorough});
      }
      for (size_t i = 0; i < trials_.size();) {
        if (!trials_[i].trial->wait(100)) {
          i++;
          continue;
        }
        const Result result{&trials_[i].trial->mutant(), trials_[i].trial->verdict()};
        const bool again = result.verdict.state == Verdict::State::passed && !trials_[i].thorough && !quick_ && !result.mutant->legal();
        trials_.erase(trials_.begin() + static_cast<ptrdiff_t>(i));
        if (again)
          queue.emplace_front(result.mutant, true);
        else
          out.push_back(result), report(out);
      }
    }
    return out;
  }

 private:
  struct Running {
    std::unique_ptr<Trial> trial;
    bool thorough;
  };
  const Texts& texts_;
  const std::vector<const Op*> ops_;
  const size_t jobs_;
  const bool quick_;
  std::string folder_;
  int count_ = 0;
  std::vector<Running> trials_;
};

const char* state_name(const Result& r) {
  switch (r.verdict.state) {
    case Verdict::State::killed:
      return r.mutant->legal() ? "FALSE ALARM" : "killed";
    case Verdict::State::passed:
      return r.mutant->legal() ? "passes" : "SURVIVES";
    case Verdict::State::broken:
      return "no program";
    default:
      return "no kernel";
  }
}

void print(const Result& r, const Texts& texts) {
  const Verdict& v = r.verdict;
  const bool odd = (v.state == Verdict::State::killed) == r.mutant->legal();
  std::printf("  %-11s %-8s %-18s allclose %-7s %5.1f s  %s\n", state_name(r), v.layer.c_str(), v.by.c_str(),
              v.naive.empty() ? "-" : v.naive.c_str(), v.seconds, r.mutant->name.c_str());
  if (odd) std::printf("    %s\n%s", r.mutant->sentence.c_str(), diff_of(*r.mutant, texts).c_str());
  if (odd && r.mutant->legal()) std::printf("    %s: %s\n    %s\n", v.op.c_str(), v.sentence.c_str(), v.reproduce.c_str());
  if (v.state == Verdict::State::broken && !r.mutant->by_rule) std::printf("    %s\n", v.sentence.c_str());
  std::fflush(stdout);
}

struct Sums {
  long long planted = 0, killed = 0, by_rule = 0, noticed = 0, legal = 0, false_alarms = 0, broken = 0, unused = 0;
  std::map<std::string, long long> layers, eyes, naive;
  std::map<int, long long> numbers;
  explicit Sums(const std::vector<Result>& results) {
    for (const auto& [mutant, v] : results) {
      const bool killed = v.state == Verdict::State::killed;
      if (v.state == Verdict::State::broken || v.state == Verdict::State::unused) {
        (v.state == Verdict::State::broken ? broken : unused)++;
      } else if (mutant->legal()) {
        legal++, false_alarms += killed;
      } else {
        planted++, killed_by(v, killed), by_rule += mutant->by_rule, numbers[mutant->number]++;
        naive[v.naive]++, noticed += v.naive == "fails" || v.naive == "stops";
      }
    }
  }

 private:
  void killed_by(const Verdict& v, bool is_killed) {
    if (!is_killed) return;
    killed++, layers[v.layer.empty() ? "start" : v.layer]++, eyes[v.by]++;
  }
};

template <class Key>
void write_counts(Json& json, const char* name, const std::map<Key, long long>& counts) {
  json.key(name).open('{');
  for (const auto& [key, count] : counts) {
    if constexpr (std::is_same_v<Key, int>)
      json.key(std::to_string(key)).whole(count);
    else
      json.key(key).whole(count);
  }
  json.close('}');
}

std::string as_json(const std::vector<Result>& results, size_t chosen, const Texts& texts) {
  const Sums sums(results);
  Json json;
  json.open('{')
      .key("command")
      .string("kw mutate --device emulate")
      .key("date")
      .string(utc_now())
      .key("commit")
      .string(git_commit())
      .key("machine");
  write_machine(json);
  json.key("chosen").whole(static_cast<int64_t>(chosen)).key("run").whole(static_cast<int64_t>(results.size()));
  json.key("planted").whole(sums.planted).key("killed").whole(sums.killed).key("mechanical").whole(sums.by_rule);
  json.key("naive_allclose").whole(sums.noticed).key("legal_variants").whole(sums.legal).key("false_alarms").whole(sums.false_alarms);
  json.key("no_program").whole(sums.broken).key("no_kernel").whole(sums.unused);
  write_counts(json, "by_layer", sums.layers);
  write_counts(json, "seen_by", sums.eyes);
  write_counts(json, "by_catalogue_number", sums.numbers);
  json.key("survivors").open('[');
  for (const Result& r : results)
    if (!r.mutant->legal() && r.verdict.state == Verdict::State::passed)
      json.open('{')
          .key("name")
          .string(r.mutant->name)
          .key("says")
          .string(r.mutant->sentence)
          .key("diff")
          .string(diff_of(*r.mutant, texts)),
          json.close('}');
  json.close(']').key("mutants").open('[');
  for (const auto& [m, v] : results) {
    json.open('{').key("name").string(m->name).key("number").whole(m->number).key("mechanical").boolean(m->by_rule);
    json.key("state").string(state_name({m, v})).key("layer").string(v.layer).key("seen_by").string(v.by).key("op").string(v.op);
    json.key("naive_allclose").string(v.naive).key("kernel_sets").whole(v.kernels).key("cases").whole(v.cases);
    json.key("seconds").number(v.seconds).close('}');
  }
  json.close(']').close('}');
  return json.text();
}

int run(const Options& options) {
  const std::vector<const Op*> ops = ops_named(options.words());
  if (const std::string device = options.get("--device", "emulate"); device != "emulate")
    throw Usage{"kw mutate runs on --device emulate, not on '" + device.substr(0, 40) + "'"};
  const std::string file = options.get("--json");
  const Texts texts = device_code(ops);
  std::vector<std::string> misfits;
  const std::vector<Mutant> mutants = read_mutants(options.get("--bugs", "testing/mutants"), texts, options.words().empty(), 0.06, misfits);
  for (const std::string& sentence : misfits) std::printf("  does not fit: %s\n", sentence.c_str());
  const std::vector<std::string> only = options.all("--only");
  std::vector<const Mutant*> chosen;
  for (const Mutant& m : mutants)
    if (only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& part) { return m.name.find(part) != m.name.npos; }))
      chosen.push_back(&m);
  // Mixed, so that a run that is stopped has tried a fair sample of all kinds.
  std::mt19937 dice(1);
  std::shuffle(chosen.begin(), chosen.end(), dice);
  if (chosen.empty()) throw Usage{"no planted bug is named like that; kw mutate --list shows them"};
  if (options.has("--list")) {
    for (const Mutant* m : chosen) std::printf("  %4d  %-44s %s\n", m->number, m->name.c_str(), m->sentence.c_str());
    std::printf("%zu\n", chosen.size());
    return misfits.empty() ? 0 : 1;
  }
  if (!file.empty() && !std::ofstream(file)) throw Usage{"cannot write " + file};
  Campaign campaign(texts, ops, static_cast<size_t>(options.whole("--jobs", 2, 1, 64)), options.has("--quick"));
  Progress progress;
  const std::vector<Result> results = campaign.run(chosen, [&](const std::vector<Result>& so_far) {
    progress.clear();
    print(so_far.back(), texts);
    if (!file.empty()) std::ofstream(file) << as_json(so_far, chosen.size(), texts) << "\n";  // a long run that is stopped has a result
    progress.show("mutants", static_cast<int64_t>(so_far.size()), static_cast<int64_t>(chosen.size()));
  });
  progress.clear();
  const Sums sums(results);
  std::printf("%lld of %lld planted bugs killed (%.1f %%); allclose on one random input notices %lld\n", sums.killed, sums.planted,
              sums.planted ? 100.0 * static_cast<double>(sums.killed) / static_cast<double>(sums.planted) : 0.0, sums.noticed);
  for (const auto& [layer, count] : sums.layers) std::printf("  %-10s %4lld\n", layer.c_str(), count);
  std::printf("%lld false alarms on %lld legal variants\n", sums.false_alarms, sums.legal);
  if (sums.broken) std::printf("%lld edits are no program\n", sums.broken);
  return sums.killed == sums.planted && sums.false_alarms == 0 && misfits.empty() ? 0 : 1;
}

}  // namespace

const Verb mutate_verb = {
    "mutate",
    "[OP...]",
    "how strong the checker is: planted bugs that it has to find",
    "Plants bugs, one at a time, in a copy of the device code of these ops (all, without a name), and runs kw check on the emulator over\n"
    "the cases whose kernels hold the edit. A bug that the check does not see survives, and is shown as a diff. Legal variants of the\n"
    "kernels have to pass. Beside each stands what allclose on one random input says. The bugs are data: testing/mutants/*.txt.\n"
    "Exit status 1 when a bug survives or a legal variant fails.\n\n"
    "example: kw mutate --only eps",
    {{"--device", "NAME", "emulate (default)"},
     {"--only", "TEXT", "only mutants with this in their names; may be repeated"},
     {"--bugs", "DIR", "where they are described (default testing/mutants)"},
     {"--jobs", "N", "trials at a time (default 2)"},
     {"--quick", nullptr, "no second, longer trial of what survives the first"},
     {"--list", nullptr, "show them, and run nothing"},
     {"--json", "FILE", "write the result as JSON"}},
    run};

}  // namespace kw::tool
