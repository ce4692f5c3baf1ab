// Kernels with one planted bug each, beside their correct twins (emulator_detectors_test.cpp says which is which).
// x: 64 floats, all ones. y: 64 floats, never written. counter: 4 zeros. host: an address of the host.
struct Params {
  const float* x;
  float* y;
  long long n;
  double factor[20];
};
#define ARGS const float *x, float *y, unsigned *counter, float *host, Params params
typedef unsigned long long u64;
__device__ inline int tid() { return (int)threadIdx.x; }

// ---- races
extern "C" __global__ void no_barrier(ARGS) {
  __shared__ float values[64];
  values[tid()] = 0;
  __syncthreads();
  values[tid()] = x[tid()];
  y[tid()] = values[63 - tid()];
}
extern "C" __global__ void with_barrier(ARGS) {
  __shared__ float values[64];
  values[tid()] = x[tid()];
  __syncthreads();
  y[tid()] = values[63 - tid()];
}
extern "C" __global__ void read_then_overwritten(ARGS) {
  __shared__ float values[64];
  values[tid()] = 0;
  __syncthreads();
  y[tid()] = values[63 - tid()];
  values[tid()] = 2;
}
__device__ inline float reuse(const float* x, bool wait) {
  __shared__ float values[64];
  float sum = 0;
  for (int i = 0; i < 2; i++) {
    if (wait) __syncthreads();
    values[tid()] = x[tid()] + i + tid();
    __syncthreads();
    sum += values[(tid() + 32) % 64];
  }
  return sum;
}
extern "C" __global__ void reused_early(ARGS) { y[tid()] = reuse(x, false); }
extern "C" __global__ void reused_after_barrier(ARGS) { y[tid()] = reuse(x, true); }
extern "C" __global__ void warp_synchronous(ARGS) {
  __shared__ float values[64];
  values[tid()] = 0;
  __syncthreads();
  values[tid()] = x[tid()];
  y[tid()] = values[tid() ^ 1];
}
extern "C" __global__ void warp_synchronised(ARGS) {
  __shared__ float values[64];
  values[tid()] = x[tid()];
  __syncwarp();
  y[tid()] = values[tid() ^ 1];
}
extern "C" __global__ void blocks_add(ARGS) {
  if (tid() == 0) counter[0] += 1;
}
extern "C" __global__ void blocks_add_atomically(ARGS) { atomicAdd(&counter[0], 1u); }
extern "C" __global__ void same_value(ARGS) { y[0] = 5.f; }
extern "C" __global__ void other_value(ARGS) { y[0] = (float)tid(); }

// ---- initialisation
extern "C" __global__ void shared_uninitialised(ARGS) {
  __shared__ float values[64];
  if (tid() < 63) values[tid()] = x[tid()];
  __syncthreads();
  y[tid()] = values[tid()];
}
extern "C" __global__ void shared_initialised(ARGS) {
  __shared__ float values[64];
  if (tid() < 64) values[tid()] = x[tid()];
  __syncthreads();
  y[tid()] = values[tid()];
}
extern "C" __global__ void global_uninitialised(ARGS) { y[tid()] += x[tid()]; }
extern "C" __global__ void atomic_uninitialised(ARGS) { atomicAdd(&y[tid()], 1.f); }

// ---- bounds and addresses
extern "C" __global__ void one_past_the_end(ARGS) { y[tid()] = x[tid() + 1]; }
extern "C" __global__ void up_to_the_end(ARGS) { y[tid()] = x[63 - tid()]; }
template <int limit>
__device__ inline void fill_shared(float* y) {
  __shared__ float values[32];
  __shared__ float others[32];
  float* p = values;
  if (tid() < 32) others[tid()] = 1.f;
  if (tid() < limit) p[tid()] = 2.f;
  __syncthreads();
  if (tid() < 32) y[tid()] = p[tid()] + others[tid()];
}
extern "C" __global__ void static_shared_overrun(ARGS) { fill_shared<33>(y); }
extern "C" __global__ void static_shared_exact(ARGS) { fill_shared<32>(y); }
template <class T>
__device__ inline void dynamic_words(const T* x, T* y) {
  extern __shared__ __align__(16) T words[];
  words[tid()] = x[tid()];
  __syncthreads();
  y[tid()] = words[63 - tid()];
}
extern "C" __global__ void dynamic_shared_overrun(ARGS) { dynamic_words(x, y); }
extern "C" __global__ void misaligned_vector(ARGS) {
  float4 v = *reinterpret_cast<const float4*>(x + 1);
  y[tid()] = v.x + v.w;
}
extern "C" __global__ void aligned_vector(ARGS) {
  float4 v = *reinterpret_cast<const float4*>(x + 4);
  y[tid()] = v.x + v.w;
}
extern "C" __global__ void null_pointer(ARGS) {
  const float* p = params.n == 64 ? nullptr : x;
  y[tid()] = p[tid()];
}
extern "C" __global__ void host_pointer(ARGS) { y[tid()] = host[tid()]; }
extern "C" __global__ void others_local(ARGS) {
  __shared__ float* pointer;
  float mine[4];
  mine[params.n & 3] = x[tid()];
  if (tid() == 0) pointer = mine;
  __syncthreads();
  y[tid()] = pointer[0];
}

// ---- divergence
extern "C" __global__ void two_barriers(ARGS) {
  if (tid() < 32)
    __syncthreads();
  else
    __syncthreads();
}
extern "C" __global__ void barrier_against_shuffle(ARGS) {
  if (tid() < 16)
    __syncthreads();
  else
    y[tid()] = __shfl_xor_sync(0xffffffffu, x[tid()], 1);
}
extern "C" __global__ void exit_before_barrier(ARGS) {
  if (tid() >= 32) return;
  __syncthreads();
}
extern "C" __global__ void exit_after_barrier(ARGS) {
  __syncthreads();
  if (tid() >= 32) return;
  y[tid()] = 1.f;
}
extern "C" __global__ void shuffle_from_absent_lane(ARGS) {
  if (tid() % 32 < 16) y[tid()] = __shfl_down_sync(0x0000ffffu, x[tid()], 8);
}
extern "C" __global__ void shuffle_within_mask(ARGS) {
  if (tid() % 32 < 16) y[tid()] = __shfl_down_sync(0x0000ffffu, x[tid()], 8, 16);
}
extern "C" __global__ void lane_outside_mask(ARGS) { y[tid()] = __shfl_xor_sync(0x0000ffffu, x[tid()], 1); }
extern "C" __global__ void different_collectives(ARGS) {
  if (tid() % 2)
    y[tid()] = __shfl_xor_sync(0xffffffffu, x[tid()], 1);
  else
    y[tid()] = (float)__ballot_sync(0xffffffffu, 1);
}
extern "C" __global__ void half_warp_masks(ARGS) {
  unsigned mask = tid() % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  float v = x[tid()];
  for (int i = tid() % 32 < 16 ? 8 : 4; i > 0; i /= 2) v += __shfl_xor_sync(mask, v, i);
  y[tid()] = v;
}

// ---- fences: the last block sums what the others wrote
__device__ inline void ticket(float* y, unsigned* counter, bool release, bool acquire) {
  __shared__ bool last;
  if (tid() == 0) {
    y[blockIdx.x] = 1.f + (float)blockIdx.x;
    if (release) __threadfence();
    last = atomicAdd(counter, 1u) == gridDim.x - 1;
    if (acquire) __threadfence();
  }
  __syncthreads();
  if (!last || tid() != 0) return;
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; b++) sum += y[b];
  y[63] = sum;
}
extern "C" __global__ void ticket_without_fence(ARGS) { ticket(y, counter, false, false); }
extern "C" __global__ void ticket_with_one_fence(ARGS) { ticket(y, counter, true, false); }
extern "C" __global__ void ticket_with_fences(ARGS) { ticket(y, counter, true, true); }

// ---- undefined behaviour
extern "C" __global__ void local_index(ARGS) {
  float values[4] = {x[0], x[1], x[2], x[3]};
  int i = (int)params.n / 16 - (tid() > 0);
  y[tid()] = values[i];
}
extern "C" __global__ void shift_by_32(ARGS) { counter[0] = 1u << (params.n / 2); }
extern "C" __global__ void signed_overflow(ARGS) {
  int big = 0x7fffffff - 64;
  y[tid()] = (float)(big + (int)params.n + 1);
}
extern "C" __global__ void integer_division_by_zero(ARGS) { y[tid()] = (float)(tid() / ((int)params.n - 64)); }
extern "C" __global__ void failed_assert(ARGS) { assert(tid() < 63); }
extern "C" __global__ void trap(ARGS) {
  if (tid() == 5) __trap();
}
__device__ __noinline__ int deep(int n, volatile int* p) {
  volatile int local[64];
  local[n & 63] = n;
  return n > 100000000 ? 0 : deep(n + 1, local) + *p;
}
extern "C" __global__ void deep_recursion(ARGS) {
  volatile int one = 1;
  y[tid()] = (float)deep(0, &one);
}

// ---- asynchronous copies
__device__ inline void copy16(const float* x, float* y, bool wait) {
  __shared__ __align__(16) float values[64];
  if (tid() < 16) kwemu_cp_async(&values[tid() * 4], x + tid() * 4, 16, 16);
  kwemu_cp_async_commit();
  if (wait) kwemu_cp_async_wait(0);
  __syncthreads();
  y[tid()] = values[63 - tid()];
  kwemu_cp_async_wait(0);
}
extern "C" __global__ void copy_without_wait(ARGS) { copy16(x, y, false); }
extern "C" __global__ void copy_with_wait(ARGS) { copy16(x, y, true); }
extern "C" __global__ void copy_never_waited_for(ARGS) {
  __shared__ __align__(16) float values[64];
  if (tid() < 16) kwemu_cp_async(&values[tid() * 4], x + tid() * 4, 16, 16);
}
__device__ inline void bulk(const float* x, float* y, unsigned bytes, bool wait) {
  __shared__ __align__(16) float values[64];
  __shared__ u64 barrier;
  if (tid() == 0) kwemu_mbarrier_init(&barrier, 1);
  __syncthreads();
  if (tid() == 0) {
    kwemu_mbarrier_arrive(&barrier, bytes);
    kwemu_bulk_load(values, x, 256, &barrier);
  }
  if (wait) kwemu_mbarrier_wait(&barrier, 0);
  if (!wait) __syncthreads();
  y[tid()] = values[63 - tid()];
}
extern "C" __global__ void bulk_without_wait(ARGS) { bulk(x, y, 256, false); }
extern "C" __global__ void bulk_wrong_bytes(ARGS) { bulk(x, y, 272, true); }
extern "C" __global__ void bulk_copy(ARGS) { bulk(x, y, 256, true); }
__device__ inline void store_bulk(const float* x, float* y, bool fence) {
  __shared__ __align__(16) float values[64];
  values[tid()] = x[tid()];
  if (fence) kwemu_fence_proxy();
  __syncthreads();
  if (tid() == 0) {
    kwemu_bulk_store(y, values, 256);
    kwemu_bulk_commit();
    kwemu_bulk_wait(0);
  }
}
extern "C" __global__ void bulk_store_without_proxy_fence(ARGS) { store_bulk(x, y, false); }
extern "C" __global__ void bulk_store(ARGS) { store_bulk(x, y, true); }

// ---- clusters
__device__ inline void cluster(const float* x, float* y, bool start, bool end) {
  __shared__ float values[32];
  values[tid()] = x[tid()];
  if (start) kwemu_cluster_barrier();
  const float* peer = (const float*)kwemu_map_shared(values, kwemu_cluster_rank() ^ 1);
  y[blockIdx.x * 32 + threadIdx.x] = peer[tid()];
  if (end) kwemu_cluster_barrier();
}
// Each block sends its 32 values to the other one (st.async), and reads what has come.
__device__ inline void mail(const float* x, float* y, unsigned bytes, bool wait, bool twice) {
  __shared__ float inbox[32];
  __shared__ u64 box;
  if (threadIdx.x == 0) kwemu_mbarrier_init(&box, 1);
  kwemu_cluster_barrier();
  const unsigned peer = kwemu_cluster_rank() ^ 1;
  for (int turn = 0; turn < (twice ? 2 : 1); turn++) {
    if (threadIdx.x == 0) kwemu_mbarrier_arrive(&box, bytes);
    const float value = x[tid()] + (float)turn;
    kwemu_send_async(kwemu_map_shared(&inbox[threadIdx.x], peer), &value, 4, kwemu_map_shared(&box, peer));
    if (wait) kwemu_mbarrier_wait(&box, (unsigned)turn);
    y[tid()] = inbox[31 - threadIdx.x];  // the second letter may come while another thread still reads the first
  }
}
extern "C" __global__ void mail_without_wait(ARGS) { mail(x, y, 128, false, false); }
extern "C" __global__ void mail_wrong_bytes(ARGS) { mail(x, y, 132, true, false); }
extern "C" __global__ void mail_over_unread_mail(ARGS) { mail(x, y, 128, true, true); }
extern "C" __global__ void mail_once(ARGS) { mail(x, y, 128, true, false); }
extern "C" __global__ void mail_to_two_blocks(ARGS) {
  __shared__ float inbox[32];
  __shared__ u64 box;
  if (threadIdx.x == 0) kwemu_mbarrier_init(&box, 1);
  kwemu_cluster_barrier();
  const float value = x[tid()];
  kwemu_send_async(&inbox[threadIdx.x], &value, 4, kwemu_map_shared(&box, kwemu_cluster_rank() ^ 1));
  kwemu_cluster_barrier();
}
extern "C" __global__ void cluster_read_at_once(ARGS) { cluster(x, y, false, true); }
extern "C" __global__ void cluster_exit_early(ARGS) { cluster(x, y, true, false); }
extern "C" __global__ void cluster_read(ARGS) { cluster(x, y, true, true); }

// ---- and what must pass
extern "C" __global__ void params_by_value(const float* x, float* y, unsigned* counter, float* host, const Params params) {
  if (tid() < params.n) params.y[tid()] = params.x[tid()] * (float)params.factor[tid() % 20];
}
extern "C" __global__ void memcpy_overrun(ARGS) { memcpy(y, x, (size_t)params.n * 4 + 4); }
extern "C" __global__ void memcpy_exact(ARGS) { memcpy(y, x, (size_t)params.n * 4); }
extern "C" __global__ void active_mask(ARGS) {
  if (tid() % 2) y[tid()] = (float)__popc(__activemask());
}
extern "C" __global__ void volatile_store_load(ARGS) {
  volatile unsigned* flag = counter;
  if (tid() == 0) *flag = 1;
  while (*flag == 0) {
  }
}
