// Inline PTX -> C++, for the instructions that public kernels use.
#pragma once
#include <string>
#include <vector>

namespace kwemu {
struct AsmOperand {
  std::string name, constraint, expression;
};
struct InlineAsm {
  std::string text;  // of its string, escapes resolved
  std::vector<AsmOperand> operands;
  size_t outputs = 0;
};
// A statement that does the same in C++ (device/ptx.h), in one line. If the emulator lacks an instruction, `missing` names it.
std::string translate_ptx(const InlineAsm& code, std::string& missing);
bool is_host_assembly(const std::string& text);  // of x86, or empty: left as it is
}  // namespace kwemu
