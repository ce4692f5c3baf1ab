#include "tools/kw/verdicts.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kw/core/error.h"
#include "kw/runtime/library.h"
#include "kw/runtime/sha256.h"
#include "tools/kw/json.h"
#include "tools/kw/machine.h"
#include "tools/kw/options.h"

namespace kw::tool {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// This program and the emulator that it will load, as kw/runtime/driver.cpp looks for it.
std::string checker_digest() {
  Sha256 hash;
  hash.add(bytes_of("/proc/self/exe"));
  const char* given = std::getenv("KW_EMULATOR");
  if (given && *given) {
    hash.add(bytes_of(given));
  } else {
    for (const char* relative : {"/libkwemu.so", "/../libkwemu.so", "/../lib/libkwemu.so"}) hash.add(bytes_of(own_dir() + relative));
  }
  return hex(hash.finish());
}

std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' ? '\v' : c == '\t' ? ' ' : c;
  return text;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) {
    std::replace(field.begin(), field.end(), '\v', '\n');
    out.push_back(field);
  }
  return out;
}

constexpr const char* states[] = {"killed", "passed", "broken", "unused", "unfounded"};  // in the order of Verdict::State

}  // namespace

std::string Result::name_of_state() const {
  switch (verdict.state) {
    case Verdict::State::killed:
      return mutant->legal() ? "FALSE ALARM" : "killed";
    case Verdict::State::passed:
      return mutant->legal() ? "passes" : "SURVIVES";
    case Verdict::State::broken:
      return "no program";
    case Verdict::State::unfounded:
      return "UNFOUNDED";
    default:
      return "no kernel";
  }
}

bool Result::survives() const {
  return !mutant->legal() && verdict.state != Verdict::State::killed && verdict.state != Verdict::State::broken;
}

Record::Record(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::string before = bytes_of(path_);
  std::ofstream out(path_, std::ios::app);
  if (!before.empty() && before.back() != '\n') out << '\n';  // a run was stopped while it wrote
  if (!out.flush()) throw Usage{"cannot write " + path_};
  checker_ = checker_digest();
  std::istringstream in(before);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> f = fields_of(line + "\tend");  // so that empty fields at the end count
    if (f.size() != 14 || in.eof()) continue;                      // a line that was cut off
    const auto state = static_cast<size_t>(std::find(std::begin(states), std::end(states), f[2]) - std::begin(states));
    if (state == std::size(states)) continue;
    Verdict v;
    v.state = static_cast<Verdict::State>(state);
    v.thorough = f[3] == "thorough";
    v.op = f[4], v.layer = f[5], v.by = f[6], v.naive = f[7];
    v.cases = std::atoll(f[8].c_str()), v.kernels = std::atoll(f[9].c_str()), v.seconds = std::atof(f[10].c_str());
    v.sentence = f[11], v.reproduce = f[12];
    verdicts_[f[0]] = v;
  }
}

std::string Record::key(const Mutant& mutant, const Texts& sources) const {
  Sha256 hash;
  hash.add(checker_).add(mutant.name).add(mutant.kernel);
  for (const auto& [path, text] : planted(mutant, sources)) hash.add(path).add(text);
  return hex(hash.finish()).substr(0, 32);
}

const Verdict* Record::find(const Mutant& mutant, const Texts& sources, bool quick) const {
  if (path_.empty()) return nullptr;
  const auto at = verdicts_.find(key(mutant, sources));
  if (at == verdicts_.end()) return nullptr;
  const bool short_pass = at->second.state == Verdict::State::passed && !at->second.thorough;
  return short_pass && !quick ? nullptr : &at->second;
}

void Record::add(const Mutant& mutant, const Texts& sources, const Verdict& v) {
  if (path_.empty()) return;
  std::ofstream out(path_, std::ios::app);
  out << key(mutant, sources) + "\t" + mutant.name + "\t" + states[static_cast<int>(v.state)] + "\t" + (v.thorough ? "thorough" : "short") +
             "\t" + v.op + "\t" + v.layer + "\t" + v.by + "\t" + v.naive + "\t" + std::to_string(v.cases) + "\t" +
             std::to_string(v.kernels) + format("\t%.1f\t", v.seconds) + one_line(v.sentence) + "\t" + one_line(v.reproduce) + "\n";
}

Sums::Sums(const std::vector<Result>& results) {
  for (const auto& [mutant, v] : results) {
    const bool is_killed = v.state == Verdict::State::killed, seen = v.naive == "fails" || v.naive == "stops";
    broken += v.state == Verdict::State::broken, unused += v.state == Verdict::State::unused;
    if (v.state == Verdict::State::broken || (mutant->legal() && v.state == Verdict::State::unused)) continue;
    if (mutant->legal()) {
      legal++, false_alarms += is_killed;
      continue;
    }
    planted++, killed += is_killed, noticed += seen, origins[mutant->origin]++;
    OfNumber& of = numbers[mutant->number];
    of.planted++, of.killed += is_killed, of.noticed += seen;
    if (is_killed) layers[v.layer.empty() ? "start" : v.layer]++, eyes[v.by]++;
  }
}

namespace {

void write_counts(Json& json, const char* name, const std::map<std::string, long long>& counts) {
  json.key(name).open('{');
  for (const auto& [key, count] : counts) json.key(key).whole(count);
  json.close('}');
}

void write_survivors(Json& json, const std::vector<Result>& results, const Texts& sources) {
  json.key("survivors").open('[');
  for (const Result& r : results) {
    if (!r.survives()) continue;
    json.open('{').key("name").string(r.mutant->name).key("says").string(r.mutant->sentence);
    json.key("state")
        .string(r.name_of_state())
        .key("reason")
        .string(r.mutant->reason)
        .key("diff")
        .string(diff_of(*r.mutant, sources))
        .close('}');
  }
  json.close(']');
}

void write_alarms(Json& json, const std::vector<Result>& results, const Texts& sources) {
  json.key("alarms").open('[');
  for (const Result& r : results) {
    if (!r.mutant->legal() || r.verdict.state != Verdict::State::killed) continue;
    json.open('{').key("name").string(r.mutant->name).key("says").string(r.mutant->sentence).key("op").string(r.verdict.op);
    json.key("failure").string(r.verdict.sentence).key("reproduce").string(r.verdict.reproduce);
    json.key("diff").string(diff_of(*r.mutant, sources)).close('}');
  }
  json.close(']');
}

}  // namespace

std::string as_json(const std::vector<Result>& results, size_t chosen, const Texts& sources) {
  const Sums sums(results);
  Json json;
  json.open('{').key("command").string("kw mutate --device emulate").key("date").string(utc_now()).key("commit").string(git_commit());
  json.key("machine");
  write_machine(json);
  json.key("chosen").whole(static_cast<int64_t>(chosen)).key("run").whole(static_cast<int64_t>(results.size()));
  json.key("planted").whole(sums.planted).key("killed").whole(sums.killed).key("naive_allclose").whole(sums.noticed);
  json.key("legal_variants").whole(sums.legal).key("false_alarms").whole(sums.false_alarms);
  json.key("no_program").whole(sums.broken).key("no_kernel").whole(sums.unused);
  write_counts(json, "by_origin", sums.origins);
  write_counts(json, "by_layer", sums.layers);
  write_counts(json, "seen_by", sums.eyes);
  json.key("by_catalogue_number").open('{');
  for (const auto& [number, of] : sums.numbers)
    json.key(std::to_string(number))
        .open('{')
        .key("planted")
        .whole(of.planted)
        .key("killed")
        .whole(of.killed)
        .key("naive_allclose")
        .whole(of.noticed)
        .close('}');
  json.close('}');
  write_survivors(json, results, sources);
  write_alarms(json, results, sources);
  json.key("mutants").open('[');
  for (const Result& r : results) {
    const Verdict& v = r.verdict;
    json.open('{').key("name").string(r.mutant->name).key("number").whole(r.mutant->number).key("origin").string(r.mutant->origin);
    json.key("state").string(r.name_of_state()).key("layer").string(v.layer).key("seen_by").string(v.by).key("op").string(v.op);
    json.key("naive_allclose").string(v.naive).key("kernel_sets").whole(v.kernels).key("cases").whole(v.cases);
    json.key("seconds").number(v.seconds).close('}');
  }
  json.close(']').close('}');
  return json.text();
}

}  // namespace kw::tool
