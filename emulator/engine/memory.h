// The emulated device's memory, as the host sees it: allocations, copies, what was never written.
#pragma once
#include "emulator/engine/engine.h"

namespace kwemu {
bool start_memory();          // reserves the address space; false if the system refuses
Region* allocate(u64 bytes);  // poisoned with 0xff and marked as never written; null when the memory is full
bool release(u64 address);
u64 allocated_bytes();
constexpr u64 kTotalMemory = 64ull << 30;

Region* find_region(u64 address);     // live allocation or device variable that holds the address, else null
bool inside(u64 address, u64 bytes);  // of one live allocation or variable
void host_wrote(u64 address, u64 bytes);
void host_reads(u64 address, u64 bytes);  // reports what was never written
void device_copied(u64 to, u64 from, u64 bytes);
void zero_fill(u64 address, u64 bytes);  // without touching pages that need not exist
void poison(u64 address, u64 bytes);
u64 unwritten_bytes(u64 address);  // of the allocation that holds the address
void forget_epochs();              // when gang numbers run out: every cell keeps only whether it holds a value

u64 shared_base(Module*);  // of the module's thread-local segment in the calling OS thread
}  // namespace kwemu
