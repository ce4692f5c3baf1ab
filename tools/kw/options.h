// The command line's own small argument parser, because a bare machine has no other.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace kw::tool {

struct Usage {  // thrown for a command line that makes no sense: the sentence, exit status 2
  std::string sentence;
};

struct Option {
  const char* name;   // "--arg"
  const char* value;  // what it takes, for the help text: "NAME=VALUE"; null for a switch
  const char* help;
};

class Options {
 public:
  // `words` behind the verb. An option's value is the next word, or what follows '='. "--" ends the options.
  Options(const std::vector<std::string>& words, const std::vector<Option>& known);

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::vector<std::string> all(const std::string& name) const;
  std::string get(const std::string& name, const std::string& otherwise = "") const;  // throws Usage when given twice
  long long whole(const std::string& name, long long otherwise, long long least, long long most) const;
  double number(const std::string& name, double otherwise, double least, double most) const;
  const std::vector<std::string>& words() const { return words_; }  // what is no option
  size_t own_words() const { return own_words_; }                   // of these, how many stand before "--"

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> words_;
  size_t own_words_ = 0;
};

}  // namespace kw::tool
