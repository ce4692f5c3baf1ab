// Intrinsics, shifts, variables of the device; -DBUG=1 writes past a device variable, 2 past a static one.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifndef BUG
#define BUG 0
#endif
namespace cg = cooperative_groups;
__device__ int first[8], second[8];
__device__ static int counter[2];
struct Pair {
  int a, b;
  __device__ Pair() {}  // does nothing, so it may stand in shared memory
};

__global__ void floats(float* o) {
  __half2 a = __floats2half2_rn(1.5f, 2.f), b = __hfma2(a, a, a);
  o[0] = __low2float(b);
  o[1] = __half2float(hexp(__float2half(1.f)));
  o[2] = __fadd_rd(1.f, 1e-10f);
  o[3] = __fadd_ru(1.f, 1e-10f);
  o[4] = __fdiv_rz(-1.f, 3.f);
  o[5] = __bfloat162float(hsqrt(__float2bfloat16(2.f)));
  o[6] = erfinvf(0.5f);
  o[7] = cospif(0.5f);
  o[8] = (float)normcdfinv(0.975);
}
__global__ void integers(unsigned* o, unsigned n) {
  o[0] = __vadd4(0x01020304, 0xff010101);
  o[1] = __vcmpgts2(0x00010002, 0x0000ffff);
  o[2] = __vabsdiffu4(0x10203040, 0x20102030);
  o[3] = __dp4a(0x01020304u, 0x01010101u, 5u);
  o[4] = __float2uint_rn(3e10f);
  o[5] = (unsigned)__double2int_rd(-1.5);
  o[6] = 5u << n;
  o[7] = (unsigned)(-4 >> n);
  o[8] = (unsigned)(~0ull >> (n + 8));
}
template <class T>
struct Inner {
  template <int n>
  __device__ static int times(T v) {
    return n * v;
  }
};
template <class T>
__global__ void together(T* o) {
  static __shared__ Pair pairs[32];
  static const int table[4] = {1, 2, 3, 4};
  int i = threadIdx.x;
  pairs[i].a = i;
  __syncthreads();
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto odd = cg::binary_partition(warp, i % 2 == 1);
  auto third = cg::labeled_partition(warp, i % 3);
  o[i] = pairs[31 - i].a + Inner<T>::times<100>(odd.size()) + 1000 * third.thread_rank() + table[i % 4];
  int* p = BUG == 2 ? counter : first;
  if (i == 0) p[BUG == 1 ? 8 : BUG == 2 ? 2 : 7] = 3;
}

int main() {
  float *f, hf[9];
  unsigned *u, hu[9];
  int *g, hg[32];
  cudaMalloc(&f, sizeof hf), cudaMalloc(&u, sizeof hu), cudaMalloc(&g, sizeof hg);
  floats<<<1, 1>>>(f);
  integers<<<1, 1>>>(u, 32);
  together<<<1, 32>>>(g);
  cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost);
  cudaMemcpy(hu, u, sizeof hu, cudaMemcpyDeviceToHost);
  cudaMemcpy(hg, g, sizeof hg, cudaMemcpyDeviceToHost);
  for (float v : hf) printf("%.7g ", v);
  for (unsigned v : hu) printf("%x ", v);
  printf("%d %d\n", hg[0], hg[31]);
}
