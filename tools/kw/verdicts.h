// What trials came to: kept as lines of a file, summed up, written as JSON.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tools/kw/trial.h"

namespace kw::tool {

struct Result {
  const Mutant* mutant;
  Verdict verdict;
  std::string name_of_state() const;  // "killed", "SURVIVES", "passes", "FALSE ALARM", "no program", "no kernel", "UNFOUNDED"
  // A bug that the check does not see; also one in a kernel that it never runs.
  bool survives() const;
};

// A file with one line for each trial, written when it ends: a run that was stopped is taken up where it was, and the files of parts of a
// run, one behind the other, are the file of the whole.
class Record {
 public:
  // "": no file. Throws Usage when it cannot be written.
  explicit Record(std::string path);
  // What the mutant came to when these sources met this checker: this program and its emulator; null when that is not there. What passed a
  // short trial counts only where a `quick` one is asked for.
  const Verdict* find(const Mutant& mutant, const Texts& sources, bool quick) const;
  void add(const Mutant& mutant, const Texts& sources, const Verdict& verdict);

 private:
  std::string key(const Mutant& mutant, const Texts& sources) const;
  const std::string path_;
  std::string checker_;
  std::map<std::string, Verdict> verdicts_;
};

struct Sums {
  long long planted = 0, killed = 0, noticed = 0, legal = 0, false_alarms = 0, broken = 0,
            unused = 0;  // noticed: by allclose; unused: in no kernel
  std::map<std::string, long long> layers, eyes, origins;
  struct OfNumber {
    long long planted = 0, killed = 0, noticed = 0;
  };
  std::map<int, OfNumber> numbers;  // of the catalogue
  explicit Sums(const std::vector<Result>& results);
};

// `chosen`: how many were to be tried.
std::string as_json(const std::vector<Result>& results, size_t chosen, const Texts& sources);

// The same as a picture: what killed them, and for each number of the catalogue how many were planted, killed, and noticed by allclose.
std::string as_picture(const std::vector<Result>& results);

}  // namespace kw::tool
