// Device memory for tools and tests, on a GPU or the emulator. The library itself never allocates.
#pragma once
#include <map>
#include <utility>

#include "kw/runtime/context.h"

namespace kw {

// `bytes` on the device, at least 256-byte aligned, not cleared. Throws KW_ERROR_MEMORY when there is no room.
class DeviceBuffer {
 public:
  DeviceBuffer(int device, size_t bytes) : cuda_(&driver()), device_(device), bytes_(bytes) {
    ContextGuard guard(*cuda_, device_);
    if (bytes) check(*cuda_, cuda_->cuMemAlloc(&address_, bytes), "allocating device memory");
  }
  ~DeviceBuffer() {
    if (!address_) return;
    try {
      ContextGuard guard(*cuda_, device_);
      cuda_->cuMemFree(address_);
    } catch (const Error&) {  // the context is gone, and the memory with it
    }
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : cuda_(other.cuda_), device_(other.device_), bytes_(other.bytes_), address_(std::exchange(other.address_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(cuda_, other.cuda_), std::swap(device_, other.device_), std::swap(bytes_, other.bytes_), std::swap(address_, other.address_);
    return *this;
  }

  void* data() const { return reinterpret_cast<void*>(address_); }
  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return bytes_; }
  int device() const { return device_; }

  // Finished on return; wait for other streams first.
  void upload(const void* from, size_t bytes, size_t offset = 0) {
    ContextGuard guard(*cuda_, device_);
    if (bytes) check(*cuda_, cuda_->cuMemcpyHtoD(address_ + offset, from, bytes), "copying to the device");
  }
  void download(void* to, size_t bytes, size_t offset = 0) const {
    ContextGuard guard(*cuda_, device_);
    if (bytes) check(*cuda_, cuda_->cuMemcpyDtoH(to, address_ + offset, bytes), "copying from the device");
  }
  // Asynchronous on the stream.
  void fill(unsigned char byte, CUstream stream = nullptr) {
    ContextGuard guard(*cuda_, device_);
    if (bytes_) check(*cuda_, cuda_->cuMemsetD8Async(address_, byte, bytes_, stream), "filling device memory");
  }

 private:
  const Driver* cuda_;
  int device_;
  size_t bytes_;
  CUdeviceptr address_ = 0;
};

// The same by address, for those who hold plain pointers. Addresses may lie inside a buffer.
class DeviceMemory {
 public:
  explicit DeviceMemory(int device) : device_(device) {}
  void* allocate(size_t bytes) {  // an address of its own also for 0 bytes
    DeviceBuffer buffer(device_, bytes ? bytes : 1);
    void* p = buffer.data();
    buffers_.emplace(p, std::move(buffer));
    return p;
  }
  void free(void* memory) { buffers_.erase(memory); }
  // Finished on return; wait for other streams first.
  void upload(void* to, const void* from, size_t bytes) const {
    ContextGuard guard(driver(), device_);
    if (bytes) check(driver(), driver().cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(to), from, bytes), "copying to the device");
  }
  void download(void* to, const void* from, size_t bytes) const {
    ContextGuard guard(driver(), device_);
    if (bytes) check(driver(), driver().cuMemcpyDtoH(to, reinterpret_cast<CUdeviceptr>(from), bytes), "copying from the device");
  }

 private:
  int device_;
  std::map<void*, DeviceBuffer> buffers_;
};

}  // namespace kw
