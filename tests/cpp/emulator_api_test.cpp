// The emulator's driver and compiler functions: arguments, names, errors, limits, and that nothing is poisoned by any of them.
#include <cmath>
#include <ctime>
#include <thread>

#include "testing/expect.h"
#include "tests/cpp/emulator_fixture.h"

namespace {
using emu::Buffer;
using emu::launch;
using emu::Library;
using emu::Program;

const char* const kWords = R"(#pragma once
namespace words {
template <class T> __device__ inline T twice(T v) { return v + v; }
struct alignas(8) Four { unsigned short v[4]; };
__device__ inline float warp_sum(float v) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
}
)";
const char* const kSource = R"(#include "words/words.cuh"
// threadIdx.x in a comment, and a string: "threadIdx.x"
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
namespace my {
template <class T, int add>
__global__ void __launch_bounds__(256) scale(T* y, const T* x, T factor, long long n) {
  long long i = INDEX;
  if (i < n) y[i] = words::twice(x[i]) * factor + T(add);
}
// 64 x 4096 values are the size that the time is promised for
__global__ void rms_norm(const float4* x, const float4* w, float4* y, int vectors, float eps) {
  __shared__ float sums[32];
  x += blockIdx.x * vectors, y += blockIdx.x * vectors;
  float s = 0;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) { float4 a = x[i]; s += a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w; }
  s = words::warp_sum(s);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
  __syncthreads();
  s = words::warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0.f);
  float r = rsqrtf(s / (vectors * 4) + eps);
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    float4 a = x[i], b = w[i];
    y[i] = make_float4(a.x * r * b.x, a.y * r * b.y, a.z * r * b.z, a.w * r * b.w);
  }
}
}
__device__ float table[4] = {1, 2, 3, 4};
extern __shared__ int outside[];
extern "C" __global__ void mixed(char a, double b, words::Four c, short d, double* out, int* arch) {
  dim3 block = blockDim;
  outside[threadIdx.x] = (int)block.x;
  out[0] = a; out[1] = b; out[2] = c.v[3]; out[3] = d; out[4] = table[a & 3]; out[5] = outside[threadIdx.x];
  arch[0] = __CUDA_ARCH__;
#if defined(KW_EMULATED) && defined(__CUDACC_RTC__)
  arch[1] = VALUE;
#endif
}
extern "C" __global__ void integers(unsigned* u, float* f) {
  u[0] = atomicAdd(u + 1, 5u);
  u[2] = atomicCAS(u + 3, 7u, 9u);
  u[4] = __popc(0xf0f0u) + __clz(1) + __ffs(8);
  u[5] = __float_as_uint(1.0f);
  u[6] = __byte_perm(0x33221100u, 0x77665544u, 0x7610u);
  u[7] = atomicInc(u + 1, 5u);
  u[8] = __umulhi(0x80000000u, 6u);
  f[0] = rsqrtf(4.f) + exp2f(3.f) + fmaf(2.f, 3.f, 4.f) + __frcp_rn(2.f) + fmaxf(1.f, 0.f);
  f[1] = __uint_as_float(0x40000000u);
  f[2] = atomicAdd(f + 3, 0.5f);
}
extern "C" __global__ void endless(int* p) { for (;;) { p[blockIdx.x] = 1; } }
extern "C" __global__ void silent(int* p, int n) { if (blockIdx.x == 1) for (unsigned i = 1; n; i = i * 3u + 1u) ; p[blockIdx.x] = 1; }
extern "C" __global__ void waits_for_next_block(volatile int* p) { if (blockIdx.x == 0) while (p[0] == 0) {} else p[0] = 1; }
)";

void test_programs() {
  int major = 0, minor = 0, count = 0;
  KW_EXPECT_EQ(EMU(nvrtcVersion)(&major, &minor), NVRTC_SUCCESS);
  KW_EXPECT(major >= 12 && minor >= 1000);
  KW_EXPECT_EQ(EMU(nvrtcGetNumSupportedArchs)(&count), NVRTC_SUCCESS);
  KW_EXPECT(count >= 4);

  Program wrong("#include \"a.cuh\"\n\nextern \"C\" __global__ void k(float* p) {\n  p[threadIdx.x] = undeclared;\n}\n", {},
                {{"a.cuh", "struct A {};\n"}});
  KW_EXPECT_EQ(wrong.result, NVRTC_ERROR_COMPILATION);
  KW_EXPECT(wrong.log.find("folder/test.cu:4:") != std::string::npos);
  KW_EXPECT(wrong.log.find("undeclared") != std::string::npos);
  Program in_header("#include \"a/b.cuh\"\n", {}, {{"a/b.cuh", "#include \"c.cuh\"\n"}, {"a/c.cuh", "\n\n  oops;\n"}});
  KW_EXPECT(in_header.log.find("a/c.cuh:3:") != std::string::npos);
  Program missing("#include <nothing.h>\n");
  KW_EXPECT_EQ(missing.result, NVRTC_ERROR_COMPILATION);
  KW_EXPECT(missing.log.find("nothing.h") != std::string::npos);
  Program no_kernel("template <class T> __global__ void k(T*) {}\n", {"absent<int>"});
  KW_EXPECT_EQ(no_kernel.result, NVRTC_ERROR_COMPILATION);
  KW_EXPECT(no_kernel.log.find("name expression 'absent<int>'") != std::string::npos);
  Program option("extern \"C\" __global__ void k() {}\n", {}, {}, {"--gpu-architecture=sm_12"});
  KW_EXPECT_EQ(option.result, NVRTC_ERROR_INVALID_OPTION);
  Program ptx("extern \"C\" __global__ void k(int* p) {\n  asm volatile(\"wgmma.fence.sync.aligned;\");\n}\n");
  KW_EXPECT_EQ(ptx.result, NVRTC_ERROR_COMPILATION);
  KW_EXPECT(ptx.log.find("folder/test.cu:2:") != std::string::npos &&
            ptx.log.find("no PTX for instruction wgmma.fence") != std::string::npos);
  // GCC observes no struct that is passed by value to a function that it did not inline
  const std::string passing = "struct S { float v[8]; };\n__device__ __noinline__ float f(S s, int i) { return s.v[i]; }\n";
  Program unobserved(passing + "extern \"C\" __global__ void k(S* p, float* y, int i) { y[0] = f(p[1], i); }\n");
  KW_EXPECT_EQ(unobserved.result, NVRTC_ERROR_COMPILATION);
  KW_EXPECT(unobserved.log.find("k passes or gets a struct in memory by value in its call of f") != std::string::npos);
  Program shared(passing + "extern \"C\" __global__ void k(float* y, int i) { __shared__ S a[4]; a[i].v[3] = 1; y[0] = f(a[i], i); }\n");
  KW_EXPECT_EQ(shared.result, NVRTC_ERROR_COMPILATION);
  Program observed(passing + "extern \"C\" __global__ void k(S* p, float* y, int i) { S s = p[1]; y[0] = f(s, i); }\n");
  KW_EXPECT_EQ(observed.log, "");
  setenv("KWEMU_CXX", "no-such-compiler", 1);
  Program no_compiler("extern \"C\" __global__ void k() {}\n");
  unsetenv("KWEMU_CXX");
  KW_EXPECT_EQ(no_compiler.result, NVRTC_ERROR_COMPILATION);
  KW_EXPECT(no_compiler.log.find("'no-such-compiler' was not found") != std::string::npos);
}

void test_driver_states(const Program& good) {
  Program other("extern \"C\" __global__ void k() {}\n", {}, {}, {"-arch", "compute_80"});
  KW_EXPECT_EQ(other.log, "");
  KW_EXPECT_EQ(Library(other).result, CUDA_ERROR_NO_BINARY_FOR_GPU);
  CUlibrary none = nullptr;
  std::vector<char> foreign(4096, 0x7f);
  KW_EXPECT_EQ(EMU(cuLibraryLoadData)(&none, foreign.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_ERROR_INVALID_IMAGE);
  foreign = good.cubin;
  foreign[9] ^= 1;  // of another build
  KW_EXPECT_EQ(EMU(cuLibraryLoadData)(&none, foreign.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_ERROR_INVALID_IMAGE);

  CUdeviceptr p = 0;
  EMU(cuCtxSetCurrent)(nullptr);
  KW_EXPECT_EQ(EMU(cuMemAlloc)(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context = nullptr, now = nullptr;
  EMU(cuDevicePrimaryCtxRetain)(&context, 0);
  EMU(cuCtxPushCurrent)(context);
  KW_EXPECT_EQ(EMU(cuCtxGetCurrent)(&now), CUDA_SUCCESS);
  KW_EXPECT(now == context);
  KW_EXPECT_EQ(EMU(cuCtxPopCurrent)(&now), CUDA_SUCCESS);
  KW_EXPECT_EQ(EMU(cuMemAlloc)(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
  EMU(cuCtxSetCurrent)(context);
  EMU(cuDevicePrimaryCtxRelease)(0);

  KW_EXPECT_EQ(EMU(cuMemAlloc)(&p, size_t(1) << 45), CUDA_ERROR_OUT_OF_MEMORY);
  KW_EXPECT_EQ(EMU(cuMemFree)(12345), CUDA_ERROR_INVALID_VALUE);
  KW_EXPECT_EQ(EMU(cuStreamSynchronize)((CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
  unsigned type = 0;
  int on_host = 0;
  Buffer<int> b(16);
  KW_EXPECT_EQ(EMU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b.at), CUDA_SUCCESS);
  KW_EXPECT_EQ(type, (unsigned)CU_MEMORYTYPE_DEVICE);
  KW_EXPECT_EQ(EMU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&on_host), CUDA_ERROR_INVALID_VALUE);
  KW_EXPECT_EQ(EMU(cuMemsetD8)(b.at, 0, 65), CUDA_ERROR_INVALID_VALUE);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  KW_EXPECT_EQ(EMU(cuGetProcAddress)("cuMemAlloc", &found, CUDA_VERSION, 0, &status), CUDA_SUCCESS);
  KW_EXPECT(found == (void*)EMU(cuMemAlloc));
  KW_EXPECT_EQ(EMU(cuGetProcAddress)("cuNoSuchThing", &found, CUDA_VERSION, 0, &status), CUDA_ERROR_NOT_FOUND);
  const char* name = nullptr;
  KW_EXPECT_EQ(EMU(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &name), CUDA_SUCCESS);
  KW_EXPECT_EQ(std::string(name), "CUDA_ERROR_ILLEGAL_ADDRESS");
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  float ms = -1;
  KW_EXPECT_EQ(EMU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  KW_EXPECT_EQ(EMU(cuEventCreate)(&begin, 0) + EMU(cuEventCreate)(&end, 0), 0);
  KW_EXPECT_EQ(EMU(cuEventRecord)(begin, stream) + EMU(cuEventRecord)(end, stream), 0);
  KW_EXPECT_EQ(EMU(cuEventElapsedTime)(&ms, begin, end), CUDA_SUCCESS);
  KW_EXPECT(ms >= 0);
  KW_EXPECT_EQ(EMU(cuEventDestroy)(begin) + EMU(cuEventDestroy)(end) + EMU(cuStreamDestroy)(stream), 0);
  KW_EXPECT_EQ(EMU(cuStreamDestroy)(stream), CUDA_ERROR_INVALID_HANDLE);
}

void test_launches(const Program& program, const Library& library) {
  CUfunction scale = library.kernel(program.lowered("my::scale<double, 3>"));
  Buffer<double> x(std::vector<double>(1000, 2.0)), y(1000);
  KW_EXPECT_EQ(launch(scale, 4, 256, 0, y.at, x.at, 0.5, 1000LL), CUDA_SUCCESS);
  KW_EXPECT_EQ(y.host()[999], 2.0 * 2 * 0.5 + 3);
  KW_EXPECT(library.kernel("nothing") == nullptr);
  KW_EXPECT_EQ(launch(scale, 4, 1025, 0, y.at, x.at, 0.5, 1000LL), CUDA_ERROR_INVALID_VALUE);
  KW_EXPECT_EQ(launch(scale, 0, 256, 0, y.at, x.at, 0.5, 1000LL), CUDA_ERROR_INVALID_VALUE);
  KW_EXPECT_EQ(launch(scale, 4, 256, 64 * 1024, y.at, x.at, 0.5, 1000LL), CUDA_ERROR_INVALID_VALUE);  // not asked for first
  KW_EXPECT_EQ(EMU(cuFuncSetAttribute)(scale, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * 1024), CUDA_SUCCESS);
  KW_EXPECT_EQ(launch(scale, 4, 256, 64 * 1024, y.at, x.at, 0.5, 1000LL), CUDA_SUCCESS);
  KW_EXPECT_EQ(EMU(cuFuncSetAttribute)(scale, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300 * 1024), CUDA_ERROR_INVALID_VALUE);
  KW_EXPECT_EQ(launch((CUfunction)&y, 1, 1, 0), CUDA_ERROR_INVALID_HANDLE);

  struct Four {
    unsigned short v[4];
  } four = {{1, 2, 3, 44}};
  Buffer<double> out(6);
  Buffer<int> arch(2);
  CUfunction mixed = library.kernel("mixed");
  KW_EXPECT_EQ(launch(mixed, 1, 1, 4, (char)2, 2.5, four, (short)-4, out.at, arch.at), CUDA_SUCCESS);
  KW_EXPECT(out.host() == (std::vector<double>{2, 2.5, 44, -4, 3, 1}));
  KW_EXPECT(arch.host() == (std::vector<int>{900, 17}));
  struct __attribute__((packed)) {  // the same in one buffer, at the offsets that the device's alignment gives
    char a;
    char p0[7];
    double b;
    Four c;
    short d;
    char p1[6];
    CUdeviceptr out, arch;
  } packed = {1, {}, 3.5, four, 5, {}, out.at, arch.at};
  size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  KW_EXPECT_EQ(EMU(cuLaunchKernel)(mixed, 1, 1, 1, 1, 1, 1, 4, nullptr, nullptr, extra), CUDA_SUCCESS);
  KW_EXPECT(out.host() == (std::vector<double>{1, 3.5, 44, 5, 2, 1}));

  Buffer<unsigned> u(std::vector<unsigned>{0, 4, 0, 7, 0, 0, 0, 0, 0});
  Buffer<float> f(std::vector<float>{0, 0, 0, 1.5f});
  KW_EXPECT_EQ(launch(library.kernel("integers"), 1, 1, 0, u.at, f.at), CUDA_SUCCESS);
  KW_EXPECT(u.host() == (std::vector<unsigned>{4, 0, 7, 9, 8 + 31 + 4, 0x3f800000u, 0x77661100u, 9, 3}));
  KW_EXPECT(f.host() == (std::vector<float>{0.5f + 8 + 10 + 0.5f + 1, 2.f, 1.5f, 2.f}));
  KW_EXPECT_EQ(emu::report_count(), 0);

  CUresult from_thread = CUDA_ERROR_UNKNOWN;  // the modules' shared memory belongs to the OS thread that launches
  std::thread([&] {
    emu::start();
    from_thread = launch(mixed, 1, 1, 4, (char)3, 2.5, four, (short)-4, out.at, arch.at);
  }).join();
  KW_EXPECT_EQ(from_thread, CUDA_SUCCESS);
  KW_EXPECT_EQ(out.host()[0], 3.0);
}

void test_memory(const Program& program, const Library& library) {
  CUfunction scale = library.kernel(program.lowered("my::scale<float, 0>"));
  Buffer<float> x(std::vector<float>(100, 1.f)), y(100);
  KW_EXPECT_EQ(emu::unwritten(y.at), 400u);
  KW_EXPECT_EQ(launch(scale, 1, 128, 0, y.at, x.at, 1.f, 90LL), CUDA_SUCCESS);
  KW_EXPECT_EQ(emu::unwritten(y.at), 40u);
  KW_EXPECT(std::isnan(y.host()[95]));  // poisoned, and the copy is told
  KW_EXPECT_EQ(emu::first_kind(), "unwritten-output");
  emu::clear_reports();
  KW_EXPECT_EQ(launch(scale, 1, 128, 0, y.at, x.at, 1.f, 100LL), CUDA_SUCCESS);
  KW_EXPECT_EQ(emu::unwritten(y.at), 0u);
  emu::poison(x.at + 40, 4);
  KW_EXPECT_EQ(emu::unwritten(x.at), 4u);
  KW_EXPECT_EQ(launch(scale, 1, 128, 0, y.at, x.at, 1.f, 100LL), CUDA_ERROR_LAUNCH_FAILED);
  KW_EXPECT_EQ(emu::first_kind(), "uninit-global");
  KW_EXPECT_EQ(EMU(cuMemcpyDtoD)(x.at, y.at + 200, 200), CUDA_SUCCESS);  // a device copy carries what was written
  KW_EXPECT_EQ(emu::unwritten(x.at), 0u);
  emu::clear_reports();
  CUdeviceptr gone = 0;
  EMU(cuMemAlloc)(&gone, 400);
  EMU(cuMemFree)(gone);
  KW_EXPECT_EQ(launch(scale, 1, 128, 0, y.at, gone, 1.f, 100LL), CUDA_ERROR_ILLEGAL_ADDRESS);
  KW_EXPECT_EQ(emu::first_kind(), "use-after-free");
  emu::clear_reports();
  CUdeviceptr large = 0;  // sparse: 9 GiB that nobody touches cost nothing
  KW_EXPECT_EQ(EMU(cuMemAlloc)(&large, 9ull << 30), CUDA_SUCCESS);
  KW_EXPECT_EQ(EMU(cuMemsetD32)(large, 0, (9ull << 30) / 4), CUDA_SUCCESS);
  KW_EXPECT_EQ(launch(scale, 1, 128, 0, y.at, large + (8ull << 30), 1.f, 100LL), CUDA_SUCCESS);
  KW_EXPECT_EQ(EMU(cuMemFree)(large), CUDA_SUCCESS);
}

void test_limits(const Library& library) {
  Buffer<int> p(std::vector<int>(4, 0));
  emu::set("step_limit", "100000");
  KW_EXPECT_EQ(launch(library.kernel("endless"), 1, 32, 0, p.at), CUDA_ERROR_LAUNCH_TIMEOUT);
  KW_EXPECT_EQ(emu::first_kind(), "step-limit");
  KW_EXPECT(emu::report(0).find("block (0,0,0)") != std::string::npos);
  emu::set("step_limit", "4000000000");
  emu::clear_reports();
  emu::set("stuck_ms", "100");
  KW_EXPECT_EQ(launch(library.kernel("silent"), 2, 32, 0, p.at, 1), CUDA_ERROR_LAUNCH_TIMEOUT);
  KW_EXPECT_EQ(emu::first_kind(), "endless-loop");
  KW_EXPECT(emu::report(0).find("block (1,0,0)") != std::string::npos);
  emu::set("stuck_ms", "5000");
  emu::clear_reports();
  KW_EXPECT_EQ(launch(library.kernel("waits_for_next_block"), 2, 1, 0, p.at + 12), CUDA_ERROR_LAUNCH_TIMEOUT);
  KW_EXPECT_EQ(emu::first_kind(), "livelock");
  emu::clear_reports();
  KW_EXPECT_EQ(launch(library.kernel("silent"), 2, 32, 0, p.at, 0), CUDA_SUCCESS);
  KW_EXPECT_EQ(emu::set("schedule", "sideways"), 1);
  KW_EXPECT_EQ(emu::set("step_limit", "many"), 1);
}

void test_speed(const Program& program, const Library& library) {
  const int rows = 64, n = 4096;
  Buffer<float> x(std::vector<float>(rows * n, 2.f)), w(std::vector<float>(n, 3.f)), y(rows * n);
  CUfunction f = library.kernel(program.lowered("&my::rms_norm"));
  double best = 1e9;
  for (int i = 0; i < 20; i++) {
    timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    KW_EXPECT_EQ(launch(f, rows, 256, 0, x.at, w.at, y.at, n / 4, 1e-6f), CUDA_SUCCESS);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    best = std::min(best, (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6);
  }
  KW_EXPECT(std::abs(y.host()[rows * n - 1] - 3.f) < 1e-5f);
  printf("rms_norm 64 x 4096, all detectors: %.1f ms of processor time\n", best);
}
}  // namespace

int main() {
  int count = 0;
  KW_EXPECT_EQ(EMU(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
  emu::start();
  test_programs();
  const std::vector<std::string> expressions = {"my::scale<double, 3>", "my::scale<float, 0>", "&my::rms_norm"};
  Program program(kSource, expressions, {{"words/words.cuh", kWords}},
                  {"--gpu-architecture=sm_90", "-std=c++17", "-DVALUE=17", "--use_fast_math"});
  KW_EXPECT_EQ(program.log, "");
  test_driver_states(program);
  Library library(program);
  if (KW_EXPECT_EQ(library.result, CUDA_SUCCESS)) {
    test_launches(program, library);
    test_memory(program, library);
    test_limits(library);
    test_speed(program, library);
  }
  return kw::test::finish();
}
