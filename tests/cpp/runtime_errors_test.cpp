// Whose fault it is: errors that the context had before, of somebody else's kernel, are named and not blamed on the call that meets them.
// The emulator's driver is made to report them, in the place where a GPU's driver would.
#include <cstdlib>

#include "faces/c/kernelwright.h"
#include "kw/runtime/device_buffer.h"
#include "kw/runtime/dispatch.h"
#include "testing/expect.h"
#include "tests/cpp/runtime_test_room.h"

using namespace kw;
using test_room::TestCall;

static CUresult reported = CUDA_ERROR_ILLEGAL_ADDRESS;

static void call(int64_t threads = 128) {
  DeviceBuffer x(0, 256), y(0, 256), z(0, 256);
  x.fill(0), y.fill(0);
  execute(TestCall(x.data(), y.data(), z.data(), {2, 32}, {.threads = threads}, KW_CUDA).bound);
}

// Each driver function that a call may meet the error in, in turn.
static void poisoned_context(Driver& cuda) {
  const std::string sentence = ", because the CUDA context already had the error CUDA_ERROR_ILLEGAL_ADDRESS";
  call();  // ready: the next calls only launch
  const Driver good = cuda;
  cuda.synchronous = false;
  cuda.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) { return reported; };
  KW_EXPECT_THROWS(call(), "test_axpby: not run" + sentence);
  KW_EXPECT_THROWS(call(), "from earlier work; the process has to be started anew. CUDA_LAUNCH_BLOCKING=1 shows which call it was");
  cuda = good;
  cuda.cuLibraryLoadData = [](CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned) {
    return reported;
  };
  KW_EXPECT_THROWS(call(64), "test_axpby: loading a kernel was not possible" + sentence);
  cuda = good;
  cuda.cuMemGetInfo = [](size_t*, size_t*) { return reported; };  // a driver that waits for each launch is asked beforehand
  KW_EXPECT_THROWS(call(), "test_axpby: not run" + sentence);
  cuda = good;

  // What this launch itself did wrong is not called earlier work.
  cuda.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) { return CUDA_ERROR_INVALID_VALUE; };
  KW_EXPECT_THROWS(call(), "test_axpby: the kernel test::axpby<float, 128> could not be launched: CUDA_ERROR_INVALID_VALUE");
  cuda.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) { return reported; };
  KW_EXPECT_THROWS(call(), "test_axpby: the kernel test::axpby<float, 128> failed: CUDA_ERROR_ILLEGAL_ADDRESS");  // synchronous: its own
  cuda = good;
  call();
}

// The status that a face makes an exception of.
static void status() {
  Driver& cuda = const_cast<Driver&>(driver());
  const Driver good = cuda;
  cuda.synchronous = false;
  cuda.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) { return reported; };
  DeviceBuffer x(0, 256), z(0, 256);
  x.fill(0);
  const int64_t sizes[] = {2, 32}, strides[] = {32, 1};
  const kw_tensor in{x.data(), sizes, strides, 2, KW_F32, KW_CUDA, 0}, out{z.data(), sizes, strides, 2, KW_F32, KW_CUDA, 0};
  const kw_argument inputs[] = {{&in, 1}, {nullptr, 0}}, results[] = {{&out, 1}};
  kw_attribute attributes[4] = {};
  attributes[2].i = 128;
  const kw_call one{inputs, results, attributes, nullptr};
  KW_EXPECT_EQ(kw_run(kw_op_find("test_axpby"), &one), KW_ERROR_DRIVER);
  KW_EXPECT(std::string(kw_last_error()).starts_with("test_axpby: not run, because the CUDA context already had"));
  cuda = good;
  // Warming up takes the same call without its memory.
  kw_tensor paper = in;
  paper.data = nullptr;
  const kw_argument described[] = {{&paper, 1}, {nullptr, 0}};
  kw_call two{described, nullptr, attributes, nullptr};
  KW_EXPECT_EQ(kw_warmup(kw_op_find("test_axpby"), &two), KW_OK);
  attributes[2].i = 0;
  KW_EXPECT_EQ(kw_warmup(kw_op_find("test_axpby"), &two), KW_ERROR_ARGUMENT);
  KW_EXPECT(std::string(kw_last_error()).starts_with("test_axpby: "));
  attributes[2].i = 128;
  two.inputs = nullptr;
  KW_EXPECT_EQ(kw_warmup(kw_op_find("test_axpby"), &two), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(kw_warmup(nullptr, &two), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(kw_warmup(kw_op_find("test_axpby"), nullptr), KW_ERROR_ARGUMENT);
}

int main() {
  for (const char* name : {"KW_NVRTC", "KW_KERNEL_PATH"}) unsetenv(name);
  setenv("KW_PACK", "0", 1);
  setenv("KW_CACHE", "0", 1);
  register_room(&test_room::room);
  // CUDA tensors on a machine without a driver: the op is named, and what can be done.
  setenv("KW_DRIVER", "/nonexistent/libcuda.so.1", 1);
  alignas(16) static float memory[64];
  KW_EXPECT_THROWS(execute(TestCall(memory, nullptr, memory, {2, 32}, {}, KW_CUDA).bound), "overlap");
  alignas(16) static float other[64];
  KW_EXPECT_THROWS(execute(TestCall(memory, nullptr, other, {2, 32}, {}, KW_CUDA).bound),
                   "test_axpby: the CUDA driver that KW_DRIVER names could not be loaded: /nonexistent/libcuda.so.1");
  setenv("KW_DRIVER", "emulator", 1);
  poisoned_context(const_cast<Driver&>(driver()));
  status();
  return kw::test::finish();
}
