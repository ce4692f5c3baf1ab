// One kernel for each pattern of access whose cost the emulator works out, for access_ncu.py: rooms' kernels conflict nowhere, so they alone
// would not show that conflicts are counted as the hardware has them. Each launch is 64 blocks of one warp.
#include <cuda_runtime.h>

#include <cstdio>

constexpr int blocks = 64, lanes = 32, room = 4096;

__device__ int lane() { return threadIdx.x; }
__device__ size_t first() { return blockIdx.x * size_t{room}; }

template <class T, int stride, int offset>
__global__ void global_load(const float* x, float* y) {
  const T* from = reinterpret_cast<const T*>(x + first());
  reinterpret_cast<T*>(y + first())[lane()] = from[lane() * stride + offset];
}
template <class T, int stride>
__global__ void global_store(const float* x, float* y) {
  reinterpret_cast<T*>(y + first())[lane() * stride] = reinterpret_cast<const T*>(x + first())[lane()];
}
template <int every>
__global__ void some_lanes(const float* x, float* y) {
  if (lane() % every == 0) y[first() + lane()] = x[first() + lane()];
}
template <class T, int stride>
__global__ void shared_memory(const float* x, float* y) {
  __shared__ T values[(lanes - 1) * stride + 1];
  values[lane() * stride] = reinterpret_cast<const T*>(x + first())[lane()];
  __syncthreads();
  reinterpret_cast<T*>(y + first())[lane()] = values[(lanes - 1 - lane()) * stride];
}
template <class T, int each>
__global__ void shared_broadcast(const float* x, float* y) {
  __shared__ T values[lanes];
  values[lane()] = reinterpret_cast<const T*>(x + first())[lane()];
  __syncthreads();
  reinterpret_cast<T*>(y + first())[lane()] = values[lane() / each];
}
template <class T, int mask>
__global__ void shared_masked(const float* x, float* y) {
  __shared__ T values[lanes];
  values[lane()] = reinterpret_cast<const T*>(x + first())[lane()];
  __syncthreads();
  reinterpret_cast<T*>(y + first())[lane()] = values[lane() & mask];
}

int main() {
  float *x, *y;
  const size_t bytes = blocks * room * sizeof(float);
  cudaMalloc(&x, bytes);
  cudaMalloc(&y, bytes);
  cudaMemset(x, 0, bytes);
  cudaMemset(y, 0, bytes);
  global_load<float, 1, 0><<<blocks, lanes>>>(x, y);
  global_load<float, 1, 1><<<blocks, lanes>>>(x, y);
  global_load<float, 2, 0><<<blocks, lanes>>>(x, y);
  global_load<float, 32, 0><<<blocks, lanes>>>(x, y);
  global_load<float2, 1, 0><<<blocks, lanes>>>(x, y);
  global_load<float4, 1, 0><<<blocks, lanes>>>(x, y);
  global_load<float4, 2, 0><<<blocks, lanes>>>(x, y);
  global_load<unsigned char, 1, 0><<<blocks, lanes>>>(x, y);
  global_store<float, 3><<<blocks, lanes>>>(x, y);
  global_store<float4, 2><<<blocks, lanes>>>(x, y);
  some_lanes<2><<<blocks, lanes>>>(x, y);
  some_lanes<8><<<blocks, lanes>>>(x, y);
  shared_memory<float, 1><<<blocks, lanes>>>(x, y);
  shared_memory<float, 2><<<blocks, lanes>>>(x, y);
  shared_memory<float, 32><<<blocks, lanes>>>(x, y);
  shared_memory<float, 33><<<blocks, lanes>>>(x, y);
  shared_memory<unsigned char, 1><<<blocks, lanes>>>(x, y);
  shared_memory<float2, 1><<<blocks, lanes>>>(x, y);
  shared_memory<float2, 2><<<blocks, lanes>>>(x, y);
  shared_memory<float2, 16><<<blocks, lanes>>>(x, y);
  shared_memory<float4, 1><<<blocks, lanes>>>(x, y);
  shared_memory<float4, 2><<<blocks, lanes>>>(x, y);
  shared_memory<float4, 8><<<blocks, lanes>>>(x, y);
  shared_broadcast<float, 32><<<blocks, lanes>>>(x, y);
  shared_broadcast<float, 2><<<blocks, lanes>>>(x, y);
  shared_broadcast<float2, 32><<<blocks, lanes>>>(x, y);
  shared_broadcast<float2, 2><<<blocks, lanes>>>(x, y);
  shared_broadcast<float4, 32><<<blocks, lanes>>>(x, y);
  shared_broadcast<float4, 4><<<blocks, lanes>>>(x, y);
  shared_masked<float2, 29><<<blocks, lanes>>>(x, y);  // lanes two apart read the same, neighbours do not
  shared_masked<float2, 15><<<blocks, lanes>>>(x, y);  // so do the two halves
  shared_masked<float4, 29><<<blocks, lanes>>>(x, y);
  shared_masked<float4, 7><<<blocks, lanes>>>(x, y);
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
