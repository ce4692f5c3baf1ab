// Inline PTX as public kernels have it; -DBUG=1 reads an asynchronous copy that nobody waited for, 2 a load beyond its array, 3 a store that
// races, 4 instructions that the emulator does not know.
#include <cstdio>
#include <cuda_fp16.h>

#ifndef BUG
#define BUG 0
#endif
#define LOAD4(d, p)                                                         \
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" \
               : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w)                 \
               : "l"(p))

__device__ unsigned in_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ int lane() {
  int r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}

__global__ void various(const float4* x, float* y, unsigned* bits) {
  __shared__ __align__(16) float tile[128];
  float4 v;
  LOAD4(v, x + threadIdx.x + (BUG == 2));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\n" ::"r"(in_shared(tile + threadIdx.x * 4)), "l"(x + threadIdx.x));
  asm volatile("cp.async.commit_group;");
#if BUG != 1
  asm volatile("cp.async.wait_group %0;" ::"n"(0));
#endif
  asm volatile("bar.sync 0;" ::: "memory");
  float sum = v.x + v.y + v.z + v.w, chosen, other;
  asm("{\n .reg .pred p;\n .reg .b32 t<2>;\n setp.gt.s32 p, %1, 3;\n mov.b32 t0, 0f3F800000;\n selp.f32 %0, %2, t0, p;\n}"
      : "=f"(chosen)
      : "r"(lane()), "f"(sum));
  asm("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=f"(other) : "f"(chosen));
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(y + 32), "f"(1.f));
  asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(y + (BUG == 3 ? threadIdx.x / 2 : threadIdx.x)), "f"(other + tile[127 - threadIdx.x])
               : "memory");
  if (threadIdx.x) return;
  unsigned long long wide;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(0x80000000u), "r"(6));
  asm("bfe.u32 %0, %1, 4, 8;" : "=r"(bits[0]) : "r"(0x12345678));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(bits[1]) : "r"(5), "r"(3), "r"(9));
  asm("shl.b32 %0, %1, 32;" : "=r"(bits[2]) : "r"(5));
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(bits[3]) : "f"(-2.7f));
  asm("{ mov.b64 {%0, %1}, %2; }" : "=r"(bits[4]), "=r"(bits[5]) : "l"(wide));
  unsigned short half_bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half_bits) : "f"(1.5f));
  bits[6] = half_bits;
#if BUG == 4
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

// D = A B by a warp: ldmatrix, mma.sync.
__global__ void product(const half* a, const half* b, float* d) {
  __shared__ __align__(16) half rows[16 * 16], columns[8 * 16];
  int l = threadIdx.x;
  for (int i = l; i < 256; i += 32) rows[i] = a[i];
  for (int i = l; i < 128; i += 32) columns[i] = b[i];
  __syncwarp();
  unsigned r[4], q[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(in_shared(rows + (l % 16) * 16 + (l / 16) * 8)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(q[0]), "=r"(q[1])
               : "r"(in_shared(columns + (l % 8) * 16 + (l / 8 % 2) * 8)));
  float c[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(q[0]), "r"(q[1]));
  for (int i = 0; i < 4; i++) d[(l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2] = c[i];
}

int main() {
  float4* x;
  float *y, h[128];
  unsigned *bits, b[7];
  cudaMalloc(&x, 512), cudaMalloc(&y, 132), cudaMalloc(&bits, sizeof b);
  for (int i = 0; i < 128; i++) h[i] = (float)i;
  cudaMemcpy(x, h, 512, cudaMemcpyHostToDevice);
  cudaMemset(y, 0, 132);
  various<<<1, 32>>>(x, y, bits);
  cudaMemcpy(h, y, 132, cudaMemcpyDeviceToHost);
  cudaMemcpy(b, bits, sizeof b, cudaMemcpyDeviceToHost);
  printf("%g %g %g %g\n%x %x %x %d %x %x %x\n", h[0], h[5], h[31], h[32], b[0], b[1], b[2], (int)b[3], b[4], b[5], b[6]);

  half a[256], c[128], *da, *dc;
  float* d;
  for (int i = 0; i < 256; i++) a[i] = __float2half(i % 7 - 3);
  for (int i = 0; i < 128; i++) c[i] = __float2half(i % 5 - 2);
  cudaMalloc(&da, sizeof a), cudaMalloc(&dc, sizeof c), cudaMalloc(&d, 512);
  cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
  cudaMemcpy(dc, c, sizeof c, cudaMemcpyHostToDevice);
  product<<<1, 32>>>(da, dc, d);
  cudaMemcpy(h, d, 512, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      float sum = 0;
      for (int k = 0; k < 16; k++) sum += __half2float(a[i * 16 + k]) * __half2float(c[j * 16 + k]);
      wrong += sum != h[i * 8 + j];
    }
  printf("%d products wrong\n", wrong);
}
