// Launches and contexts against a driver made of a few functions that remember what they were asked.
#include <thread>

#include "kw/runtime/context.h"
#include "kw/runtime/device.h"
#include "kw/runtime/launch.h"
#include "testing/expect.h"

using namespace kw;

namespace {

struct Seen {
  CUlaunchConfig config{};
  CUlaunchAttribute attribute{};
  unsigned char first_param = 0;
  int launches = 0, retains = 0, pushes = 0, pops = 0, sets = 0, set_attributes = 0, max_shared = 0;
  CUresult launch_result = CUDA_SUCCESS, info_result = CUDA_SUCCESS;
} seen;
thread_local CUcontext now = nullptr;
CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(0x1000 + device)); }

Driver fake() {
  Driver d;
  d.cuGetErrorName = [](CUresult r, const char** name) {
    *name = r == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : r == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
                                            : nullptr;
    return CUDA_SUCCESS;
  };
  d.cuGetErrorString = [](CUresult, const char** text) {
    *text = nullptr;
    return CUDA_SUCCESS;
  };
  d.cuDeviceGetCount = [](int* count) {
    *count = 2;
    return CUDA_SUCCESS;
  };
  d.cuDeviceGet = [](CUdevice* device, int index) {
    *device = index;
    return CUDA_SUCCESS;
  };
  d.cuDevicePrimaryCtxRetain = [](CUcontext* c, CUdevice device) {
    seen.retains++;
    *c = context_of(device);
    return CUDA_SUCCESS;
  };
  d.cuCtxGetCurrent = [](CUcontext* c) {
    *c = now;
    return CUDA_SUCCESS;
  };
  d.cuCtxSetCurrent = [](CUcontext c) {
    seen.sets++;
    now = c;
    return CUDA_SUCCESS;
  };
  static thread_local CUcontext below;
  d.cuCtxPushCurrent = [](CUcontext c) {
    seen.pushes++;
    below = now, now = c;
    return CUDA_SUCCESS;
  };
  d.cuCtxPopCurrent = [](CUcontext* c) {
    seen.pops++;
    *c = now, now = below;
    return CUDA_SUCCESS;
  };
  d.cuMemGetInfo = [](size_t*, size_t*) { return seen.info_result; };
  d.cuKernelGetAttribute = [](int* value, CUfunction_attribute, CUkernel, CUdevice) {
    *value = 1000;
    return CUDA_SUCCESS;
  };
  d.cuKernelSetAttribute = [](CUfunction_attribute attribute, int value, CUkernel, CUdevice) {
    seen.set_attributes++;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) seen.max_shared = value;
    return CUDA_SUCCESS;
  };
  d.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void** params, void**) {
    seen.launches++;
    seen.config = *config;
    if (config->numAttrs) seen.attribute = config->attrs[0];
    seen.first_param = *static_cast<unsigned char*>(params[0]);
    return seen.launch_result;
  };
  return d;
}

kw_launch launch_of(uint32_t shared = 0, uint32_t cluster = 0) {
  kw_launch l{};
  l.grid[0] = 16, l.grid[1] = l.grid[2] = 1;
  l.block[0] = 128, l.block[1] = l.block[2] = 1;
  l.shared_bytes = shared, l.cluster = cluster;
  l.params[0] = 42, l.params_bytes = 1;
  return l;
}

void contexts(const Driver& cuda) {
  {
    ContextGuard guard(cuda, 0);  // a thread that had none
    KW_EXPECT_EQ(now, context_of(0));
  }
  KW_EXPECT_EQ(now, context_of(0));  // keeps it
  {
    ContextGuard guard(cuda, 0);  // right already: no call but the question
    KW_EXPECT_EQ(seen.pushes, 0);
    ContextGuard other(cuda, 1);
    KW_EXPECT_EQ(now, context_of(1));
  }
  KW_EXPECT_EQ(now, context_of(0));
  KW_EXPECT_EQ(seen.pushes, 1);
  KW_EXPECT_EQ(seen.pops, 1);
  std::thread([&] {
    ContextGuard guard(cuda, 1);
    KW_EXPECT_EQ(now, context_of(1));
  }).join();
  KW_EXPECT_EQ(seen.retains, 2);  // one per device, for the process
  KW_EXPECT_THROWS(ContextGuard(cuda, 2), "there is no CUDA device 2: this process sees 2");
  KW_EXPECT_THROWS(ContextGuard(cuda, -1), "there is no CUDA device -1");
  KW_EXPECT_THROWS(ContextGuard(cuda, 64), "there is no CUDA device 64");
}

void launches(Driver cuda) {
  const kw_device_facts& h200 = known_gpu("h200");
  Kernel kernel;
  kernel.expression = "test::kernel<1>";
  auto go = [&](const kw_launch& l, int device = 0) { enqueue(cuda, "op", kernel, l, device, h200, reinterpret_cast<CUstream>(7)); };

  go(launch_of());
  KW_EXPECT_EQ(seen.launches, 1);
  KW_EXPECT_EQ(seen.config.gridDimX, 16u);
  KW_EXPECT_EQ(seen.config.blockDimX, 128u);
  KW_EXPECT_EQ(seen.config.numAttrs, 0u);
  KW_EXPECT_EQ(seen.config.hStream, reinterpret_cast<CUstream>(7));
  KW_EXPECT_EQ(static_cast<int>(seen.first_param), 42);
  go(launch_of());
  KW_EXPECT_EQ(seen.set_attributes, 0);
  for (int i = 0; i < 3; i++) go(launch_of(48 << 10));  // with the kernel's own 1000 bytes more than 48 KB: told once, and all there is
  KW_EXPECT_EQ(seen.set_attributes, 1);
  KW_EXPECT_EQ(seen.max_shared, 232448 - 1000);
  go(launch_of(100 << 10), 1);  // once more for another device
  KW_EXPECT_EQ(seen.set_attributes, 2);
  go(launch_of(0, 4));
  KW_EXPECT_EQ(seen.config.numAttrs, 1u);
  KW_EXPECT_EQ(static_cast<int>(seen.attribute.id), static_cast<int>(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
  KW_EXPECT_EQ(seen.attribute.value.clusterDim.x, 4u);
  KW_EXPECT_EQ(seen.set_attributes, 2);
  for (int i = 0; i < 2; i++) go(launch_of(0, 16));
  KW_EXPECT_EQ(seen.set_attributes, 3);

  // Whose error it is: a launch is asynchronous, so it cannot report its own kernel's crash ...
  seen.launch_result = CUDA_ERROR_INVALID_VALUE;
  KW_EXPECT_THROWS(go(launch_of()), "op: the kernel test::kernel<1> could not be launched: CUDA_ERROR_INVALID_VALUE");
  seen.launch_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  KW_EXPECT_THROWS(go(launch_of()),
                   "op: not run, because the CUDA context already had the error CUDA_ERROR_ILLEGAL_ADDRESS from earlier work");
  // ... unless the driver waits for it.
  cuda.synchronous = true;
  KW_EXPECT_THROWS(go(launch_of()), "op: the kernel test::kernel<1> failed: CUDA_ERROR_ILLEGAL_ADDRESS");
  check_no_earlier_error(cuda, "op");
  seen.info_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  KW_EXPECT_THROWS(check_no_earlier_error(cuda, "op"), "from earlier work");
}

void plans() {
  const kw_device_facts& h200 = known_gpu("h200");
  kw_choice choice{};
  choice.kernel_count = 1;
  std::snprintf(choice.kernels[0].name, sizeof choice.kernels[0].name, "test::kernel<1>");
  Kernel kernel;
  kernel.params_bytes = 8;
  const Kernel* kernels[] = {&kernel};
  kw_plan plan{};
  plan.launch_count = 1;
  plan.launches[0] = launch_of();
  KW_EXPECT_THROWS(check_launches("op", plan, choice, h200, kernels),
                   "op: the kernel test::kernel<1> takes 8 bytes of parameters, but the room fills 1");
  check_launches("op", plan, choice, h200, nullptr);
  kernel.params_bytes = 1;
  check_launches("op", plan, choice, h200, kernels);
  plan.launches[0].kernel = 1;
  KW_EXPECT_THROWS(check_launches("op", plan, choice, h200, kernels), "op: launch 0 names kernel 1, but the room chose 1");
  plan.launches[0] = launch_of();
  plan.launches[0].grid[0] = 0x80000000u;
  KW_EXPECT_THROWS(check_launches("op", plan, choice, h200, kernels), "needs a grid of 2147483648 x 1 x 1 blocks");
  plan.launches[0].grid[0] = 0;  // nothing to do there, whatever else it says
  plan.launches[0].block[0] = 0;
  check_launches("op", plan, choice, h200, kernels);
  KW_EXPECT(is_idle(plan.launches[0]));
  plan.launch_count = 5;
  KW_EXPECT_THROWS(check_launches("op", plan, choice, h200, kernels), "planned 5 launches");
}

}  // namespace

int main() {
  Driver cuda = fake();
  contexts(cuda);
  launches(cuda);
  plans();
  return kw::test::finish();
}
