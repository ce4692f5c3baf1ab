#include "kw/runtime/device.h"

#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>

#include "kw/runtime/context.h"

namespace kw {
namespace {

constexpr int64_t MiB = 1 << 20;
constexpr int KiB = 1024;

kw_device_facts gpu(const char* name, int arch, int sms, int threads, int shared_block_kib, int shared_sm_kib, int64_t l2_mib) {
  kw_device_facts f{arch, sms, threads, 65536, shared_block_kib * KiB, shared_sm_kib * KiB, l2_mib * MiB, {}};
  std::strncpy(f.name, name, sizeof f.name - 1);
  return f;
}

std::atomic<CUcontext> contexts[max_devices];
std::atomic<const kw_device_facts*> facts_of[max_devices];
std::mutex opening;

void check_index(const Driver& cuda, int device) {
  int count = 0;
  check(cuda, cuda.cuDeviceGetCount(&count), "counting the CUDA devices");
  if (device >= 0 && device < count && device < max_devices) return;
  throw Error(KW_ERROR_ARGUMENT, format("there is no CUDA device %d: this process sees %d", device, count));
}

CUdevice handle_of(const Driver& cuda, int device) {
  check_index(cuda, device);
  CUdevice handle = 0;
  check(cuda, cuda.cuDeviceGet(&handle, device), "finding the CUDA device");
  return handle;
}

kw_device_facts ask(const Driver& cuda, int index) {
  CUdevice device = handle_of(cuda, index);
  kw_device_facts f{};
  auto get = [&](CUdevice_attribute attribute) {
    int value = 0;
    check(cuda, cuda.cuDeviceGetAttribute(&value, attribute, device), "asking the device's attributes");
    return value;
  };
  f.arch = 10 * get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  f.sm_count = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  f.threads_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  f.registers_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  f.shared_per_block = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  f.shared_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  f.l2_bytes = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  check(cuda, cuda.cuDeviceGetName(f.name, sizeof f.name, device), "asking the device's name");
  if (f.arch < oldest_arch)
    throw Error(KW_ERROR_UNSUPPORTED,
                format("%s is an sm_%d GPU; Kernelwright needs sm_%d (Turing) or newer", f.name, f.arch, oldest_arch));
  return f;
}

}  // namespace

// From NVIDIA's published figures; what a device in this process reports always wins. The first of an architecture stands for it.
const std::vector<KnownGpu>& known_gpus() {
  static const auto* list = new std::vector<KnownGpu>{
      {"t4", gpu("NVIDIA T4", 75, 40, 1024, 64, 64, 4)},
      {"a100", gpu("NVIDIA A100", 80, 108, 2048, 163, 164, 40)},
      {"rtx3090", gpu("NVIDIA GeForce RTX 3090", 86, 82, 1536, 99, 100, 6)},
      {"a10", gpu("NVIDIA A10", 86, 72, 1536, 99, 100, 6)},
      {"rtx4090", gpu("NVIDIA GeForce RTX 4090", 89, 128, 1536, 99, 100, 72)},
      {"l4", gpu("NVIDIA L4", 89, 58, 1536, 99, 100, 48)},
      {"l40s", gpu("NVIDIA L40S", 89, 142, 1536, 99, 100, 96)},
      {"h100", gpu("NVIDIA H100", 90, 132, 2048, 227, 228, 50)},
      {"h200", gpu("NVIDIA H200", 90, 132, 2048, 227, 228, 60)},
      {"b200", gpu("NVIDIA B200", 100, 148, 2048, 227, 228, 126)},
      {"rtx5090", gpu("NVIDIA GeForce RTX 5090", 120, 170, 1536, 99, 100, 96)},
  };
  return *list;
}

const kw_device_facts& known_gpu(std::string_view name) {
  std::string names;
  for (const auto& known : known_gpus()) {
    if (name == known.name) return known.facts;
    names += std::string(names.empty() ? "" : ", ") + known.name;
  }
  throw Error(KW_ERROR_ARGUMENT,
              format("the GPU '%.*s' is not known; known are %s", static_cast<int>(name.size()), name.data(), names.c_str()));
}

kw_device_facts facts_of_arch(std::string_view arch) {
  std::string_view digits = arch.starts_with("sm_") ? arch.substr(3) : arch;
  int number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number <= 0 || number > 999)
    throw Error(KW_ERROR_ARGUMENT,
                format("'%.*s' is not an architecture; write for example sm_90", static_cast<int>(arch.size()), arch.data()));
  if (number < oldest_arch)
    throw Error(KW_ERROR_UNSUPPORTED, format("sm_%d is not supported; Kernelwright needs sm_%d (Turing) or newer", number, oldest_arch));
  // The usual GPU of the newest architecture that is not newer: an sm_87 is planned like an sm_86.
  const kw_device_facts* best = nullptr;
  for (const auto& known : known_gpus())
    if (known.facts.arch <= number && (!best || known.facts.arch > best->arch)) best = &known.facts;
  kw_device_facts facts = *best;
  if (facts.arch != number) std::snprintf(facts.name, sizeof facts.name, "sm_%d, planned like sm_%d", number, best->arch);
  facts.arch = number;
  return facts;
}

CUcontext primary_context(const Driver& cuda, int device) {
  if (device >= 0 && device < max_devices)
    if (CUcontext ready = contexts[device].load(std::memory_order_acquire)) return ready;
  std::lock_guard lock(opening);
  CUdevice handle = handle_of(cuda, device);
  if (CUcontext ready = contexts[device].load(std::memory_order_relaxed)) return ready;
  CUcontext context = nullptr;
  check(cuda, cuda.cuDevicePrimaryCtxRetain(&context, handle), "opening the device's primary context");
  contexts[device].store(context, std::memory_order_release);
  return context;
}

int device_count() {
  const Driver* cuda = find_driver();
  int count = 0;
  if (!cuda || cuda->cuDeviceGetCount(&count)) return 0;
  return count;
}

const kw_device_facts& device_facts(int device) {
  if (device >= 0 && device < max_devices)
    if (const auto* known = facts_of[device].load(std::memory_order_acquire)) return *known;
  std::lock_guard lock(opening);
  auto* fresh = new kw_device_facts(ask(driver(), device));
  const kw_device_facts* before = nullptr;
  if (facts_of[device].compare_exchange_strong(before, fresh)) return *fresh;
  delete fresh;
  return *before;
}

}  // namespace kw
