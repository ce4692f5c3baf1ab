// The headers that are force-included before device code, as text inside the library (CMake makes this file depend on them).
#include "emulator/nvrtc/device_text.h"

#include "emulator/driver/driver.h"

#define KWEMU_EMBED(symbol, path) \
  asm(".section .rodata\n" #symbol ": .incbin \"" path "\"\n.byte 0\n.globl " #symbol "\n.hidden " #symbol "\n.previous")
KWEMU_EMBED(kwemu_text_abi, "emulator/device/abi.h");
KWEMU_EMBED(kwemu_text_qualifiers, "emulator/device/toolkit/crt/host_defines.h");
KWEMU_EMBED(kwemu_text_program, "emulator/device/program.h");
KWEMU_EMBED(kwemu_text_host_config, "emulator/device/toolkit/crt/host_config.h");
KWEMU_EMBED(kwemu_text_target, "emulator/device/toolkit/nv/target");
KWEMU_EMBED(kwemu_text_groups, "emulator/device/toolkit/cooperative_groups.h");
KWEMU_EMBED(kwemu_text_language, "emulator/device/language.h");
KWEMU_EMBED(kwemu_text_math, "emulator/device/math.h");

namespace kwemu {
// Images are only loaded by the emulator that made them, as far as these texts and the format tell.
u64 build_id() {
  static const u64 id = [] {
    u64 h = 14695981039346656037ull;  // FNV-1a
    for (const char* text : {kwemu_text_abi, kwemu_text_qualifiers, kwemu_text_language, kwemu_text_math, kImageMagic, __VERSION__})
      for (const char* c = text; *c; c++) h = (h ^ (u8)*c) * 1099511628211ull;
    return h;
  }();
  return id;
}
}  // namespace kwemu
