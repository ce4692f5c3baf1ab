#include "tools/kw/trial.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kw/runtime/device.h"
#include "kw/runtime/driver.h"
#include "kw/runtime/source_set.h"
#include "testing/layers.h"
#include "testing/naive.h"
#include "tools/kw/devices.h"
#include "tools/kw/kernels_of.h"
#include "tools/kw/options.h"

namespace kw::tool {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// ---- in the child ------------------------------------------------------------------------------------------------------------

bool concerns(const Mutant& mutant, const CaseKernels& k) {
  const bool made_of = std::any_of(mutant.edits.begin(), mutant.edits.end(), [&](const Edit& e) { return k.files.count(e.file) > 0; });
  return made_of && std::any_of(k.names.begin(), k.names.end(), [&](const std::string& n) { return n.find(mutant.kernel) != n.npos; });
}

std::string emulator_kind(const std::string& sentence) {  // "kwemu error: uninit-shared\n..."
  const size_t colon = sentence.find(": ");
  return colon == sentence.npos ? "" : sentence.substr(colon + 2, sentence.find('\n') - colon - 2);
}

class Child {
 public:
  Child(const Mutant& mutant, const std::vector<const Op*>& ops, const Effort& effort, int pipe)
      : mutant_(mutant), ops_(ops), effort_(effort), pipe_(pipe), device_(open_device("emulate")) {
    scope_.quick = effort.quick;
    scope_.largest = device_->largest_case();
  }

  void run() {
    const kw_device_facts& gpu = device_facts(0);
    std::vector<CaseOfKernels> all;
    std::vector<std::pair<const Op*, test::Case>> random;
    for (const Op* op : ops_)
      for (const test::Layer& layer : test::layers_of(*op, scope_))
        for (const test::Case& c : layer.skipped.empty() ? layer.cases : std::vector<test::Case>()) {
          const CaseKernels k = kernels_of(*op, c, gpu);
          if (!concerns(mutant_, k)) continue;
          all.push_back(
              {k.names,
               {"layer " + layer.name, std::string("values ") + values_name(c.values), std::string("layout ") + layout_name(c.layout)}});
          if (c.values == test::Values::random && c.layout == test::Layout::plain) random.emplace_back(op, c);
        }
    sets_ = spread_of_kernels(all, effort_.skipped + effort_.most);
    if (sets_.empty()) return say("state", "unused");
    sets_.erase(sets_.begin(), sets_.begin() + static_cast<ptrdiff_t>(std::min(effort_.skipped, sets_.size())));
    set("step_limit", "300000000");  // a hundred times what a case takes
    ask_naive(random, gpu);
    for (const Op* op : ops_)
      if (!check(*op, gpu)) return;
    say("state", "passed");
  }
  void say(const char* key, std::string value) {
    for (char& c : value)
      if (c == '\n') c = '\v';
    const std::string line = std::string(key) + "\t" + value + "\n";
    if (write(pipe_, line.data(), line.size()) < 0) _exit(3);
  }

 private:
  void set(const char* option, const char* value) {
    auto* function = reinterpret_cast<int (*)(const char*, const char*)>(dlsym(driver().handle, "kwemu_set"));
    if (!function || function(option, value)) throw Error(KW_ERROR_TOOLCHAIN, format("the emulator takes no option %s", option));
  }

  bool wanted(const Op& op, const test::Case& c, const kw_device_facts& gpu) const {
    return std::find(sets_.begin(), sets_.end(), kernels_of(op, c, gpu).names) != sets_.end();
  }

  // The largest of the random cases: an ordinary test takes an ordinary size.
  void ask_naive(const std::vector<std::pair<const Op*, test::Case>>& random, const kw_device_facts& gpu) {
    const auto size = [](const test::Case& c) {
      int64_t most = 0;
      for (const test::Argument& a : c.arguments.inputs) {
        int64_t n = a.present;
        for (int64_t s : a.sizes) n *= s;
        most = std::max(most, n);
      }
      return most;
    };
    const std::pair<const Op*, test::Case>* best = nullptr;
    for (const auto& one : random)
      if (wanted(*one.first, one.second, gpu) && (!best || size(one.second) > size(best->second))) best = &one;
    if (!best) return;
    set("detect", "0");
    say("naive", test::naive_allclose(*device_, *best->first, best->second));
    device_->findings();
    set("detect", "1");
  }

  bool check(const Op& op, const kw_device_facts& gpu) {
    test::CheckOptions options;
    options.scope = scope_;
    options.stop_early = true;
    options.keep = [&](const test::Case& c) { return wanted(op, c, gpu); };
    long long cases = 0;
    bool ok = true;
    test::LayerReport failed;
    say("op", op.contract.name);
    test::check_op(*device_, op, options, [&](const test::LayerReport& layer) {
      cases += layer.cases;
      if (!ok || !layer.skipped.empty()) return;
      if (layer.ok) return say("layer", layer.layer);
      ok = false, failed = layer;
    });
    if (!ok) {
      say("layer", failed.layer), say("sentence", failed.sentence), say("reproduce", failed.reproduce);
      say("by", failed.sentence.starts_with("kwemu") ? emulator_kind(failed.sentence) : failed.kind);
      const bool no_program = failed.sentence.find("does not compile") != std::string::npos;
      say("state", no_program ? "broken" : mutant_.legal() || unchanged_passes(op, failed, options) ? "killed" : "unfounded");
    }
    say("cases", std::to_string(cases));
    say("kernels", std::to_string(sets_.size()));
    return ok;
  }

  // The control: what fails has to pass with the unchanged kernels. If not, it is the check that is wrong, and the bug was not seen.
  bool unchanged_passes(const Op& op, const test::LayerReport& failed, test::CheckOptions options) {
    const char* sources = std::getenv("KW_KERNEL_PATH");
    set_kernel_path(sources ? sources : "");
    // Places compares the case with others, which have to be let through as well.
    const auto same = [&, all = options.keep](const test::Case& c) {
      return failed.layer == "places" ? all(c) : describe(op, c) == failed.reproduce;
    };
    options.keep = same;
    bool ok = true;
    test::check_op(*device_, op, options, [&](const test::LayerReport& layer) { ok &= layer.ok; });
    return ok;
  }

  const Mutant& mutant_;
  const std::vector<const Op*>& ops_;
  const Effort& effort_;
  int pipe_;
  std::unique_ptr<test::Device> device_;
  test::Scope scope_;
  std::vector<KernelSet> sets_;
};

}  // namespace

// ---- in the parent -----------------------------------------------------------------------------------------------------------

Trial::Trial(const Mutant& mutant, const Texts& sources, const std::vector<const Op*>& ops, const Effort& effort, const std::string& folder)
    : mutant_(mutant), effort_(effort), folder_(folder), start_(now()) {
  for (const auto& [path, text] : planted(mutant, sources)) {
    const std::filesystem::path full = folder + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << text;
  }
  int ends[2];
  if (pipe(ends)) throw Error(KW_ERROR_INTERNAL, "no pipe to a child process");
  process_ = fork();
  if (process_ < 0) throw Error(KW_ERROR_MEMORY, "no child process could be started");
  if (process_ == 0) {
    setpgid(0, 0);                     // so that the compiler which it starts ends with it
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // and it with the parent
    close(ends[0]);
    set_kernel_path(folder);
    setenv("KW_CACHE", "0", 1);  // kernels that nobody asks for again
    setenv("TMPDIR", folder.c_str(), 1);
    setenv("KWEMU_ARCH", effort.arch, 1);
    try {
      Child child(mutant, ops, effort, ends[1]);
      child.run();
    } catch (const std::exception& error) {
      dprintf(ends[1], "state\terror\nsentence\t%s\n", error.what());
    } catch (const Usage& usage) {
      dprintf(ends[1], "state\terror\nsentence\t%s\n", usage.sentence.c_str());
    }
    _exit(0);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

bool Trial::wait(int milliseconds) {
  if (process_ < 0) return true;
  pollfd poll_this{pipe_, POLLIN, 0};
  if (poll(&poll_this, 1, milliseconds) > 0) {
    char buffer[4096];
    const ssize_t n = read(pipe_, buffer, sizeof buffer);
    if (n <= 0) return finish(false), true;
    text_.append(buffer, static_cast<size_t>(n));
  }
  if (now() - start_ < effort_.limit_seconds) return false;
  kill(-process_, SIGKILL);
  return finish(true), true;
}

void Trial::finish(bool timed_out) {
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  verdict_.seconds = now() - start_;
  std::map<std::string, std::string> said;
  for (size_t begin = 0, end; (end = text_.find('\n', begin)) != text_.npos; begin = end + 1) {
    const std::string line = text_.substr(begin, end - begin);
    const size_t tab = line.find('\t');
    std::string value = tab == line.npos ? "" : line.substr(tab + 1);
    std::replace(value.begin(), value.end(), '\v', '\n');
    const std::string key = line.substr(0, tab);
    if (key == "cases" && said.count(key)) value = std::to_string(std::atoll(value.c_str()) + std::atoll(said[key].c_str()));
    said[key] = value;
  }
  verdict_.op = said["op"], verdict_.layer = said["layer"], verdict_.by = said["by"], verdict_.naive = said["naive"];
  verdict_.sentence = said["sentence"], verdict_.reproduce = said["reproduce"];
  verdict_.cases = std::atoll(said["cases"].c_str()), verdict_.kernels = std::atoll(said["kernels"].c_str());
  const std::string state = said["state"];
  using State = Verdict::State;
  if (timed_out) {
    verdict_.state = State::killed, verdict_.by = "time";
    verdict_.sentence = format("the check took more than %d seconds", effort_.limit_seconds);
  } else if (state == "error") {
    throw Error(KW_ERROR_INTERNAL, mutant_.name + ": " + verdict_.sentence);
  } else if (state.empty()) {  // it crashed
    verdict_.state = State::killed, verdict_.by = "crash";
    verdict_.sentence = WIFSIGNALED(status) ? format("the process ended with signal %d", WTERMSIG(status)) : "the process ended";
  } else {
    verdict_.state = state == "killed"      ? State::killed
                     : state == "broken"    ? State::broken
                     : state == "unused"    ? State::unused
                     : state == "unfounded" ? State::unfounded
                                            : State::passed;
  }
}

Trial::~Trial() {
  if (process_ > 0) kill(-process_, SIGKILL), waitpid(process_, nullptr, 0);
  if (pipe_ >= 0) close(pipe_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace kw::tool
