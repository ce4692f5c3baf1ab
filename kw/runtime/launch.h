// One kernel launch through the driver, checked.
#pragma once
#include "kw/runtime/kernel_cache.h"

namespace kw {

// Throws a sentence when the hardware cannot take the launches or they do not fit the choice; `kernels` may be null (planning).
void check_launches(const char* op, const kw_plan& plan, const kw_choice& choice, const kw_device_facts& gpu, const Kernel* const* kernels);

// A launch without blocks: the room has nothing to do there.
inline bool is_idle(const kw_launch& launch) { return launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0; }

// Enqueues one launch. Throws KW_ERROR_DRIVER and tells an error of this launch from one that the context had before.
void enqueue(const Driver& cuda, const char* op, const Kernel& kernel, const kw_launch& launch, int device, const kw_device_facts& gpu,
             CUstream stream);

// Throws when earlier work has left an error in the context. Only for drivers whose launches report their own kernel's errors; asks
// without synchronising.
void check_no_earlier_error(const Driver& cuda, const char* op);

}  // namespace kw
