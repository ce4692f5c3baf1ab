#pragma once
#include "emulator/engine/engine.h"

namespace kwemu {
extern "C" const char kwemu_text_abi[], kwemu_text_language[], kwemu_text_math[];
}
