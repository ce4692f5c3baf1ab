// The headers that device code and programs are compiled with, as text inside the library.
#pragma once
#include "emulator/engine/engine.h"

namespace kwemu {
extern "C" const char kwemu_text_abi[], kwemu_text_qualifiers[], kwemu_text_language[], kwemu_text_math[], kwemu_text_intrinsics[],
    kwemu_text_ptx[];
extern "C" const char kwemu_text_program[];  // of programs only
struct ToolkitFile {
  const char *name, *text;
};
extern const std::vector<ToolkitFile> kToolkit;  // what programs find in the place of the toolkit's headers of these names
}  // namespace kwemu
