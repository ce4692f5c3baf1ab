// One mutant's trial: the checker on sources with its edits, in a process of its own.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "kw/core/op.h"
#include "tools/kw/mutants.h"

namespace kw::tool {

struct Verdict {
  // broken: it does not compile; unused: no kernel holds it; unfounded: what failed fails without the bug too
  enum class State { killed, passed, broken, unused, unfounded } state = State::passed;
  std::string op, layer, by, sentence, reproduce;  // of the layer that failed; by: what saw it ("uninit-shared", "number", "time")
  std::string naive;                               // naive_allclose (testing/naive.h); "" when it was not asked
  long long cases = 0, kernels = 0;                // that were run
  double seconds = 0;
  bool thorough = false;  // of a trial that was not a short one
};

struct Effort {
  bool quick = true;             // kw check --quick
  size_t skipped = 0, most = 4;  // sets of kernels: without the first, which were tried before, and with how many
  const char* arch = "90";       // of the GPU that the emulator plays: older ones take other kernels
  int limit_seconds = 240;       // then the process is ended, and what it ran counts as killed by time
};

// A process that is running a trial.
class Trial {
 public:
  // Writes the sources into `folder` (which is removed in the end) and starts. `ops`: the ones to be checked.
  Trial(const Mutant& mutant, const Texts& sources, const std::vector<const Op*>& ops, const Effort& effort, const std::string& folder);
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial();

  bool wait(int milliseconds);  // true when it has ended
  const Verdict& verdict() const { return verdict_; }
  const Mutant& mutant() const { return mutant_; }

 private:
  void finish(bool timed_out);
  const Mutant& mutant_;
  const Effort effort_;
  std::string folder_, text_;
  int pipe_ = -1, process_ = -1;
  double start_ = 0;
  Verdict verdict_;
};

}  // namespace kw::tool
