// Where a call runs, as the checker sees it. tools/kw implements it over the runtime for the GPU and the emulator; testing itself knows
// nothing but core.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "kw/core/bind.h"
#include "kw/core/error.h"

namespace kw::test {

class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;  // "cpu", "emulate", "cuda"
  virtual int32_t type() const = 0;      // kw_device_type
  virtual int32_t index() const { return 0; }
  virtual void* allocate(size_t bytes) = 0;  // aligned to 256; zero bytes give a valid pointer too
  virtual void free(void* memory) = 0;
  virtual void upload(void* device, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* device, size_t bytes) = 0;
  virtual void run(const Bound& bound) = 0;                   // and waits for the end
  virtual bool watches_bounds() const { return false; }       // true: allocations are exact, guard bands would hide faults
  virtual std::vector<std::string> findings() { return {}; }  // what an emulator saw since the last call
  // Ways of running that must give the same bits: "with 3 threads", "with avx2". -1 is the default way.
  virtual std::vector<std::string> variants() const { return {}; }
  virtual void set_variant(int) {}
  virtual int64_t largest_case() const { return 1 << 20; }  // elements of one tensor that are worth their time here
  virtual int repeats() const { return 20; }                // reruns in the layer `repeat`
};

// Runs the room's CPU function in this process.
class HostDevice : public Device {
 public:
  const char* name() const override { return "cpu"; }
  int32_t type() const override { return KW_CPU; }
  void* allocate(size_t bytes) override;
  void free(void* memory) override;
  void upload(void* device, const void* host, size_t bytes) override;
  void download(void* host, const void* device, size_t bytes) override;
  void run(const Bound& bound) override;
};

}  // namespace kw::test
