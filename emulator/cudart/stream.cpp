// The runtime's streams and events are the driver's.
#include "emulator/cudart/cudart.h"
#include "emulator/cudart/graph.h"

using namespace kwemu;

KWEMU_EXPORT cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return runtime([&] { return cuStreamCreate(stream, 0); });
}
KWEMU_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return runtime([&] { return cuStreamCreate(stream, flags); });
}
KWEMU_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return runtime([&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}
KWEMU_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = 0;
  return cudaSuccess;
}
KWEMU_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return runtime([&] { return cuStreamDestroy_v2(stream); });
}
KWEMU_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return runtime([&] { return is_captured(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : cuStreamSynchronize(stream); });
}
KWEMU_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return runtime([&] { return cuStreamQuery(stream); });
}
KWEMU_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return runtime([&] { return wait_captured(stream, event) ? CUDA_SUCCESS : cuStreamWaitEvent(stream, event, flags); });
}
KWEMU_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!function) return cudaErrorInvalidValue;
  if (!captured(stream, cudaGraphNodeTypeHost, [=] { return function(data), cudaSuccess; })) function(data);
  return cudaSuccess;
}
KWEMU_EXPORT cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return runtime([&] { return cuEventCreate(event, 0); });
}
KWEMU_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return runtime([&] { return cuEventCreate(event, flags); });
}
KWEMU_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return runtime([&] { return cuEventDestroy_v2(event); });
}
KWEMU_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return runtime([&] { return event_captured(event, stream) ? CUDA_SUCCESS : cuEventRecord(event, stream); });
}
KWEMU_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return runtime([&] { return cuEventSynchronize(event); });
}
KWEMU_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
  return runtime([&] { return cuEventQuery(event); });
}
KWEMU_EXPORT cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return runtime([&] { return cuEventElapsedTime_v2(ms, begin, end); });
}
KWEMU_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
KWEMU_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned) {
  if (!function) return cudaErrorInvalidValue;
  return function(stream, cudaSuccess, data), cudaSuccess;
}
KWEMU_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* flags) { return *flags = 0, cudaSuccess; }
KWEMU_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) { return *priority = 0, cudaSuccess; }
