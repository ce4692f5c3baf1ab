// A captured graph, and one made by hand; -DBUG=1 a race in a captured kernel, -DBUG=2 a node that runs before the one that fills its input.
#include <cstdio>

#ifndef BUG
#define BUG 0
#endif
__global__ void add(float* p, float v, int n) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  tile[i] = p[i];
#if BUG != 1
  __syncthreads();
#endif
  if (i < n) p[i] = tile[n - 1 - i] + v;
}
template <int factor>
__global__ void times(float* p) {
  p[threadIdx.x] *= factor;
}

int main() {
  float *d, h[64];
  cudaMalloc(&d, sizeof h);
  cudaStream_t one, two;
  cudaEvent_t go, done;
  cudaStreamCreate(&one), cudaStreamCreate(&two), cudaEventCreate(&go), cudaEventCreate(&done);
  cudaMemset(d, 0, sizeof h);

  cudaGraph_t captured;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  add<<<1, 64, 0, one>>>(d, 1.f, 64);
  cudaEventRecord(go, one);
  cudaStreamWaitEvent(two, go);  // the second stream joins
  times<2><<<1, 64, 0, two>>>(d);
  cudaEventRecord(done, two);
  cudaStreamWaitEvent(one, done);
  bool refused = cudaStreamSynchronize(one) == cudaErrorStreamCaptureUnsupported;
  cudaStreamEndCapture(one, &captured);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("while captured %g, waiting refused %d\n", h[0], refused);
  cudaGraphInstantiate(&exec, captured, NULL, NULL, 0);
  for (int i = 0; i < 3; i++) cudaGraphLaunch(exec, one);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("three times %g\n", h[0]);

  float *fresh, v = 5;
  int n = 64;
  cudaMalloc(&fresh, sizeof h);
  void* arguments[] = {&fresh, &v, &n};
  cudaKernelNodeParams kernel = {0};
  kernel.func = (void*)add, kernel.gridDim = 1, kernel.blockDim = 64, kernel.kernelParams = arguments;
  cudaMemsetParams zeros = {0};
  zeros.dst = fresh, zeros.elementSize = 4, zeros.width = 64, zeros.height = 1;
  cudaGraph_t made;
  cudaGraphNode_t first, second;
  cudaGraphCreate(&made, 0);
  cudaGraphAddKernelNode(&second, made, NULL, 0, &kernel);
  cudaGraphAddMemsetNode(&first, made, NULL, 0, &zeros);
  if (BUG != 2) cudaGraphAddDependencies(made, &first, &second, NULL, 1);
  cudaGraphInstantiate(&exec, made);
  v = 7;  // too late: the node has its own copy
  cudaGraphLaunch(exec, 0);
  cudaMemcpy(h, fresh, sizeof h, cudaMemcpyDeviceToHost);
  printf("by hand %g\n", h[0]);

  void *address = (void*)times<3>, *only[] = {&fresh};
  cudaLaunchKernel(address, dim3(1), dim3(64), only, 0, 0);
  cudaMemcpy(h, fresh, sizeof h, cudaMemcpyDeviceToHost);
  printf("by address %g\n", h[0]);
}
