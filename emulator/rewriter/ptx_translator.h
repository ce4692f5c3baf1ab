// The translator's state and its small steps; ptx_instructions.cpp has the instructions.
#pragma once
#include <cctype>
#include <cstring>
#include <map>
#include <set>

#include "emulator/rewriter/ptx.h"

namespace kwemu::ptx {
using Words = std::vector<std::string>;
inline const std::map<std::string, const char*> kTypes = {{"b8", "unsigned char"},
                                                          {"u8", "unsigned char"},
                                                          {"s8", "signed char"},
                                                          {"b16", "unsigned short"},
                                                          {"u16", "unsigned short"},
                                                          {"s16", "short"},
                                                          {"b32", "unsigned"},
                                                          {"u32", "unsigned"},
                                                          {"s32", "int"},
                                                          {"b64", "unsigned long long"},
                                                          {"u64", "unsigned long long"},
                                                          {"s64", "long long"},
                                                          {"f32", "float"},
                                                          {"f64", "double"},
                                                          {"pred", "bool"},
                                                          {"f16", "kwemu_f16"},
                                                          {"f16x2", "kwemu_f16x2"},
                                                          {"bf16", "kwemu_bf16"},
                                                          {"bf16x2", "kwemu_bf16x2"}};
inline const std::map<std::string, const char*> kSpecial = {{"%laneid", "kwemu_laneid()"},
                                                            {"%warpid", "kwemu_ptx_warpid()"},
                                                            {"%nwarpid", "64u"},
                                                            {"%smid", "(kwemu_blockIdx().x % 4u)"},
                                                            {"%nsmid", "4u"},
                                                            {"%clock", "(unsigned)kwemu_clock()"},
                                                            {"%clock64", "(unsigned long long)kwemu_clock()"},
                                                            {"%globaltimer", "(unsigned long long)kwemu_clock()"},
                                                            {"%lanemask_eq", "(1u << kwemu_laneid())"},
                                                            {"%lanemask_lt", "((1u << kwemu_laneid()) - 1)"},
                                                            {"%lanemask_le", "(((1u << kwemu_laneid()) - 1) | 1u << kwemu_laneid())"},
                                                            {"%lanemask_gt", "~(((1u << kwemu_laneid()) - 1) | 1u << kwemu_laneid())"},
                                                            {"%lanemask_ge", "~((1u << kwemu_laneid()) - 1)"},
                                                            {"%cluster_ctarank", "kwemu_cluster_rank()"},
                                                            {"%cluster_nctarank", "kwemu_cluster_size()"},
                                                            {"WARP_SZ", "32u"}};
inline const std::map<std::string, const char*> kVectors = {
    {"%tid", "kwemu_threadIdx()"}, {"%ntid", "kwemu_blockDim()"}, {"%ctaid", "kwemu_blockIdx()"}, {"%nctaid", "kwemu_gridDim()"}};

inline std::string trimmed(const std::string& s) {
  size_t a = s.find_first_not_of(" \t\r\n"), b = s.find_last_not_of(" \t\r\n");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}
inline Words split(const std::string& s, char at) {  // not within braces, brackets or parentheses
  Words parts(1);
  int depth = 0;
  for (char c : s) {
    depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
    if (c == at && !depth)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (auto& p : parts) p = trimmed(p);
  return parts;
}

class Translator {
 public:
  explicit Translator(const InlineAsm& code) : code_(code) {}
  std::string missing;
  std::string run() {
    for (size_t i = 0; i < code_.operands.size(); i++)
      out_ += std::string(i < code_.outputs ? "auto& " : "auto ") + "kwemu_a" + std::to_string(i) + " = (" + code_.operands[i].expression +
              "); ";
    std::string body;
    std::swap(body, out_);
    for (auto& statement : statements(without_comments(code_.text))) one(statement);
    std::string labels;
    for (auto& l : labels_) labels += (labels.empty() ? "__label__ " : ", ") + l;
    if (!labels.empty()) labels += "; ";
    return "do { " + labels + body + registers_ + out_ + "} while (0)";
  }

 private:
  static std::string without_comments(std::string s) {
    for (const auto& [open, close] : {std::pair{"//", "\n"}, std::pair{"/*", "*/"}})
      for (size_t at; (at = s.find(open)) != std::string::npos;) {
        size_t end = s.find(close, at);
        s.erase(at, end == std::string::npos ? end : end + (close[0] == '*' ? 2 : 0) - at);
      }
    return s;
  }
  static Words statements(const std::string& text) {  // a brace that opens a statement opens a scope, which is nothing here
    Words list;
    std::string now;
    int depth = 0;
    for (char c : text) {
      bool fresh = trimmed(now).empty();
      if (!depth && fresh && (c == '{' || c == '}')) continue;
      depth += (c == '{') - (c == '}');
      if (c == ';' || (c == ':' && !depth && now.find_first_of("[.{,") == std::string::npos)) {
        list.push_back(trimmed(now) + (c == ':' ? ":" : ""));
        now.clear();
      } else {
        now += c;
      }
    }
    if (!trimmed(now).empty()) list.push_back(trimmed(now));
    return list;
  }
  void lack(const std::string& what) {
    if (missing.empty()) missing = what;
  }
  static std::string identifier(const std::string& name) {
    std::string r = "kwemu_r_";
    for (char c : name) r += isalnum((unsigned char)c) ? c : '_';
    return r;
  }
  void declare(const std::string& rest) {  // ".reg .b32 a, b<4>"
    for (auto& name : split(rest.substr(type_end(rest)), ',')) {
      size_t many = name.find('<');
      int count = many == std::string::npos ? -1 : atoi(name.c_str() + many + 1);
      std::string base = name.substr(0, many);
      for (int i = 0; i < (count < 0 ? 1 : count); i++) {
        std::string full = count < 0 ? base : base + std::to_string(i);
        if (known_.insert(full).second) registers_ += "unsigned long long " + identifier(full) + " = 0; (void)" + identifier(full) + "; ";
      }
    }
  }
  static size_t type_end(const std::string& rest) {  // behind ".reg .type"
    size_t dot = rest.find('.', rest.find(".reg") + 4);
    size_t end = dot == std::string::npos ? rest.size() : rest.find_first_of(" \t", dot);
    return end == std::string::npos ? rest.size() : end;
  }

  std::string place(const std::string& operand) {  // of a register or an argument: an lvalue
    if (operand.size() > 1 && operand[0] == '%' && (isdigit((unsigned char)operand[1]) || operand[1] == '[')) {
      if (operand[1] != '[') return "kwemu_a" + std::to_string(atoi(operand.c_str() + 1));
      for (size_t i = 0; i < code_.operands.size(); i++)
        if ("%[" + code_.operands[i].name + "]" == operand) return "kwemu_a" + std::to_string(i);
    }
    if (known_.count(operand)) return identifier(operand);
    lack("operand " + operand);
    return "0";
  }
  std::string value(std::string operand, const std::string& type) {
    if (!operand.empty() && operand[0] == '!') return "!" + value(trimmed(operand.substr(1)), type);
    if (operand.compare(0, 2, "%%") == 0) operand.erase(0, 1);
    if (auto s = kSpecial.find(operand); s != kSpecial.end()) return std::string("(") + type + ")" + s->second;
    size_t dot = operand.find('.');
    if (dot != std::string::npos)
      if (auto v = kVectors.find(operand.substr(0, dot)); v != kVectors.end()) return v->second + operand.substr(dot);
    bool number = isdigit((unsigned char)operand[0]) || (operand[0] == '-' && operand.size() > 1);
    if (number) {
      if (operand.size() > 2 && operand[0] == '0' && (operand[1] == 'f' || operand[1] == 'F'))
        return "__builtin_bit_cast(float, 0x" + operand.substr(2) + "u)";
      if (operand.size() > 2 && operand[0] == '0' && (operand[1] == 'd' || operand[1] == 'D'))
        return "__builtin_bit_cast(double, 0x" + operand.substr(2) + "ull)";
      if (operand.back() == 'U') operand.pop_back();
      return "(" + type + ")(" + operand + ")";
    }
    return "kwemu_get<" + type + ">(" + place(operand) + ")";
  }
  void put(const std::string& operand, const std::string& type, const std::string& what) {
    if (operand == "_") return void(out_ += "(void)(" + what + "); ");
    out_ += "kwemu_put<" + type + ">(" + place(operand) + ", " + what + "); ";
  }
  // "[%1 + 16]" in a state space
  std::string address(const std::string& operand, bool shared) {
    if (operand.size() < 3 || operand[0] != '[') return lack("address " + operand), "nullptr";
    Words parts = split(operand.substr(1, operand.size() - 2), '+');
    std::string at = (shared ? "kwemu_shared_address(" : "(char*)(") + value(parts[0], "unsigned long long") + ")";
    return parts.size() > 1 ? "(" + at + " + " + parts[1] + ")" : at;
  }

  void one(std::string s) {
    if (s.empty()) return;
    if (s.compare(0, 5, ".reg ") == 0 || s.compare(0, 5, ".reg\t") == 0) return declare(s);
    if (s.back() == ':') {
      labels_.insert(identifier(s.substr(0, s.size() - 1)));
      out_ += identifier(s.substr(0, s.size() - 1)) + ": ; ";
      return;
    }
    std::string guard;
    if (s[0] == '@') {
      size_t end = s.find_first_of(" \t");
      guard = s.substr(1, end - 1);
      s = trimmed(s.substr(end == std::string::npos ? s.size() : end));
      out_ += "if (" + value(guard, "bool") + ") { ";
    }
    size_t space = s.find_first_of(" \t");
    std::string name = s.substr(0, space);
    Words parts = split(name, '.'), operands;
    if (space != std::string::npos) operands = split(s.substr(space), ',');
    if (!instruction(parts, operands)) lack("instruction " + name);
    if (!guard.empty()) out_ += "} ";
  }
  static bool has(const Words& parts, const char* word) {
    for (size_t i = 1; i < parts.size(); i++)
      if (parts[i] == word) return true;
    return false;
  }
  static std::string type_of(const Words& parts, int skip = 0) {  // the last type of the name, or one before it
    for (size_t i = parts.size(); i-- > 1;)
      if (auto t = kTypes.find(parts[i]); t != kTypes.end() && !skip--) return t->second;
    return "";
  }

  bool instruction(const Words& p, const Words& o);
  bool memory(const Words& p, const Words& o, const std::string& type, bool shared);
  bool pack(const Words& o, const std::string& part);
  bool unpack(const Words& o, const std::string& part);
  bool compare(const Words& p, const Words& o, const std::string& type);
  bool convert(const Words& p, const Words& o);
  bool threads(const Words& p, const Words& o, const std::string& type, bool shared);
  bool atomic(const Words& p, const Words& o, const std::string& type, bool shared);
  bool matrix_product(const Words& p, const Words& o);  // mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32

  const InlineAsm& code_;
  std::string out_, registers_;
  std::set<std::string> known_, labels_;
};
}  // namespace kwemu::ptx
