// Streams and events. All work is finished when its call returns, so they only have to exist, and events to know the time.
#include <chrono>
#include <set>

#include "emulator/driver/driver.h"

using namespace kwemu;
struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
};
struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point at;
};
namespace {
std::set<CUstream> streams;
std::set<CUevent> events;
bool is_stream(CUstream s) { return !s || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD || streams.count(s); }
CUresult on_stream(CUstream s) {
  return with_context([&] { return is_stream(s) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}
CUresult on_event(CUevent e) {
  return with_context([&] { return events.count(e) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}
}  // namespace

KWEMU_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return with_context([&] {
    if (!stream) return CUDA_ERROR_INVALID_VALUE;
    *stream = *streams.insert(new CUstream_st{flags, priority}).first;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
KWEMU_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  return with_context([&] {
    if (!streams.erase(stream)) return CUDA_ERROR_INVALID_HANDLE;
    delete stream;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuStreamSynchronize(CUstream stream) { return on_stream(stream); }
KWEMU_EXPORT CUresult cuStreamQuery(CUstream stream) { return on_stream(stream); }
KWEMU_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  CUresult r = on_stream(stream);
  return r ? r : on_event(event);
}
KWEMU_EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return on_stream(stream);
}
KWEMU_EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = primary_context();
  return on_stream(stream);
}
KWEMU_EXPORT CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return with_context([&] {
    if (!event) return CUDA_ERROR_INVALID_VALUE;
    *event = *events.insert(new CUevent_st{flags}).first;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  return with_context([&] {
    if (!events.erase(event)) return CUDA_ERROR_INVALID_HANDLE;
    delete event;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return with_context([&] {
    if (!events.count(event) || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    event->recorded = true;
    event->at = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuEventSynchronize(CUevent event) { return on_event(event); }
KWEMU_EXPORT CUresult cuEventQuery(CUevent event) { return on_event(event); }
KWEMU_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return with_context([&] {
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!events.count(begin) || !events.count(end) || !begin->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
    if ((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
    return CUDA_SUCCESS;
  });
}
// Before version 12.8 of the driver the name had no suffix; the meaning is the same.
KWEMU_EXPORT CUresult kwemu_event_elapsed_time(float* ms, CUevent begin, CUevent end) __asm__("cuEventElapsedTime");
CUresult kwemu_event_elapsed_time(float* ms, CUevent begin, CUevent end) { return cuEventElapsedTime_v2(ms, begin, end); }
