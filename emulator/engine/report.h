// Findings: what a detector says, and the places in the user's source.
#pragma once
#include "emulator/engine/engine.h"

namespace kwemu {
// Records a finding and prints it to stderr. The launch goes on unless the caller then calls stop_launch(), or there are too many.
// The same kind at the same place is told once per launch.
__attribute__((format(printf, 3, 4))) void report(const char* kind, void* pc, const char* format, ...);

std::string place(void* pc, int most = 3);  // "reduce.cuh:20 < softmax.cuh:16", innermost first
bool same_line(void* a, void* b);
void forget_places();                // a module was unloaded
std::string name_of(const Thread*);  // "block (0,0,0) thread (3,0,0)"
std::string name_of_epoch(u64 epoch);
std::string name_of_address(const Region*, u64 address);

size_t report_count();
const char* report_text(size_t);
void clear_reports();
void begin_launch_reports();
}  // namespace kwemu
