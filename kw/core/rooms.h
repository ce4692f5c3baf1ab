// What the build generates: the rooms that are compiled in, and the device words as text.
#pragma once
#include "kw/core/abi.h"

extern "C" const kw_source kw_device_sources[];  // ends with a null path

namespace kw {
extern const kw_room* const built_in_rooms[];  // sorted by name; ends with null
}
