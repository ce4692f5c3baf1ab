// What a call's kernels do to memory, counted by the emulator: for `kw plan --access` and for the rooms' tests, which state it.
#pragma once
#include <string>
#include <vector>

#include "testing/arguments.h"
#include "testing/device.h"

namespace kw::test {

struct AccessSite {                               // one load or store of the source, in one kernel
  std::string kernel, what;                       // what: "global load", "shared store", "copy to shared", ...
  std::vector<std::string> frames;                // "kw/device/vector.cuh:66" and who called it, innermost first
  int64_t bytes = 0;                              // of one lane
  int64_t launches = 0, requests = 0, lanes = 0;  // of all launches of the kernel; lanes of all requests together
  int64_t pieces = 0, least = 0;                  // 32-byte sectors, or wavefronts of shared memory; and the fewest that would do
  int64_t dropped = 0;                            // accesses that were not counted

  bool is_shared() const;
  // The frame to show: the innermost that is no device word of ours; the innermost where there is no other.
  std::string place() const;
};
struct AccessBuffer {  // what one kernel moved
  std::string kernel, name;
  const void* at = nullptr;
  int64_t size = 0, launches = 0;                                        // size: bytes
  int64_t read = 0, read_sectors = 0, written = 0, written_sectors = 0;  // read, written: bytes, a byte once per request of a warp

  double times_read() const;  // per launch, as a multiple of the size
  double times_written() const;
};
struct AccessReport {
  std::vector<AccessSite> sites;
  std::vector<AccessBuffer> buffers;
};

// What the emulator has counted so far. `library`: its handle.
AccessReport read_access(void* library);

// Runs one call on the emulator, whose handle is `library`, and counts what its kernels do. Buffers have the names of the contract; their
// sizes are those of the tensors.
AccessReport observe_access(Device& emulator, void* library, const Op& op, const Arguments& arguments);

// What a room states of a kernel's call: how often it reads and writes each tensor, over all launches of the call. A tensor that is not
// named must not be touched.
struct Traffic {
  const char* tensor;
  double read = 0, written = 0;
};
// Sentences about everything that is not so: other traffic, sectors of which a part goes unused, bank conflicts, accesses not counted.
std::vector<std::string> access_faults(const AccessReport& report, const std::vector<Traffic>& stated);

}  // namespace kw::test
