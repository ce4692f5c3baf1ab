// Kernels whose accesses have known costs: a transpose that conflicts in shared memory (-DPAD=1: it does not) and one that scatters its
// stores. -DEND=1: the program kills itself; 2: it calls exit.
#include <cstdio>
#include <cstdlib>

#ifndef PAD
#define PAD 0
#endif
#ifndef END
#define END 0
#endif
constexpr int tile = 32, n = 64;

__global__ void through_shared(const float* in, float* out) {
  __shared__ float block[tile][tile + PAD];
  int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  block[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * tile + threadIdx.x, y = blockIdx.x * tile + threadIdx.y;
  out[y * n + x] = block[threadIdx.x][threadIdx.y];  // column
}
__global__ void scattered(const float* in, float* out) {
  int x = threadIdx.x, y = blockIdx.x;
  out[x * n + y] = in[y * n + x];  // < each lane in a sector of its own
}

int main() {
  float *in, *out;
  cudaMalloc(&in, n * n * sizeof(float));
  cudaMalloc(&out, n * n * sizeof(float));
  cudaMemset(in, 0, n * n * sizeof(float));
  through_shared<<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(in, out);
  for (int i = 0; i < 3; i++) scattered<<<n, n>>>(in, out);
  cudaDeviceSynchronize();
  if (END == 1) abort();
  if (END == 2) exit(7);
  puts("done");
}
