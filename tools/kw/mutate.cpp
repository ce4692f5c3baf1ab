// kw mutate: the checker's own strength, measured with planted bugs.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>

#include "kw/runtime/device.h"
#include "kw/runtime/source_set.h"
#include "testing/inputs.h"
#include "tools/kw/kernels_of.h"
#include "tools/kw/progress.h"
#include "tools/kw/verb.h"
#include "tools/kw/verdicts.h"

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

// Trials of one mutant, one after the other until it is killed: few kernels and cases first, for most bugs are seen there. What a legal
// variant passes is what a bug has to survive.
constexpr Effort efforts[] = {
    {true, 0, 4, "90", 400}, {false, 0, 12, "90", 900}, {false, 12, 500, "90", 1800}, {false, 0, 500, "75", 1800}};
constexpr size_t last_of_legal = 1;

volatile std::sig_atomic_t stopped = 0;

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

  // Until all are tried, or a signal came.
  void run(const std::vector<const Mutant*>& mutants, const std::function<void(const Result&)>& report) {
    std::deque<const Mutant*> queue(mutants.begin(), mutants.end());
    while (!stopped && (!queue.empty() || !trials_.empty())) {
      while (!queue.empty() && trials_.size() < jobs_) {
        start({queue.front(), {}}, 0);
        queue.pop_front();
      }
      for (size_t i = 0; i < trials_.size(); i++) {
        if (!trials_[i].trial->wait(100 / static_cast<int>(trials_.size()))) continue;
        const size_t stage = trials_[i].stage;
        const Result result = together(trials_[i].before, trials_[i].trial->verdict());
        trials_.erase(trials_.begin() + static_cast<ptrdiff_t>(i--));
        if (undecided(result.verdict) && stage < last_stage(*result.mutant))
          start(result, stage + 1);
        else
          report(result);
      }
    }
  }

 private:
  struct Running {
    std::unique_ptr<Trial> trial;
    size_t stage;
    Result before;  // what earlier trials came to
  };

  size_t last_stage(const Mutant& mutant) const { return quick_ ? 0 : mutant.legal() ? last_of_legal : std::size(efforts) - 1; }
  static bool undecided(const Verdict& v) { return v.state == Verdict::State::passed || v.state == Verdict::State::unused; }

  void start(const Result& before, size_t stage) {
    const std::string folder = folder_ + "/" + std::to_string(count_++);
    trials_.push_back({std::make_unique<Trial>(*before.mutant, texts_, ops_, efforts[stage], folder), stage, before});
  }

  Result together(const Result& before, Verdict now) const {
    now.seconds += before.verdict.seconds, now.cases += before.verdict.cases, now.kernels += before.verdict.kernels;
    // allclose is asked once in each trial, of the kernels that it tries: once noticed is noticed.
    if (now.naive.empty() || before.verdict.naive == "fails" || before.verdict.naive == "stops") now.naive = before.verdict.naive;
    // That a later trial finds no further kernels does not take back what an earlier one has run.
    if (now.state == Verdict::State::unused && before.verdict.cases > 0) now.state = Verdict::State::passed;
    now.thorough = !quick_;
    return {before.mutant, now};
  }

  const Texts& texts_;
  const std::vector<const Op*> ops_;
  const size_t jobs_;
  const bool quick_;
  std::string folder_;
  int count_ = 0;
  std::vector<Running> trials_;
};

void print(const Result& r, const Texts& texts) {
  const Verdict& v = r.verdict;
  const bool alarm = r.mutant->legal() && v.state == Verdict::State::killed, odd = r.survives() || alarm;
  std::printf("  %-11s %-8s %-18s allclose %-7s %5.1f s  %s\n", r.name_of_state().c_str(), v.layer.c_str(), v.by.c_str(),
              v.naive.empty() ? "-" : v.naive.c_str(), v.seconds, r.mutant->name.c_str());
  if (odd) std::printf("    %s\n%s", r.mutant->sentence.c_str(), diff_of(*r.mutant, texts).c_str());
  if (odd && !r.mutant->reason.empty()) std::printf("    known: %s\n", r.mutant->reason.c_str());
  if (alarm || v.state == Verdict::State::unfounded)
    std::printf("    %s: %s\n    %s\n", v.op.c_str(), v.sentence.c_str(), v.reproduce.c_str());
  if (v.state == Verdict::State::broken && r.mutant->origin != "rule") std::printf("    %s\n", v.sentence.c_str());
  std::fflush(stdout);
}

int run(const Options& options) {
  const std::vector<const Op*> ops = ops_named(options.words());
  if (const std::string device = options.get("--device", "emulate"); device != "emulate")
    throw Usage{"kw mutate runs on --device emulate, not on '" + device.substr(0, 40) + "'"};
  const std::string file = options.get("--json"), picture = options.get("--picture");
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
  const bool quick = options.has("--quick");
  for (const std::string& written : {file, picture})
    if (!written.empty() && !std::ofstream(written)) throw Usage{"cannot write " + written};
  Record record(options.get("--record"));
  std::vector<Result> results;
  std::vector<const Mutant*> left;
  for (const Mutant* m : chosen) {
    if (const Verdict* known = record.find(*m, texts, quick))
      results.push_back({m, *known}), print(results.back(), texts);
    else
      left.push_back(m);
  }
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stopped = 1; });
  Campaign campaign(texts, ops, static_cast<size_t>(options.whole("--jobs", 2, 1, 256)), quick);
  Progress progress;
  campaign.run(left, [&](const Result& result) {
    results.push_back(result);
    record.add(*result.mutant, texts, result.verdict);
    progress.clear();
    print(result, texts);
    progress.show("mutants", static_cast<int64_t>(results.size()), static_cast<int64_t>(chosen.size()));
  });
  progress.clear();
  std::sort(results.begin(), results.end(), [](const Result& a, const Result& b) { return a.mutant->name < b.mutant->name; });
  if (!file.empty()) std::ofstream(file) << as_json(results, chosen.size(), texts) << "\n";
  if (!picture.empty()) std::ofstream(picture) << as_picture(results);
  if (stopped)
    std::printf("stopped when %zu of %zu were tried%s\n", results.size(), chosen.size(),
                options.has("--record") ? "; the same command goes on from there" : "; with --record FILE, a run can be taken up again");
  const Sums sums(results);
  const auto share = [&](long long part) {
    return sums.planted ? 100.0 * static_cast<double>(part) / static_cast<double>(sums.planted) : 0.0;
  };
  std::printf("%lld of %lld planted bugs killed (%.1f %%); allclose on one random input notices %lld (%.1f %%)\n", sums.killed,
              sums.planted, share(sums.killed), sums.noticed, share(sums.noticed));
  for (const auto& [layer, count] : sums.layers) std::printf("  %-10s %4lld\n", layer.c_str(), count);
  std::printf("%lld false alarms on %lld legal variants\n", sums.false_alarms, sums.legal);
  if (sums.broken) std::printf("%lld edits are no program\n", sums.broken);
  if (sums.unused) std::printf("%lld edits are in no kernel that the check runs\n", sums.unused);
  const long long unexplained = std::count_if(results.begin(), results.end(), [](const Result& r) {
    return r.survives() && (r.mutant->reason.empty() || r.verdict.state == Verdict::State::unfounded);
  });
  if (unexplained) std::printf("%lld survivors without a reason\n", unexplained);
  const bool enough = sums.killed * 100 >= sums.planted * 97;
  return !stopped && enough && unexplained == 0 && sums.false_alarms == 0 && misfits.empty() ? 0 : 1;
}

}  // namespace

const Verb mutate_verb = {
    "mutate",
    "[OP...]",
    "how strong the checker is: planted bugs that it has to find",
    "Plants bugs, one at a time, in a copy of the device code of these ops (all, without a name), and runs kw check on the emulator over\n"
    "the cases whose kernels hold the edit. A bug that the check does not see survives, and is shown as a diff. Legal variants of the\n"
    "kernels have to pass. Beside each stands what allclose on one random input says. The bugs are data: testing/mutants/*.txt.\n"
    "Exit status 1 when a legal variant fails, or a bug survives without a stated reason, or more than 3 % do.\n\n"
    "example: kw mutate --only eps",
    {{"--device", "NAME", "emulate (default)"},
     {"--only", "TEXT", "only mutants with this in their names; may be repeated"},
     {"--bugs", "DIR", "where they are described (default testing/mutants)"},
     {"--jobs", "N", "trials at a time (default 2)"},
     {"--quick", nullptr, "no second, longer trial of what survives the first"},
     {"--list", nullptr, "show them, and run nothing"},
     {"--record", "FILE", "append each verdict; what stands there already, of the same sources and checker, is not tried again"},
     {"--picture", "FILE", "draw the result as SVG"},
     {"--json", "FILE", "write the result as JSON"}},
    run};

}  // namespace kw::tool
