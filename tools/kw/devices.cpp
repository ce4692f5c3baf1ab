#include "tools/kw/devices.h"

#include <dlfcn.h>

#include "kw/cpu/isa.h"
#include "kw/cpu/parallel.h"
#include "kw/runtime/device.h"
#include "kw/runtime/device_buffer.h"
#include "kw/runtime/dispatch.h"
#include "tools/kw/options.h"

namespace kw::tool {
namespace {

class Cpu final : public test::HostDevice {  // through the whole path of a call, not the room's function alone
 public:
  void run(const Bound& bound) override { execute(bound); }
  std::vector<std::string> variants() const override {
    std::vector<std::string> out;
    for (int n : threads) out.push_back(format("with %d threads", n));
    for (Isa i : isas)
      if (has_isa(i)) out.push_back(format("with the instructions of %s", isa_name(i)));
    return out;
  }
  void set_variant(int v) override {
    set_thread_count(0);
    set_isa(best_);
    if (v >= 0 && v < static_cast<int>(std::size(threads)))
      set_thread_count(threads[v]);
    else if (v >= 0)
      set_isa(isas[v - static_cast<int>(std::size(threads))]);  // a CPU that has one has those before it
  }

 private:
  static constexpr int threads[] = {1, 2, 3, 7};
  static constexpr Isa isas[] = {Isa::baseline, Isa::avx2, Isa::avx512};
  const Isa best_ = isa();
};

// A GPU, or the emulator behind the same driver functions.
class Gpu final : public test::Device {
 public:
  Gpu() {
    if (device_count() == 0) {
      const std::string missing = emulator_requested() ? "the emulator shows no device"
                                                       : "there is no NVIDIA GPU here; --device emulate checks kernels without one";
      std::string why;
      throw Error(KW_ERROR_TOOLCHAIN, find_driver(&why) ? missing : why);
    }
    device_facts(0);
    if (!driver().emulator) return;
    auto symbol = [&](const char* name) {
      void* p = dlsym(driver().handle, name);
      if (!p) throw Error(KW_ERROR_TOOLCHAIN, format("the emulator %s has no function %s", driver().path.c_str(), name));
      return p;
    };
    count_ = reinterpret_cast<decltype(count_)>(symbol("kwemu_report_count"));
    text_ = reinterpret_cast<decltype(text_)>(symbol("kwemu_report"));
    clear_ = reinterpret_cast<decltype(clear_)>(symbol("kwemu_clear_reports"));
    set_ = reinterpret_cast<decltype(set_)>(symbol("kwemu_set"));
  }
  const char* name() const override { return count_ ? "emulate" : "cuda"; }
  int32_t type() const override { return KW_CUDA; }
  void* allocate(size_t bytes) override { return memory_.allocate(bytes); }
  void free(void* memory) override { memory_.free(memory); }
  void upload(void* device, const void* host, size_t bytes) override { memory_.upload(device, host, bytes); }
  void download(void* host, const void* device, size_t bytes) override { memory_.download(host, device, bytes); }
  void run(const Bound& bound) override {
    execute(bound);
    ContextGuard guard(driver(), 0);
    check(driver(), driver().cuCtxSynchronize(), "waiting for the device");
  }
  bool watches_bounds() const override { return count_ != nullptr; }
  std::vector<std::string> findings() override {
    std::vector<std::string> out;
    if (!count_) return out;
    for (int i = 0, n = count_(); i < n; i++) out.emplace_back(text_(i));
    clear_();
    return out;
  }
  std::vector<std::string> variants() const override {
    std::vector<std::string> out;
    if (set_)
      for (const Schedule& s : schedules) out.push_back(format("with the GPU threads run in the order %s, seed %s", s.name, s.seed));
    return out;
  }
  void set_variant(int v) override {
    set_("schedule", v < 0 ? "inorder" : schedules[v].name);
    set_("seed", v < 0 ? "1" : schedules[v].seed);
  }
  int64_t largest_case() const override { return count_ ? 1 << 17 : 1 << 22; }
  int repeats() const override { return count_ ? 2 : 250; }

 private:
  DeviceMemory memory_{0};
  int (*count_)() = nullptr;
  const char* (*text_)(int) = nullptr;
  void (*clear_)() = nullptr;
  int (*set_)(const char*, const char*) = nullptr;
  struct Schedule {
    const char *name, *seed;
  };
  static constexpr Schedule schedules[] = {{"shuffle", "1"}, {"shuffle", "2"}, {"reverse", "1"}, {"greedy", "1"}, {"greedy", "2"}};
};

}  // namespace

std::unique_ptr<test::Device> open_device(const std::string& name) {
  if (name == "cpu") return std::make_unique<Cpu>();
  if (name == "emulate")
    use_emulator();
  else if (name != "cuda")
    throw Usage{"--device takes cpu, emulate or cuda, not '" + name.substr(0, 40) + "'"};
  return std::make_unique<Gpu>();
}

}  // namespace kw::tool
