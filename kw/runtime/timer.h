// Device time between two points of a stream, for `kw bench`.
#pragma once
#include <algorithm>
#include <vector>

#include "kw/runtime/device_buffer.h"

namespace kw {

class EventTimer {
 public:
  explicit EventTimer(int device) : cuda_(driver()), device_(device) {
    if (!cuda_.cuEventElapsedTime) throw Error(KW_ERROR_UNSUPPORTED, "this CUDA driver has no cuEventElapsedTime");
    ContextGuard guard(cuda_, device);
    check(cuda_, cuda_.cuEventCreate(&start_, CU_EVENT_DEFAULT), "creating an event");
    if (CUresult result = cuda_.cuEventCreate(&stop_, CU_EVENT_DEFAULT)) {
      cuda_.cuEventDestroy(start_);
      check(cuda_, result, "creating an event");
    }
  }
  ~EventTimer() { cuda_.cuEventDestroy(start_), cuda_.cuEventDestroy(stop_); }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  // Seconds that the device spends on what `work` enqueues on `stream`. An empty kernel reads 3.5 us on an H200 (events included).
  template <class Work>
  double seconds(CUstream stream, Work&& work) {
    ContextGuard guard(cuda_, device_);
    check(cuda_, cuda_.cuEventRecord(start_, stream), "recording an event");
    work();
    check(cuda_, cuda_.cuEventRecord(stop_, stream), "recording an event");
    check(cuda_, cuda_.cuEventSynchronize(stop_), "waiting for the device");
    float ms = 0;
    check(cuda_, cuda_.cuEventElapsedTime(&ms, start_, stop_), "reading the time between two events");
    return ms * 1e-3;
  }

 private:
  const Driver& cuda_;
  int device_;
  CUevent start_ = nullptr, stop_ = nullptr;
};

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace kw
