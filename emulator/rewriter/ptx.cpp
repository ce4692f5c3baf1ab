#include "emulator/rewriter/ptx.h"

#include <cstring>

#include "emulator/rewriter/ptx_translator.h"

namespace kwemu {
std::string translate_ptx(const InlineAsm& code, std::string& missing) {
  ptx::Translator t(code);
  std::string text = t.run();
  missing = t.missing;
  return text;
}
bool is_host_assembly(const std::string& text) {
  std::string s = ptx::trimmed(text);
  if (s.empty()) return true;
  for (const char* word :
       {"rdtsc", "cpuid", "mfence", "lfence", "sfence", "pause", "nop", "lock", "xchg", "bswap", "rep", "mrc", "mrs", "movq", "movl"})
    if (s.compare(0, strlen(word), word) == 0) return true;
  return false;
}
}  // namespace kwemu
