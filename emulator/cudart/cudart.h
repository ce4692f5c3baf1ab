// The CUDA runtime's functions over the driver's: same numbers for errors, one device, everything finished at the call.
#pragma once
#include <cuda_runtime_api.h>

#include "emulator/driver/driver.h"

namespace kwemu {
extern thread_local cudaError_t last_error;
bool start_runtime();  // the device and its context exist, and are current in this thread

// Runs the body of a runtime function; remembers its error for cudaGetLastError.
template <class F>
cudaError_t runtime(F body) {
  cudaError_t result =
      start_runtime() ? static_cast<cudaError_t>(guarded([&] { return static_cast<CUresult>(body()); })) : cudaErrorInitializationError;
  if (result != cudaSuccess && result != cudaErrorNotReady) last_error = result;
  return result;
}
}  // namespace kwemu
