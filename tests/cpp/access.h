// For the rooms' tests: how often a call's kernels read and write each tensor, stated beside the kernels and counted by the emulator. That
// every sector is used in full and no bank conflicts is part of every statement.
#pragma once
#include <algorithm>

#include "kw/core/op.h"
#include "kw/runtime/device.h"
#include "kw/runtime/device_buffer.h"
#include "kw/runtime/dispatch.h"
#include "testing/access.h"
#include "testing/expect.h"

namespace kw::test {

class EmulatedDevice final : public Device {
 public:
  const char* name() const override { return "emulate"; }
  int32_t type() const override { return KW_CUDA; }
  void* allocate(size_t bytes) override { return memory_.allocate(bytes); }
  void free(void* memory) override { memory_.free(memory); }
  void upload(void* device, const void* host, size_t bytes) override { memory_.upload(device, host, bytes); }
  void download(void* host, const void* device, size_t bytes) override { memory_.download(host, device, bytes); }
  void run(const Bound& bound) override { execute(bound); }
  bool watches_bounds() const override { return true; }

 private:
  DeviceMemory memory_{0};
};

// `arguments` as `kw plan` takes them. `known`: where sectors or banks are not used in full and the room says why, "global store at
// kw/ops/..."; one that no longer is fails too. The emulated GPU has 4 multiprocessors, which is what persistent kernels count by. Where a
// real GPU runs the test there is nothing to count: `kw plan OP --access` shows the same anywhere.
inline void expect_traffic(const char* op_name, const char* arguments, const std::vector<Traffic>& stated,
                           const std::vector<std::string>& known = {}) {
  if (!find_driver() || device_count() == 0) use_emulator();
  if (!driver().emulator) return;
  const Op* op = find_op(op_name);
  if (!KW_EXPECT(op != nullptr)) return;
  EmulatedDevice device;
  const AccessReport report = observe_access(device, driver().handle, *op, parse_arguments(*op, {arguments}));
  KW_EXPECT(!report.sites.empty());
  const std::string call = std::string(op_name) + " " + arguments + ": ";
  std::vector<std::string> missing = known;
  for (const std::string& fault : access_faults(report, stated)) {
    const auto same = [&](const std::string& k) { return fault.compare(0, k.size(), k) == 0; };
    std::erase_if(missing, same);
    if (std::none_of(known.begin(), known.end(), same)) record(false, __FILE__, __LINE__, call + fault);
  }
  for (const std::string& k : missing) record(false, __FILE__, __LINE__, call + "nothing is wrong any more with the " + k);
}

}  // namespace kw::test
