// Planted bugs: small edits in device code, kept as data in testing/mutants, and how they are put into a copy of the sources.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace kw::tool {

using Texts = std::map<std::string, std::string>;  // device code by path ("kw/device/row.cuh")

struct Edit {
  std::string file, find, put;
  size_t at = std::string::npos;  // where; npos: at the only place where `find` is
};

struct Mutant {
  std::string name;  // "eps-forgotten", of a rule "no-barrier:row.cuh.2"
  int number = 0;    // of the catalogue; 0: a legal variant, which has to pass
  std::string origin =
      "author";          // "rule": made mechanically; or what its file says, like "stranger": somebody who has not seen the checker
  std::string kernel;    // part of the expressions of the kernels that it concerns; "" for all that contain the file
  std::string sentence;  // what is wrong with it
  std::string reason;    // why the checker cannot see it, if it is known that it cannot
  std::vector<Edit> edits;
  bool legal() const { return number == 0; }
};

// Reads every .txt of `folder`. A file holds mutants and rules, one after the other (# begins a comment line):
//
//   bug NAME NUMBER [KERNEL]       or  legal NAME [KERNEL]   or  rule NAME NUMBER
//   says what is wrong
//   limit REASON                   why the checker here cannot see it: told with the survivors, among which it counts like any other
//   in kw/device/reduce.cuh        a rule: part of the path, or "all"
//   - a line to be found           several make one text; a rule: a regular expression within a line
//   + what to put in its place     a rule: with $1, $2
//   skip ORDINAL reason            a rule: this place of this file (after `in`) gives the same program; the reason is the proof
//
// and further in, - and + for further edits. `origin WORD` says who wrote all that follows in the file. Rules make one mutant of every
// place in `texts` that the emulator compiles; of one catalogue number they keep at most `share` of all, evenly spread, so that no kind of
// bug makes the result alone. Throws Usage for a file that cannot be understood. Edits that do not fit the sources any more are told in
// `misfits`; when `texts` is not `complete`, those of files that are not in it are left out silently.
std::vector<Mutant> read_mutants(const std::string& folder, const Texts& texts, bool complete, double share,
                                 std::vector<std::string>& misfits);

// The sources with the mutant's edits.
Texts planted(const Mutant& mutant, const Texts& texts);

// Its edits as lines "file:12" "- before" "+ after".
std::string diff_of(const Mutant& mutant, const Texts& texts);

}  // namespace kw::tool
