// Kernels whose accesses have known costs; emulator_access_test.cpp has the numbers. One warp each, unless said otherwise.
typedef unsigned long long u64;
#define ARGS const float *x, float *y, unsigned *counter
__device__ inline int lane() { return (int)threadIdx.x; }
__device__ float kept[32];

// ---- global memory
extern "C" __global__ void coalesced(ARGS) { y[lane()] = x[lane()]; }
extern "C" __global__ void stride_2(ARGS) { y[lane()] = x[2 * lane()]; }
extern "C" __global__ void stride_32(ARGS) { y[lane()] = x[32 * lane()]; }
extern "C" __global__ void one_off(ARGS) { y[lane()] = x[lane() + 1]; }
extern "C" __global__ void broadcast(ARGS) { y[lane()] = x[5]; }
extern "C" __global__ void backwards(ARGS) { y[lane()] = x[31 - lane()]; }
extern "C" __global__ void float2s(ARGS) { ((float2*)y)[lane()] = ((const float2*)x)[lane()]; }
extern "C" __global__ void float4s(ARGS) { ((float4*)y)[lane()] = ((const float4*)x)[lane()]; }
extern "C" __global__ void bytes(ARGS) { ((char*)y)[lane()] = ((const char*)x)[lane()]; }
extern "C" __global__ void odd_lanes(ARGS) {
  if (lane() & 1) y[lane()] = x[lane()];
}
extern "C" __global__ void eight_rows(ARGS) {
  float sum = 0;
  for (int i = 0; i < 8; i++) sum += x[i * 32 + lane()];
  y[lane()] = sum;
}
extern "C" __global__ void for_long(ARGS) {  // 40000 executions with no meeting
  float sum = 0;
  for (int i = 0; i < 40000; i++) sum += x[lane()];
  y[lane()] = sum;
}
extern "C" __global__ void read_twice(ARGS) { y[lane()] = x[lane()] + x[lane()]; }
// Half of the lanes leave the loop early. The second time must not be counted together with the first.
extern "C" __global__ void leave_early(ARGS) {
  float sum = 0;
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < (lane() & 1 ? 1 : 2); i++) sum += x[i * 32 + lane()];
    __syncwarp();
  }
  y[lane()] = sum;
}
extern "C" __global__ void add_to_one(ARGS) { atomicAdd(counter, 1u); }
extern "C" __global__ void of_variable(ARGS) {
  kept[lane()] = x[lane()];
  y[lane()] = kept[lane()];
}
__device__ inline float inner(const float* p) { return p[lane()]; }
__device__ inline float outer(const float* p) { return 2 * inner(p); }
extern "C" __global__ void through_functions(ARGS) { y[lane()] = outer(x); }

// ---- shared memory
template <class T, int n>
__device__ inline T* memory() {
  __shared__ __align__(16) T values[n];
  return values;
}
template <class T>
__device__ inline void shared(int at, float* y) {  // writes at index `at`
  T* values = memory<T, 1056>();
  values[at] = T{};
  __syncwarp();
  y[lane()] = 0;
}
extern "C" __global__ void shared_row(ARGS) { shared<float>(lane(), y); }
extern "C" __global__ void shared_column(ARGS) { shared<float>(lane() * 32, y); }
extern "C" __global__ void shared_padded(ARGS) { shared<float>(lane() * 33, y); }
extern "C" __global__ void shared_stride_2(ARGS) { shared<float>(lane() * 2, y); }
extern "C" __global__ void shared_bytes(ARGS) { shared<char>(lane(), y); }
extern "C" __global__ void shared_doubles(ARGS) { shared<double>(lane(), y); }
extern "C" __global__ void shared_doubles_stride_2(ARGS) { shared<double>(lane() * 2, y); }
extern "C" __global__ void shared_float4s(ARGS) { shared<float4>(lane(), y); }
extern "C" __global__ void shared_float4s_stride_2(ARGS) { shared<float4>(lane() * 2, y); }
extern "C" __global__ void shared_broadcast(ARGS) {
  float* values = memory<float, 32>();
  values[lane()] = 1;
  __syncwarp();
  y[lane()] = values[7];
}
extern "C" __global__ void shared_double_pairs(ARGS) {
  double* values = memory<double, 32>();
  values[lane()] = 1;
  __syncwarp();
  y[lane()] = (float)values[lane() / 2];
}
extern "C" __global__ void shared_float4_pairs(ARGS) {
  float4* values = memory<float4, 32>();
  values[lane()] = make_float4(1, 1, 1, 1);
  __syncwarp();
  ((float4*)y)[lane()] = values[lane() / 2];
}
extern "C" __global__ void shared_atomic(ARGS) {
  unsigned* sum = memory<unsigned, 1>();
  if (lane() == 0) *sum = 0;
  __syncwarp();
  atomicAdd(sum, 1u);
  __syncwarp();
  y[lane()] = (float)*sum;
}

// ---- copies
extern "C" __global__ void copy_async(ARGS) {  // the upper half of the lanes is filled with zeros
  float4* values = memory<float4, 32>();
  kwemu_cp_async(values + lane(), x + lane() * 4, 16, lane() < 16 ? 16 : 0);
  kwemu_cp_async_commit();
  kwemu_cp_async_wait(0);
  y[lane()] = values[lane()].x;
}
extern "C" __global__ void copy_bulk(ARGS) {
  float4* values = memory<float4, 32>();
  __shared__ u64 barrier;
  if (lane() == 0) kwemu_mbarrier_init(&barrier, 1);
  __syncwarp();
  if (lane() == 0) {
    kwemu_mbarrier_arrive(&barrier, 512);
    kwemu_bulk_load(values, x, 512, &barrier);
  }
  kwemu_mbarrier_wait(&barrier, 0);
  y[lane()] = values[lane()].x;
}
