#include "tools/kw/mutants.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "kw/core/error.h"
#include "tools/kw/options.h"

namespace kw::tool {
namespace {

struct Rule {
  Mutant like;
  std::string within;  // part of a path
  std::regex find;
  std::string put;
  std::map<std::pair<std::string, int>, std::string> skip;  // by file's name and ordinal
};

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Where `find` is in the file; npos and a sentence in `why` when it is not there, or not once.
size_t place_of(const Edit& edit, const Texts& texts, std::string& why) {
  const auto file = texts.find(edit.file);
  if (file == texts.end()) return why = "no kernel is made of " + edit.file, std::string::npos;
  if (edit.at != std::string::npos) return edit.at;
  const size_t at = file->second.find(edit.find);
  if (at == std::string::npos) return why = edit.file + " does not hold: " + edit.find, at;
  if (file->second.find(edit.find, at + 1) != std::string::npos) return why = edit.file + " holds more than once: " + edit.find, at;
  return at;
}

// Which lines the emulator compiles and are code: what is said for real GPUs only, and comments, cannot be mutated here.
class LiveLines {
 public:
  // How much of the line counts.
  size_t of(const std::string& line) {
    const size_t start = line.find_first_not_of(' ');
    if (start != std::string::npos && line[start] == '#') {
      if (line.starts_with("#if")) {
        const bool gpu_only = line.find("!defined(KW_EMULATED)") != line.npos;
        states_.push_back(gpu_only ? 0 : 1);
        switches_.push_back(gpu_only || line == "#ifdef KW_EMULATED" || line == "#ifdef __CUDACC_RTC__");
      } else if (line.starts_with("#else") && switches_.back()) {
        states_.back() = 1 - states_.back();
      } else if (line.starts_with("#endif")) {
        states_.pop_back(), switches_.pop_back();
      }
      return 0;
    }
    if (std::count(states_.begin(), states_.end(), 0)) return 0;
    return std::min(line.find("//"), line.size());
  }

 private:
  std::vector<int> states_;
  std::vector<bool> switches_;
};

void apply(const Rule& rule, const Texts& texts, std::vector<Mutant>& out) {
  for (const auto& [path, text] : texts) {
    if (rule.within != "all" && path.find(rule.within) == path.npos) continue;
    LiveLines live;
    std::string kernel;
    int ordinal = 0;
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      const std::string whole = text.substr(begin, end - begin), line = whole.substr(0, live.of(whole));
      if (whole == "}") kernel.clear();
      std::smatch name;
      if (std::regex_search(whole, name, std::regex("__global__.* (\\w+)\\("))) kernel = name[1];
      for (std::sregex_iterator at(line.begin(), line.end(), rule.find), none; at != none; ++at) {
        ordinal++;
        if (rule.skip.count({name_of(path), ordinal})) continue;
        Mutant m = rule.like;
        m.origin = "rule";
        m.name += format(":%s.%d", name_of(path).c_str(), ordinal);
        if (!kernel.empty()) m.kernel = "::" + kernel + "<";
        m.edits.push_back({path, at->str(), at->format(rule.put), begin + static_cast<size_t>(at->position())});
        out.push_back(std::move(m));
      }
    }
  }
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::ifstream in(path);
    if (!in) throw Usage{"cannot read " + path};
    for (std::string line; std::getline(in, line);) {
      number_++;
      if (!line.empty() && line[0] != '#') understand(line);
    }
    close();
  }
  std::vector<Mutant> mutants;
  std::vector<Rule> rules;

 private:
  [[noreturn]] void wrong(const std::string& why) { throw Usage{format("%s:%d: %s", path_.c_str(), number_, why.c_str())}; }

  void understand(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string word = line.substr(0, space), rest = space == line.npos ? "" : line.substr(space + 1);
    if (word == "origin") {
      close();
      origin_ = rest;
    } else if (word == "bug" || word == "legal" || word == "rule") {
      close();
      std::istringstream words(rest);
      words >> now_.name;
      if (word != "legal" && (!(words >> now_.number) || now_.number < 1)) wrong("a " + word + " needs a number of the catalogue");
      words >> std::ws;
      std::getline(words, now_.kernel);
      is_rule_ = word == "rule", open_ = true;
    } else if (!open_) {
      wrong("a mutant begins with bug, legal or rule");
    } else if (word == "says") {
      now_.sentence = rest;
    } else if (word == "limit") {
      now_.reason = rest;
    } else if (word == "in") {
      file_ = rest;
    } else if (word == "skip" && is_rule_) {
      const size_t end = rest.find(' ');
      if (end == rest.npos) wrong("skip needs an ordinal and the reason why that place gives the same program");
      skip_[{file_, std::atoi(rest.c_str())}] = rest.substr(end + 1);
    } else if (word == "-") {
      if (now_.edits.empty() || put_) now_.edits.push_back({file_, "", ""}), put_ = false, found_ = false;
      now_.edits.back().find += (found_ ? "\n" : "") + rest;
      found_ = true;
    } else if (word == "+") {
      if (now_.edits.empty()) wrong("+ comes after -");
      now_.edits.back().put += (put_ ? "\n" : "") + rest;
      put_ = true;
    } else {
      wrong("what is '" + word + "'? see tools/kw/mutants.h");
    }
  }

  void close() {
    if (open_ && is_rule_) {
      if (now_.edits.size() != 1) wrong("a rule has one - and one +");
      Rule rule{now_, now_.edits[0].file, std::regex(now_.edits[0].find), now_.edits[0].put, skip_};
      rule.like.edits.clear();
      rules.push_back(std::move(rule));
    } else if (open_) {
      if (now_.edits.empty() || now_.sentence.empty()) wrong(now_.name + " needs `says`, `in`, - and +");
      mutants.push_back(now_);
    }
    now_ = {}, now_.origin = origin_, skip_.clear(), open_ = put_ = found_ = false;
  }

  std::string path_, file_, origin_ = "author";
  int number_ = 0;
  Mutant now_;
  bool open_ = false, is_rule_ = false, put_ = false, found_ = false;
  std::map<std::pair<std::string, int>, std::string> skip_;
};

// At most `most` of the mechanical ones of each number, evenly spread over the places.
std::vector<Mutant> thinned(const std::vector<Mutant>& all, const std::map<int, size_t>& by_hand, size_t most) {
  std::map<int, std::vector<const Mutant*>> numbers;
  for (const Mutant& m : all) numbers[m.number].push_back(&m);
  std::vector<Mutant> out;
  for (const auto& [number, list] : numbers) {
    const auto hand = by_hand.find(number);
    const size_t used = hand == by_hand.end() ? 0 : hand->second, room = most > used ? most - used : 0, n = std::min(room, list.size());
    for (size_t i = 0; i < n; i++) out.push_back(*list[i * list.size() / n]);
  }
  return out;
}

}  // namespace

std::vector<Mutant> read_mutants(const std::string& folder, const Texts& texts, bool complete, double share,
                                 std::vector<std::string>& misfits) {
  std::error_code ignored;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path().string());
  if (paths.empty()) throw Usage{"there are no planted bugs in " + folder + ": call kw mutate in the source tree, or give --bugs"};
  std::sort(paths.begin(), paths.end());
  std::vector<Mutant> out, made;
  for (const std::string& path : paths) {
    const Reader reader(path);
    for (const Mutant& m : reader.mutants) {
      if (!std::all_of(m.edits.begin(), m.edits.end(), [&](const Edit& e) { return complete || texts.count(e.file) > 0; })) continue;
      std::string why;
      for (const Edit& e : m.edits) place_of(e, texts, why);
      if (why.empty())
        out.push_back(m);
      else
        misfits.push_back(m.name + " in " + path + ": " + why);
    }
    for (const Rule& rule : reader.rules) apply(rule, texts, made);
  }
  std::map<int, size_t> by_hand;
  size_t bugs = 0;
  for (const Mutant& m : out)
    if (!m.legal()) by_hand[m.number]++, bugs++;
  // The largest number of a kind such that it is at most `share` of all that are then left.
  size_t most = made.size();
  std::vector<Mutant> kept = made;
  while (most > 1 && static_cast<double>(most) > share * static_cast<double>(bugs + kept.size())) kept = thinned(made, by_hand, --most);
  out.insert(out.end(), kept.begin(), kept.end());
  return out;
}

Texts planted(const Mutant& mutant, const Texts& texts) {
  Texts out = texts;
  for (const Edit& edit : mutant.edits) {
    std::string why;
    const size_t at = place_of(edit, out, why);
    if (!why.empty()) throw Usage{mutant.name + ": " + why};
    out[edit.file].replace(at, edit.find.size(), edit.put);
  }
  return out;
}

std::string diff_of(const Mutant& mutant, const Texts& texts) {
  std::string out;
  for (const Edit& edit : mutant.edits) {
    std::string why;
    const std::string& text = texts.at(edit.file);
    const size_t at = place_of(edit, texts, why), end = at + edit.find.size();
    const size_t first = at ? text.rfind('\n', at - 1) + 1 : 0, last = std::min(text.find('\n', end), text.size());
    const auto lines = [&](char sign, const std::string& changed) {
      std::istringstream in(text.substr(first, at - first) + changed + text.substr(end, last - end));
      for (std::string line; std::getline(in, line);) out += std::string("    ") + sign + " " + line + "\n";
    };
    out += format("    %s:%td\n", edit.file.c_str(), std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n') + 1);
    lines('-', edit.find);
    lines('+', edit.put);
  }
  return out;
}

}  // namespace kw::tool
