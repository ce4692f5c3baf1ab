// The one way of a call: bound arguments -> (CPU function) or (choose -> kernels -> fill -> launch).
#pragma once
#include <string>

#include "kw/core/bind.h"

namespace kw {

// Runs a bound call on its device and stream: asynchronous on CUDA, finished on return on the CPU. Neither allocates nor synchronises.
// Empty results launch nothing. Throws Error; nothing has been written then unless the driver itself failed.
void execute(const Bound& bound);

// Finds, or compiles, the kernels that `execute` would launch, and loads them on the device; nothing runs and no memory is looked at.
void warm_up(const Bound& bound);

// What `execute` would launch on a GPU with these facts, as text: needs no GPU. Throws like `execute`.
std::string describe_plan(const Bound& bound, const kw_device_facts& gpu);

// Byte alignment class of a bound call, as kw_problem::alignment has it.
int32_t alignment_of(const Bound& bound);

// Does one of its tensors lie at more than one distance from row to row? Kernels are compiled apart for that.
bool is_strided(const Bound& bound);

// Compiles the kernels of a bound call for a GPU with these facts and returns the cubins' total size; no GPU needed.
size_t compile_for(const Bound& bound, const kw_device_facts& gpu);

}  // namespace kw
