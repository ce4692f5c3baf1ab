// What is enqueued on a captured stream is kept for later.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>

namespace kwemu {
// True: the stream is being captured (or a graph takes everything), and `work` is now a node.
bool captured(cudaStream_t stream, cudaGraphNodeType type, std::function<cudaError_t()> work);
bool is_captured(cudaStream_t stream);
bool event_captured(cudaEvent_t event, cudaStream_t stream);  // the event was recorded on the stream
bool wait_captured(cudaStream_t stream, cudaEvent_t event);   // the stream waits for it, and so may join its capture

// A kernel by its address alone: launches it with the parameters of a graph's node.
using KernelStarter = cudaError_t (*)(const void* kernel, const cudaKernelNodeParams*);
}  // namespace kwemu
