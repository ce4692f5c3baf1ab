// One observed access of kernel code: find the memory it means, check bounds, then the shadow.
#pragma once
#include "emulator/engine/shadow.h"

namespace kwemu {
enum Access { kRead, kWrite, kVolatileRead, kVolatileWrite, kAtomicAccess };
void access(u64 address, u64 bytes, int kind, void* pc);
// These report and stop the launch when the bytes do not lie in one place of that kind.
Region* global_region(u64 address, u64 bytes, void* pc, int kind);
Region* shared_region(u64 address, u64 bytes, void* pc, int kind);
Region* variable_region(u64 address);  // of a __device__ variable, else null
}  // namespace kwemu
