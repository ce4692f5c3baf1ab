#include "tools/kw/options.h"

#include <charconv>

#include "testing/arguments.h"

namespace kw::tool {

Options::Options(const std::vector<std::string>& words, const std::vector<Option>& known) {
  std::vector<std::string> names;
  for (const Option& o : known) names.push_back(o.name);
  bool open = true;
  for (size_t i = 0; i < words.size(); i++) {
    const std::string& word = words[i];
    if (!open || word.size() < 2 || word[0] != '-') {
      words_.push_back(word);
      own_words_ += open;
      continue;
    }
    if (word == "--") {
      open = false;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Option* option = nullptr;
    for (const Option& o : known)
      if (name == o.name) option = &o;
    if (!option) throw Usage{"there is no option " + name + test::suggest(name, names)};
    if (!option->value) {
      if (equals != word.npos) throw Usage{name + " takes no value"};
      values_[name].emplace_back();
    } else if (equals != word.npos) {
      values_[name].push_back(word.substr(equals + 1));
    } else {
      if (++i == words.size()) throw Usage{name + " needs a value: " + name + " " + option->value};
      values_[name].push_back(words[i]);
    }
  }
}

std::vector<std::string> Options::all(const std::string& name) const {
  auto at = values_.find(name);
  return at == values_.end() ? std::vector<std::string>() : at->second;
}

std::string Options::get(const std::string& name, const std::string& otherwise) const {
  auto at = values_.find(name);
  if (at == values_.end()) return otherwise;
  if (at->second.size() > 1) throw Usage{name + " is given twice"};
  return at->second[0];
}

long long Options::whole(const std::string& name, long long otherwise, long long least, long long most) const {
  if (!has(name)) return otherwise;
  const std::string text = get(name);
  long long value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw Usage{name + " takes a whole number from " + std::to_string(least) + " to " + std::to_string(most)};
  return value;
}

double Options::number(const std::string& name, double otherwise, double least, double most) const {
  if (!has(name)) return otherwise;
  const std::string text = get(name);
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    throw Usage{name + format(" takes a number from %g to %g", least, most)};
  return value;
}

}  // namespace kw::tool
