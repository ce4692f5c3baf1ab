// y = a x, and in N mistakes: -DBUG=1 a bound that is one too large, 2 a barrier that is missing, 3 the host reads the device's memory,
// 4 an element that nobody writes, 5 a kernel that waits for ever, 6 a shift by all bits, 7 a function that does not exist.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "scale.h"

#ifndef BUG
#define BUG 0
#endif
int N = 1000;

template <int threads>
__global__ void __launch_bounds__(threads) scale(float a, const float* __restrict__ x, float* y, int n) {
  __shared__ float tile[threads];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  if (i < n + (BUG == 1)) tile[t] = times(a, x[i]);
#if BUG != 2
  __syncthreads();
#endif
  int other = threads - 1 - t, from = blockIdx.x * threads + other;
  if (BUG == 4 && from == 7) return;
  if (BUG == 5 && from == 7)
    while (((volatile float*)tile)[0] != -1.f) {
    }
  if (BUG == 6 && (1 << (n - n + 32)) == 12345) return;
  if (from < n) y[from] = tile[other];
}

#if BUG == 7
extern "C" int cufftNothing(int);
#endif

int main(int argc, char** argv) {
  float factor = argc > 1 ? atof(argv[1]) : 2.f, *x, *y;
  cudaMalloc(&x, N * sizeof(float));
  cudaMalloc(&y, N * sizeof(float));
  std::vector<float> host(N);
  for (int i = 0; i < N; i++) host[i] = i;
  cudaMemcpy(x, host.data(), N * sizeof(float), cudaMemcpyHostToDevice);
  scale<128><<<(N + 127) / 128, 128>>>(factor, x, y, N);
#if BUG == 7
  cufftNothing(1);
#endif
  if (BUG == 3) printf("%g\n", y[0]);
  if (cudaError_t e = cudaDeviceSynchronize()) return printf("%s\n", cudaGetErrorString(e)), 3;
  cudaMemcpy(host.data(), y, N * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < N; i++)
    if (host[i] != factor * i) return printf("wrong at %d: %g\n", i, host[i]), 4;
  printf("all %d right\n", N);
  cudaFree(x);
  cudaFree(y);
}
