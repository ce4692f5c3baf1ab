#include "emulator/nvrtc/assembly.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

namespace kwemu {
namespace {
using View = std::string_view;
bool begins(View s, View with) { return s.substr(0, with.size()) == with; }

template <class F>
void each_line(const std::string& text, F f) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    f(View(text).substr(at, end - at));
    at = end + 1;
  }
}

void replace_all(std::string& s, View from, View to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
}

// "call memcpy@PLT" -> "call kwemu_memcpy@PLT"
void redirect_memory_call(std::string& line) {
  for (View op : {"\tcall\t", "\tjmp\t"})
    for (View name : {"memcpy", "memmove", "memset"})
      if (begins(line, op) && View(line).substr(op.size(), name.size()) == name) {
        View rest = View(line).substr(op.size() + name.size());
        if (rest.empty() || rest[0] == '@') line.insert(op.size(), "kwemu_");
        return;
      }
}

// A shift by all bits or more: x86 takes the amount modulo 32 or 64, PTX gives 0 (or the sign). Nothing reads the flags behind a shift by
// a variable amount, so the comparison may change them.
std::string ptx_shift(const std::string& line) {  // "\tsall\t%cl, %eax"
  size_t comma = line.find("%cl, ");
  if (line.size() < 7 || line[0] != '\t' || line[1] != 's' || comma == std::string::npos || comma > 7) return line;
  const std::string op = line.substr(1, 3), size = line.substr(4, 1), target = line.substr(comma + 5);
  if ((op != "sal" && op != "shl" && op != "sar" && op != "shr") || (size != "l" && size != "q")) return line;
  const std::string bits = size == "l" ? "32" : "64", most = size == "l" ? "31" : "63";
  return "\tcmpb\t$" + bits + ", %cl\n\tjb\t77f\n\t" + (op == "sar" ? "sar" + size + "\t$" + most : "mov" + size + "\t$0") + ", " + target +
         "\n\tjmp\t78f\n77:" + line + "\n78:";
}

// A gap in front of every variable, so that an index past the end of one does not meet the next.
constexpr View kGap = "\t.zero\t256\n";
bool of_variables(View section) {
  for (View name : {".bss", ".data"})
    if (begins(section, name) &&
        (section.size() == name.size() || section[name.size()] == '.' || section[name.size()] == ',' || section[name.size()] == '\n'))
      return true;
  return false;
}
// "\t.comm\tname,bytes,alignment" behind "\t.local\tname", spelled out.
std::string local_variable(View line) {
  std::string name(line.substr(7, line.find(',') - 7)), rest(line.substr(line.find(',') + 1));
  std::string bytes = rest.substr(0, rest.find(',')), alignment = rest.substr(rest.find(',') + 1);
  return "\t.pushsection\t.bss\n" + std::string(kGap) + "\t.align\t" + alignment + "\n\t.type\t" + name + ", @object\n\t.size\t" + name +
         ", " + bytes + "\n" + name + ":\n\t.zero\t" + bytes + "\n\t.popsection";
}

// In "#APP\n# 12 "file.cuh" 1": the emulator's own asm comes from its headers.
std::string inline_ptx_error(View place) {
  size_t quote = place.find('"'), end = place.rfind('"');
  if (quote == View::npos || end <= quote) return "";
  std::string file(place.substr(quote + 1, end - quote - 1));
  if (file.find("kwemu_") != std::string::npos) return "";
  std::string line = std::to_string(atoi(std::string(place.substr(1)).c_str()));
  return file + ":" + line + ": error: inline assembly cannot run in the emulator; give it a C++ form under #ifdef KW_EMULATED\n";
}
}  // namespace

Assembly edit_assembly(const std::string& text, bool dynamic_shared) {
  Assembly result;
  result.text.reserve(text.size() + text.size() / 16);
  std::set<std::string> errors;
  bool in_tls = false, in_asm = false, in_variables = false;
  std::string local;  // the variable of the last .local
  each_line(text, [&](View view) {
    std::string line(view);
    if (line == "#APP") in_asm = true;
    if (in_asm && begins(line, "# ")) {
      std::string error = inline_ptx_error(line);
      if (!error.empty()) errors.insert(error);
      in_asm = false;
    }
    if (line.find("__tsan_") != std::string::npos) replace_all(line, "__tsan_", "kwemu_tsan_");
    if (line.find("__ubsan_handle_") != std::string::npos) replace_all(line, "__ubsan_handle_", "kwemu_ubsan_");
    redirect_memory_call(line);
    if (begins(line, "\t.section") || begins(line, "\t.text") || begins(line, "\t.data") || begins(line, "\t.bss"))
      in_tls = line.find(".tbss") != std::string::npos || line.find(".tdata") != std::string::npos;
    if (begins(line, "\t.section\t") || begins(line, "\t.text") || begins(line, "\t.data") || begins(line, "\t.bss"))
      in_variables = of_variables(View(line).substr(begins(line, "\t.section\t") ? 10 : 1));
    if (begins(line, "\t.local\t")) local = line.substr(8);
    if (begins(line, "\t.comm\t" + local + ",") && !local.empty()) line = local_variable(line);
    if (in_variables && begins(line, "\t.align")) result.text += kGap;
    result.text += ptx_shift(line) + "\n";
    if (in_tls && begins(line, "\t.zero")) result.text += "\t.zero\t256\n";
    if (in_tls && line.back() == ':' && line[0] != '.') {
      size_t e = line.rfind('E');
      std::string name = e == std::string::npos ? line : line.substr(e + 1);
      name.erase(0, name.find_first_not_of("0123456789"));
      result.shared_names.push_back(name.substr(0, name.find_first_of(".:")));
    }
  });
  for (auto& e : errors) result.error += e;
  if (dynamic_shared)
    result.text +=
        "\t.section .tbss,\"awT\",@nobits\n\t.globl kwemu_dynamic_shared\n\t.hidden kwemu_dynamic_shared\n\t.align 1024\n"
        "\t.type kwemu_dynamic_shared, @object\n\t.size kwemu_dynamic_shared, 232448\nkwemu_dynamic_shared:\n\t.zero 232448\n\t.zero 256\n";
  return result;
}

namespace {
// Operands of a call, split at the top level.
std::vector<View> split_operands(View s) {
  std::vector<View> parts;
  int depth = 0;
  size_t from = 0;
  bool quoted = false;
  for (size_t i = 0; i <= s.size(); i++) {
    if (i < s.size() && s[i] == '"' && (!i || s[i - 1] != '\\')) quoted = !quoted;
    if (i == s.size() || (s[i] == ',' && !depth && !quoted)) {
      View p = s.substr(from, i - from);
      while (!p.empty() && p[0] == ' ') p.remove_prefix(1);
      parts.push_back(p);
      from = i + 1;
    } else if (!quoted) {
      depth += (s[i] == '(' || s[i] == '[' || s[i] == '{') - (s[i] == ')' || s[i] == ']' || s[i] == '}');
    }
  }
  return parts;
}

// Does the operand name memory that another thread could see? Local variables are no such memory.
bool in_memory(View operand, const std::vector<std::string>& shared_names) {
  if (operand.empty() || operand[0] == '&' || operand[0] == '"') return false;
  auto is_shared = [&](View name) {
    View base = name.substr(0, name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"));
    return std::find(shared_names.begin(), shared_names.end(), base) != shared_names.end();
  };
  if (operand[0] == '*') return true;
  if (begins(operand, "MEM")) {  // "MEM[(struct S *)p_1]", or of a variable: "MEM[(struct S *)&variable]"
    size_t variable = operand.find(")&");
    return variable == View::npos || is_shared(operand.substr(variable + 2));
  }
  return operand.find("->") != View::npos || is_shared(operand);
}
}  // namespace

std::vector<std::string> unobserved_accesses(const std::string& dump, const std::vector<std::string>& shared_names) {
  std::set<std::string> found;
  std::string function;
  each_line(dump, [&](View line) {
    if (begins(line, ";; Function ")) {
      function = line.substr(12, line.find(" (") - 12);
      return;
    }
    if (line.size() < 4 || line.substr(0, 2) != "  " || line.back() != ';' || line[line.size() - 2] != ')') return;
    if (function.find("kwemu_caller") != std::string::npos) return;  // passes the launch's arguments on, which are not device memory
    // "  [place] result = callee (operands);" — a space before the parenthesis marks a call
    size_t begin = line.find_first_not_of(' ');
    if (line[begin] == '[') begin = std::min(line.find("] ", begin), line.size() - 2) + 2;
    View statement = line.substr(begin, line.size() - begin - 1);
    size_t open = statement.find(" (");
    if (open == View::npos || begins(statement, "if ") || begins(statement, "switch ") || begins(statement, "#")) return;
    size_t equal = statement.find(" = ");
    View result = equal < open ? statement.substr(0, equal) : View();
    View callee = equal < open ? statement.substr(equal + 3, open - equal - 3) : statement.substr(0, open);
    if (callee.empty() || callee[0] == '(' || callee[0] == '.' || callee.find('(') != View::npos) return;
    for (View known : {"__tsan", "__ubsan", "__builtin", "kwemu_", "VIEW_CONVERT", "__atomic"})
      if (begins(callee, known)) return;
    bool bad = in_memory(result, shared_names);
    View operands = statement.substr(open + 2);
    for (View o : split_operands(operands.substr(0, operands.size() - 1))) bad |= in_memory(o, shared_names);
    if (bad) found.insert(function + " passes or gets a struct in memory by value in its call of " + std::string(callee));
  });
  return {found.begin(), found.end()};
}
}  // namespace kwemu
