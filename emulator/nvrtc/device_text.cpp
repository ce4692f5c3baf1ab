// The headers that are force-included before device code, as text inside the library (CMake makes this file depend on them).
#include "emulator/nvrtc/device_text.h"

#include "emulator/driver/driver.h"

#define KWEMU_EMBED(symbol, path) \
  asm(".section .rodata\n" #symbol ": .incbin \"" path "\"\n.byte 0\n.globl " #symbol "\n.hidden " #symbol "\n.previous")
KWEMU_EMBED(kwemu_text_abi, "emulator/device/abi.h");
KWEMU_EMBED(kwemu_text_qualifiers, "emulator/device/toolkit/crt/host_defines.h");
KWEMU_EMBED(kwemu_text_program, "emulator/device/program.h");
KWEMU_EMBED(kwemu_text_language, "emulator/device/language.h");
KWEMU_EMBED(kwemu_text_math, "emulator/device/math.h");
KWEMU_EMBED(kwemu_text_intrinsics, "emulator/device/intrinsics.h");
KWEMU_EMBED(kwemu_text_ptx, "emulator/device/ptx.h");
#define KWEMU_TOOLKIT(X)                \
  X(groups, "cooperative_groups.h")     \
  X(host_config, "crt/host_config.h")   \
  X(fp16, "cuda_fp16.h")                \
  X(bf16, "cuda_bf16.h")                \
  X(half_functions, "half_functions.h") \
  X(target, "nv/target")
#define KWEMU_EMBED_FILE(symbol, name) KWEMU_EMBED(kwemu_toolkit_##symbol, "emulator/device/toolkit/" name);
#define KWEMU_DECLARE_FILE(symbol, name) extern "C" const char kwemu_toolkit_##symbol[];
#define KWEMU_LIST_FILE(symbol, name) {name, kwemu_toolkit_##symbol},
KWEMU_TOOLKIT(KWEMU_EMBED_FILE)
KWEMU_TOOLKIT(KWEMU_DECLARE_FILE)

namespace kwemu {
const std::vector<ToolkitFile> kToolkit = {
    KWEMU_TOOLKIT(KWEMU_LIST_FILE){"crt/host_defines.h", kwemu_text_qualifiers},
    {"cooperative_groups/reduce.h", "#include <cooperative_groups.h>\n"},
    {"cooperative_groups/scan.h", "#include <cooperative_groups.h>\n"},
    {"cooperative_groups/memcpy_async.h", "#include <cooperative_groups.h>\n"},
    {"device_functions.h", "#pragma once\n"},
    {"math_functions.h", "#pragma once\n"},
    {"sm_30_intrinsics.h", "#pragma once\n"},
    {"sm_60_atomic_functions.h", "#pragma once\n"},
    {"device_atomic_functions.h", "#pragma once\n"},
};

// Images are only loaded by the emulator that made them, as far as these texts and the format tell.
u64 build_id() {
  static const u64 id = [] {
    u64 h = 14695981039346656037ull;  // FNV-1a
    for (const char* text : {kwemu_text_abi, kwemu_text_qualifiers, kwemu_text_language, kwemu_text_math, kwemu_text_intrinsics,
                             kwemu_text_ptx, kImageMagic, __VERSION__})
      for (const char* c = text; *c; c++) h = (h ^ (u8)*c) * 1099511628211ull;
    return h;
  }();
  return id;
}
}  // namespace kwemu
