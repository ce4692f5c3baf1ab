// What a kernel chooser may know of a GPU: asked of the driver, or looked up for a GPU that is not here.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kw/core/abi.h"

namespace kw {

inline constexpr int oldest_arch = 75;  // Turing
inline constexpr int max_devices = 64;  // in one process

struct KnownGpu {
  const char* name;  // as `kw plan --gpu` takes it
  kw_device_facts facts;
};

const std::vector<KnownGpu>& known_gpus();
// By the name above; throws KW_ERROR_ARGUMENT, naming what there is.
const kw_device_facts& known_gpu(std::string_view name);
// "sm_90" or "90": the facts of the usual GPU of that architecture, with the arch asked for. Throws KW_ERROR_ARGUMENT or
// KW_ERROR_UNSUPPORTED (below sm_75).
kw_device_facts facts_of_arch(std::string_view arch);

int device_count();  // 0 when there is no driver or no GPU
// Of a device in this process. Throws when there is no such device, or KW_ERROR_UNSUPPORTED when it is older than sm_75.
const kw_device_facts& device_facts(int device);

}  // namespace kw
