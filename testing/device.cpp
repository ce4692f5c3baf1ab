#include "testing/device.h"

#include <cstdlib>
#include <cstring>

namespace kw::test {

void* HostDevice::allocate(size_t bytes) {
  void* p = std::aligned_alloc(256, (bytes / 256 + 1) * 256);
  if (!p) throw Error(KW_ERROR_MEMORY, format("no memory for %zu bytes", bytes));
  return p;
}
void HostDevice::free(void* memory) { std::free(memory); }
void HostDevice::upload(void* device, const void* host, size_t bytes) { std::memcpy(device, host, bytes); }
void HostDevice::download(void* host, const void* device, size_t bytes) { std::memcpy(host, device, bytes); }

void HostDevice::run(const Bound& bound) {
  kw_message message{};
  if (bound.op->def->cpu(&bound.raw, &message) != KW_OK) throw Error(static_cast<kw_status>(message.status), message.text);
}

}  // namespace kw::test
