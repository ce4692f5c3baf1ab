// The caller's thread, on the right device for the length of a call.
#pragma once
#include "kw/runtime/driver.h"

namespace kw {

// The device's primary context: the one that every framework uses. Retained once, for the process.
CUcontext primary_context(const Driver& cuda, int device);

// Makes the device's primary context current and puts back what was there. A thread that had none keeps it, as with the CUDA runtime.
// Costs one cuCtxGetCurrent (8-16 ns) when the context is right already.
class ContextGuard {
 public:
  ContextGuard(const Driver& cuda, int device) : cuda_(cuda) {
    CUcontext wanted = primary_context(cuda, device), had = nullptr;
    cuda.cuCtxGetCurrent(&had);
    if (had == wanted) return;
    check(cuda, had ? cuda.cuCtxPushCurrent(wanted) : cuda.cuCtxSetCurrent(wanted), "making the device's context current");
    pushed_ = had != nullptr;
  }
  ~ContextGuard() {
    CUcontext ours;
    if (pushed_) cuda_.cuCtxPopCurrent(&ours);
  }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  const Driver& cuda_;
  bool pushed_ = false;
};

}  // namespace kw
