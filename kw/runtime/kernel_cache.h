// From a kernel's name to something that launches: memory, then the pack, then disk, then NVRTC.
#pragma once
#include <atomic>

#include "kw/runtime/driver.h"
#include "kw/runtime/nvrtc.h"

namespace kw {

enum class Origin { nowhere, pack, disk, compiled };
const char* origin_name(Origin origin);  // "nowhere", "pack", ...

// A loaded kernel. Handles are the driver's context-independent ones: valid on every device of the architecture. Never unloaded:
// cuLibraryUnload kills a stream capture that another thread may have open.
struct Kernel {
  CUkernel handle = nullptr;
  CUlibrary library = nullptr;
  std::string expression, source;
  Origin origin = Origin::nowhere;
  int64_t params_bytes = -1;                     // of its one Params argument; -1 when the driver does not tell
  mutable std::atomic<uint64_t> big_shared{0};   // bit d: device d was told to allow all its shared memory
  mutable std::atomic<uint64_t> big_cluster{0};  // bit d: device d was told to allow clusters above 8 blocks
};

// The kernel for a GPU of this architecture. Compiles at most once per text, options and compiler, however many threads ask; a failure
// is told to everyone who waited and tried again at the next call. Valid for the process.
const Kernel& find_kernel(const SourceSet& sources, const std::string& expression, int gpu_arch);

// The code alone, of the disk cache or compiled now: needs NVRTC, no driver. Throws KW_ERROR_UNSUPPORTED when it could only be PTX and
// `exact` is asked for.
CompiledKernel find_code(const SourceSet& sources, const std::string& expression, int gpu_arch, bool exact = false);

// Where find_kernel would find it, without loading or compiling anything: pack, disk or nowhere.
Origin origin_of(const SourceSet& sources, const std::string& expression, int gpu_arch);

struct CacheCounts {  // kernels that were asked for since the process began, by where they were found
  uint64_t memory = 0, pack = 0, disk = 0, compiled = 0;
};
CacheCounts cache_counts();

}  // namespace kw
