// The headers that device code and programs are compiled with, as text inside the library.
#pragma once
#include "emulator/engine/engine.h"

namespace kwemu {
extern "C" const char kwemu_text_abi[], kwemu_text_qualifiers[], kwemu_text_language[], kwemu_text_math[];
extern "C" const char kwemu_text_program[], kwemu_text_host_config[], kwemu_text_target[], kwemu_text_groups[];  // of programs only
}  // namespace kwemu
