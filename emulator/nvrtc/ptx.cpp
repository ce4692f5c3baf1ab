#include "emulator/nvrtc/ptx.h"

#include <cctype>
#include <cstring>
#include <map>
#include <set>

namespace kwemu {
namespace {
using Words = std::vector<std::string>;
const std::map<std::string, const char*> kTypes = {{"b8", "unsigned char"},
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
// Operations whose operands and result all have the instruction's type; the number of operands behind the result.
const std::map<std::string, int> kPlain = {{"add", 2},  {"sub", 2}, {"div", 2}, {"rem", 2},  {"min", 2},  {"max", 2},  {"and", 2},
                                           {"or", 2},   {"xor", 2}, {"not", 1}, {"neg", 1},  {"abs", 1},  {"sqrt", 1}, {"rsqrt", 1},
                                           {"rcp", 1},  {"ex2", 1}, {"lg2", 1}, {"sin", 1},  {"cos", 1},  {"tanh", 1}, {"copysign", 2},
                                           {"brev", 1}, {"fma", 3}, {"mov", 1}, {"cvta", 1}, {"cnot", 1}, {"prmt", 3}, {"sad", 3}};
const std::map<std::string, const char*> kSpecial = {{"%laneid", "kwemu_laneid()"},
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
const std::map<std::string, const char*> kVectors = {
    {"%tid", "kwemu_threadIdx()"}, {"%ntid", "kwemu_blockDim()"}, {"%ctaid", "kwemu_blockIdx()"}, {"%nctaid", "kwemu_gridDim()"}};

std::string trimmed(const std::string& s) {
  size_t a = s.find_first_not_of(" \t\r\n"), b = s.find_last_not_of(" \t\r\n");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}
Words split(const std::string& s, char at) {  // not within braces, brackets or parentheses
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

  bool instruction(const Words& p, const Words& o) {
    const std::string& op = p[0];
    const std::string type = type_of(p);
    const bool shared = has(p, "shared") || has(p, "shared::cta");
    if (op == "ld" || op == "ldu" || op == "st") return memory(p, o, type, shared);
    if (op == "mov" && type == "unsigned long long" && o.size() == 2 && o[1][0] == '{') return pack(o, "unsigned");
    if (op == "mov" && type == "unsigned" && o.size() == 2 && o[1][0] == '{') return pack(o, "unsigned short");
    if (op == "mov" && o.size() == 2 && o[0][0] == '{') return unpack(o, type == "unsigned" ? "unsigned short" : "unsigned");
    if (op == "cvta" && (shared || has(p, "to"))) {
      if (o.size() != 2) return false;
      std::string v = value(o[1], "unsigned long long");
      bool to_shared = shared && has(p, "to");
      put(o[0], "unsigned long long",
          !shared     ? v
          : to_shared ? "kwemu_shared_offset((void*)" + v + ")"
                      : "(unsigned long long)kwemu_shared_address(" + v + ")");
      return true;
    }
    if (auto plain = kPlain.find(op); plain != kPlain.end() && !type.empty()) {
      if (o.size() != (size_t)plain->second + 1) return false;
      std::string call = "kwemu_ptx_" + op + "<" + type + ">(";
      for (size_t i = 1; i < o.size(); i++) call += (i > 1 ? ", " : "") + value(o[i], type);
      put(o[0], type, has(p, "sat") ? "kwemu_ptx_sat(" + call + "))" : call + ")");
      return true;
    }
    if (op == "mul" || op == "mad") {
      const bool wide = has(p, "wide"), high = has(p, "hi");
      const std::string result = wide ? "kwemu_wide<" + type + ">" : type;
      std::string v = std::string("kwemu_ptx_mul_") +
                      (wide   ? "wide"
                       : high ? "hi"
                              : "lo") +
                      "<" + type + ">(" + value(o[1], type) + ", " + value(o[2], type) + ")";
      if (op == "mad") v = "kwemu_ptx_add<" + result + ">(" + v + ", " + value(o[3], result) + ")";
      return type.empty() ? false : (put(o[0], result, v), true);
    }
    if (op == "shl" || op == "shr")
      return put(o[0], type, "kwemu_ptx_" + op + "<" + type + ">(" + value(o[1], type) + ", " + value(o[2], "unsigned") + ")"), true;
    if (op == "shf")
      return put(o[0], type,
                 std::string("__funnelshift_") + (has(p, "l") ? "l" : "r") + (has(p, "clamp") ? "c(" : "(") + value(o[1], type) + ", " +
                     value(o[2], type) + ", " + value(o[3], type) + ")"),
             true;
    if (op == "popc" || op == "clz") return put(o[0], "unsigned", "kwemu_ptx_" + op + "<" + type + ">(" + value(o[1], type) + ")"), true;
    if (op == "bfe" || op == "bfi") {
      std::string call = "kwemu_ptx_" + op + "<" + type + ">(";
      for (size_t i = 1; i < o.size(); i++) call += (i > 1 ? ", " : "") + value(o[i], i + 2 >= o.size() ? "unsigned" : type);
      return put(o[0], type, call + ")"), true;
    }
    if (op == "lop3")
      return put(o[0], "unsigned",
                 "kwemu_ptx_lop3(" + value(o[1], type) + ", " + value(o[2], type) + ", " + value(o[3], type) + ", " +
                     value(o[4], "unsigned") + ")"),
             true;
    if (op == "dp4a") {
      const std::string t = type_of(p);
      return put(o[0], t, "__dp4a(" + value(o[1], t) + ", " + value(o[2], t) + ", " + value(o[3], t) + ")"), true;
    }
    if (op == "selp") return put(o[0], type, value(o[3], "bool") + " ? " + value(o[1], type) + " : " + value(o[2], type)), true;
    if (op == "setp" || op == "set") return compare(p, o, type);
    if (op == "cvt") return convert(p, o);
    return threads(p, o, type, shared);
  }

  bool memory(const Words& p, const Words& o, const std::string& type, bool shared) {
    const bool load = p[0] != "st";
    if (o.size() != 2 || type.empty()) return false;
    const std::string count = has(p, "v4") ? "4" : has(p, "v2") ? "2" : "1";
    const bool strong = has(p, "volatile") || has(p, "relaxed") || has(p, "acquire") || has(p, "release");
    const std::string what = "kwemu_vec<" + type + ", " + count + ">";
    const std::string& place = load ? o[1] : o[0];
    Words elements = {load ? o[0] : o[1]};
    if (count != "1") {
      if (elements[0].size() < 3 || elements[0][0] != '{') return false;
      elements = split(elements[0].substr(1, elements[0].size() - 2), ',');
      if (elements.size() != (size_t)atoi(count.c_str())) return false;
    }
    out_ += "{ ";
    if (load) {
      out_ += (strong ? "auto v = kwemu_load_strong<" : "auto v = *(const ") + what + (strong ? ">(" : "*)") + address(place, shared) +
              (strong ? "); " : "; ");
      if (has(p, "acquire")) out_ += "kwemu_fence(); ";
      for (size_t i = 0; i < elements.size(); i++) put(elements[i], type, "v.e[" + std::to_string(i) + "]");
    } else {
      if (has(p, "release")) out_ += "kwemu_fence(); ";
      out_ += what + " v = {{";
      for (size_t i = 0; i < elements.size(); i++) out_ += (i ? ", " : "") + value(elements[i], type);
      out_ += "}}; " +
              (strong ? "kwemu_store_strong(" + address(place, shared) + ", v); " : "*(" + what + "*)" + address(place, shared) + " = v; ");
    }
    out_ += "} ";
    return true;
  }
  bool pack(const Words& o, const std::string& part) {
    Words e = split(o[1].substr(1, o[1].size() - 2), ',');
    const int bits = part == "unsigned" ? 32 : 16;
    if (e.size() != 2) return false;
    put(o[0], bits == 32 ? "unsigned long long" : "unsigned",
        "(unsigned long long)" + value(e[0], part) + " | (unsigned long long)" + value(e[1], part) + " << " + std::to_string(bits));
    return true;
  }
  bool unpack(const Words& o, const std::string& part) {
    Words e = split(o[0].substr(1, o[0].size() - 2), ',');
    if (e.size() != 2) return false;
    out_ += "{ unsigned long long v = " + value(o[1], "unsigned long long") + "; ";
    put(e[0], part, "(" + part + ")v");
    put(e[1], part, "(" + part + ")(v >> " + (part == "unsigned" ? "32" : "16") + ")");
    out_ += "} ";
    return true;
  }
  bool compare(const Words& p, const Words& o, const std::string& type) {
    static const std::map<std::string, const char*> signs = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"},  {"le", "<="}, {"gt", ">"},
                                                             {"ge", ">="}, {"lo", "<"},  {"ls", "<="}, {"hi", ">"},  {"hs", ">="}};
    auto sign = p.size() > 1 ? signs.find(p[1]) : signs.end();
    if (sign == signs.end() || o.size() < 3 || type.empty()) return false;
    std::string v = value(o[1], type) + " " + sign->second + " " + value(o[2], type);
    if (o.size() > 3) {
      if (!has(p, "and") && !has(p, "or")) return false;
      v = "(" + v + ") " + (has(p, "and") ? "&& " : "|| ") + value(o[3], "bool");
    }
    Words results = split(o[0], '|');
    put(results[0], p[0] == "set" ? "int" : "bool", p[0] == "set" ? "-(int)(" + v + ")" : v);
    if (results.size() > 1) put(results[1], "bool", "!(" + v + ")");
    return true;
  }
  bool convert(const Words& p, const Words& o) {
    const std::string to = type_of(p, 1), from = type_of(p);
    const std::string mode = has(p, "rzi") || has(p, "rz")   ? "kwemu_rz"
                             : has(p, "rmi") || has(p, "rm") ? "kwemu_rd"
                             : has(p, "rpi") || has(p, "rp") ? "kwemu_ru"
                                                             : "kwemu_rn";
    if (to.empty() || from.empty()) return false;
    if (o.size() == 3)
      put(o[0], "unsigned", "kwemu_ptx_pack<" + to + ">(" + value(o[1], from) + ", " + value(o[2], from) + ")");
    else
      put(o[0], to,
          "kwemu_ptx_cvt<" + to + ", " + from + ">(" + value(o[1], from) + ", " + mode + ", " + (has(p, "sat") ? "true" : "false") + ")");
    return true;
  }

  // What threads do together, and copies.
  bool threads(const Words& p, const Words& o, const std::string& type, bool shared) {
    const std::string& op = p[0];
    if (op == "bar" || op == "barrier") {
      if (has(p, "cluster")) return out_ += has(p, "arrive") ? "" : "kwemu_cluster_barrier(); ", true;
      if (has(p, "warp")) return out_ += "__syncwarp(" + value(o[0], "unsigned") + "); ", true;
      return o.size() == 1 && has(p, "sync") && o[0] == "0" ? (out_ += "kwemu_block_barrier(); ", true) : false;
    }
    if (op == "membar" || op == "fence") return out_ += has(p, "proxy") ? "kwemu_fence_proxy(); " : "kwemu_fence(); ", true;
    if (op == "prefetch" || op == "prefetchu" || op == "discard" || op == "applypriority" || op == "griddepcontrol" || op == "nanosleep" ||
        op == "pmevent")
      return true;
    if (op == "trap") return out_ += "kwemu_trap(); ", true;
    if (op == "exit") return out_ += "return; ", true;
    if (op == "bra") {
      labels_.insert(identifier(o[0]));
      return out_ += "goto " + identifier(o[0]) + "; ", true;
    }
    if (op == "activemask") return put(o[0], "unsigned", "kwemu_active_mask()"), true;
    if (op == "shfl") {
      Words results = split(o[0], '|');
      const char* mode = has(p, "up") ? "0" : has(p, "down") ? "1" : has(p, "bfly") ? "2" : "3";
      out_ += "{ bool inside; unsigned v = kwemu_ptx_shfl(" + std::string(mode) + ", " + value(o[1], "unsigned") + ", " +
              value(o[2], "unsigned") + ", " + value(o[3], "unsigned") + ", " + (o.size() > 4 ? value(o[4], "unsigned") : "~0u") +
              ", inside); ";
      put(results[0], "unsigned", "v");
      if (results.size() > 1) put(results[1], "bool", "inside");
      return out_ += "} ", true;
    }
    if (op == "vote") {
      const std::string mask = o.size() > 2 ? value(o[2], "unsigned") : "~0u", v = "(" + mask + ", " + value(o[1], "bool") + ")";
      if (has(p, "ballot")) return put(o[0], "unsigned", "__ballot_sync" + v), true;
      if (has(p, "any") || has(p, "all")) return put(o[0], "bool", std::string(has(p, "any") ? "__any_sync" : "__all_sync") + v), true;
      return false;
    }
    if (op == "red" || op == "atom") return atomic(p, o, type, shared);
    if (op == "cp" && has(p, "async") && !has(p, "bulk") && !has(p, "mbarrier")) {
      if (has(p, "commit_group")) return out_ += "kwemu_cp_async_commit(); ", true;
      if (has(p, "wait_group")) return out_ += "kwemu_cp_async_wait(" + value(o[0], "unsigned") + "); ", true;
      if (has(p, "wait_all")) return out_ += "kwemu_cp_async_commit(); kwemu_cp_async_wait(0); ", true;
      if (o.size() < 3) return false;
      const std::string bytes = value(o[2], "unsigned");
      return out_ += "kwemu_cp_async(" + address(o[0], true) + ", " + address(o[1], false) + ", " + bytes + ", " +
                     (o.size() > 3 && o[3][0] != '[' ? value(o[3], "unsigned") : bytes) + "); ",
             true;
    }
    if (op == "ldmatrix") {
      Words e = split(o[0].substr(o[0][0] == '{', o[0].size() - 2 * (o[0][0] == '{')), ',');
      out_ += "{ unsigned v[4]; kwemu_ldmatrix(" + address(o[1], true) + ", " + std::to_string(e.size()) + ", " +
              (has(p, "trans") ? "true" : "false") + ", v); ";
      for (size_t i = 0; i < e.size(); i++) put(e[i], "unsigned", "v[" + std::to_string(i) + "]");
      return has(p, "b16") && e.size() <= 4 ? (out_ += "} ", true) : false;
    }
    if (op == "mma") return matrix_product(p, o);
    return false;
  }
  bool atomic(const Words& p, const Words& o, const std::string& type, bool shared) {
    static const std::map<std::string, const char*> kinds = {
        {"u32", "unsigned"},           {"b32", "unsigned"},  {"s32", "int"},   {"u64", "unsigned long long"},
        {"b64", "unsigned long long"}, {"s64", "long long"}, {"f32", "float"}, {"f64", "double"}};
    static const std::map<std::string, const char*> names = {
        {"add", "atomicAdd"}, {"min", "atomicMin"}, {"max", "atomicMax"}, {"exch", "atomicExch"}, {"and", "atomicAnd"},
        {"or", "atomicOr"},   {"xor", "atomicXor"}, {"inc", "atomicInc"}, {"dec", "atomicDec"},   {"cas", "atomicCAS"}};
    const char* name = nullptr;
    for (size_t i = 1; i < p.size(); i++)
      if (auto n = names.find(p[i]); n != names.end()) name = n->second;
    if (!name || !kinds.count(p.back()) || has(p, "v2") || has(p, "v4")) return false;
    const size_t at = p[0] == "atom";
    std::string call = std::string(name) + "((" + type + "*)" + address(o[at], shared);
    for (size_t i = at + 1; i < o.size(); i++) call += ", " + value(o[i], type);
    if (has(p, "release") || has(p, "acq_rel")) out_ += "kwemu_fence(); ";
    if (at)
      put(o[0], type, call + ")");
    else
      out_ += call + "); ";
    if (has(p, "acquire") || has(p, "acq_rel")) out_ += "kwemu_fence(); ";
    return true;
  }
  bool matrix_product(const Words& p, const Words& o) {  // mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    if (p.size() < 10 || o.size() != 4 || p[4] != "row" || p[5] != "col") return false;
    const std::string shape = p[3], d = p[6], a = p[7], b = p[8], c = p[9];
    const bool half = (shape == "m16n8k16" || shape == "m16n8k8") && a == b && (a == "f16" || a == "bf16") && d == c &&
                      (d == "f32" || (d == "f16" && a == "f16"));
    const bool tf32 = (shape == "m16n8k8" || shape == "m16n8k4") && a == "tf32" && b == "tf32" && d == "f32" && c == "f32";
    if (!half && !tf32) return false;
    out_ += "{ ";
    const char* names[] = {"d", "a", "b", "c"};
    Words elements[4];
    for (int i = 0; i < 4; i++) elements[i] = split(o[i].substr(1, o[i].size() - 2), ',');
    for (int i = 1; i < 4; i++) {
      out_ += std::string("unsigned ") + names[i] + "[] = {";
      for (size_t k = 0; k < elements[i].size(); k++) out_ += (k ? ", " : "") + value(elements[i][k], "unsigned");
      out_ += "}; ";
    }
    const std::string k = shape.substr(shape.find('k') + 1);
    out_ += "unsigned d[4]; kwemu_mma(" + k + ", " +
            (a == "f16"    ? "0"
             : a == "bf16" ? "1"
                           : "2") +
            ", " + (d == "f32" ? "true" : "false") + ", a, b, c, d); ";
    for (size_t i = 0; i < elements[0].size(); i++) put(elements[0][i], "unsigned", "d[" + std::to_string(i) + "]");
    return out_ += "} ", true;
  }

  const InlineAsm& code_;
  std::string out_, registers_;
  std::set<std::string> known_, labels_;
};
}  // namespace

std::string translate_ptx(const InlineAsm& code, std::string& missing) {
  Translator t(code);
  std::string text = t.run();
  missing = t.missing;
  return text;
}
bool is_host_assembly(const std::string& text) {
  std::string s = trimmed(text);
  if (s.empty()) return true;
  for (const char* word :
       {"rdtsc", "cpuid", "mfence", "lfence", "sfence", "pause", "nop", "lock", "xchg", "bswap", "rep", "mrc", "mrs", "movq", "movl"})
    if (s.compare(0, strlen(word), word) == 0) return true;
  return false;
}
}  // namespace kwemu
