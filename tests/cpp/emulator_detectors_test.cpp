// One planted bug per detector must be reported, by its kind; its correct twin must not. All kernels are one source: one compilation.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "testing/expect.h"
#include "tests/cpp/emulator_fixture.h"

namespace {
struct Case {
  const char* kernel;
  const char* kind;  // "" for a correct one
  unsigned grid = 1, block = 64, shared = 0, cluster = 1;
  CUresult result = CUDA_ERROR_LAUNCH_FAILED;
};
const CUresult address = CUDA_ERROR_ILLEGAL_ADDRESS;

const Case cases[] = {
    {"no_barrier", "shared-race"},
    {"with_barrier", ""},
    {"read_then_overwritten", "shared-race"},
    {"reused_early", "shared-race"},
    {"reused_after_barrier", ""},
    {"warp_synchronous", "shared-race", 1, 32},
    {"warp_synchronised", ""},
    {"blocks_add", "global-race", 4},
    {"blocks_add_atomically", "", 4},
    {"same_value", ""},
    {"other_value", "global-race"},
    {"shared_uninitialised", "uninit-shared"},
    {"shared_initialised", ""},
    {"global_uninitialised", "uninit-global"},
    {"atomic_uninitialised", "uninit-global"},
    {"one_past_the_end", "global-oob", 1, 64, 0, 1, address},
    {"up_to_the_end", ""},
    {"static_shared_overrun", "shared-oob", 1, 64, 0, 1, address},
    {"static_shared_exact", ""},
    {"dynamic_shared_overrun", "shared-oob", 1, 64, 252, 1, address},
    {"dynamic_shared_overrun", "", 1, 64, 256},
    {"misaligned_vector", "misaligned", 1, 64, 0, 1, CUDA_ERROR_MISALIGNED_ADDRESS},
    {"aligned_vector", ""},
    {"null_pointer", "null-pointer", 1, 64, 0, 1, address},
    {"host_pointer", "host-memory", 1, 64, 0, 1, address},
    {"others_local", "local-oob", 1, 64, 0, 1, address},
    {"two_barriers", "barrier-divergence"},
    {"barrier_against_shuffle", "shuffle-inactive", 1, 32},
    {"exit_before_barrier", "exit-before-barrier", 1, 64, 0, 1, CUDA_SUCCESS},
    {"exit_after_barrier", ""},
    {"shuffle_from_absent_lane", "shuffle-inactive"},
    {"shuffle_within_mask", ""},
    {"lane_outside_mask", "shuffle-inactive"},
    {"different_collectives", "warp-divergence"},
    {"half_warp_masks", ""},
    {"ticket_without_fence", "global-race", 4},
    {"ticket_with_one_fence", "no-acquire-fence", 4},
    {"ticket_with_fences", "", 4},
    {"local_index", "index-oob"},
    {"shift_by_32", "shift"},
    {"signed_overflow", "int-overflow"},
    {"integer_division_by_zero", "div-by-zero"},
    {"failed_assert", "assert", 1, 64, 0, 1, CUDA_ERROR_ASSERT},
    {"trap", "trap"},
    {"deep_recursion", "stack-overflow"},
    {"copy_without_wait", "async-pending"},
    {"copy_never_waited_for", "async-pending"},
    {"copy_with_wait", ""},
    {"bulk_without_wait", "async-pending"},
    {"bulk_wrong_bytes", "mbarrier-deadlock"},
    {"bulk_copy", ""},
    {"bulk_store_without_proxy_fence", "proxy-fence"},
    {"bulk_store", ""},
    {"cluster_read_at_once", "cluster-start", 2, 32, 0, 2},
    {"cluster_exit_early", "cluster-exit", 2, 32, 0, 2},
    {"cluster_read", "", 2, 32, 0, 2},
    {"mail_without_wait", "uninit-shared", 2, 32, 0, 2},
    {"mail_wrong_bytes", "mbarrier-deadlock", 2, 32, 0, 2},
    {"mail_over_unread_mail", "async-pending", 2, 32, 0, 2},
    {"mail_to_two_blocks", "mbarrier", 2, 32, 0, 2},
    {"mail_once", "", 2, 32, 0, 2},
    {"params_by_value", ""},
    {"memcpy_overrun", "global-oob", 1, 1, 0, 1, address},
    {"memcpy_exact", "", 1, 1},
    {"active_mask", ""},
    {"volatile_store_load", ""},
};

struct Params {
  CUdeviceptr x, y;
  long long n;
  double factor[20];
};

std::string kernels_text() {
  std::ifstream f(KW_SOURCE_DIR "/tests/cpp/emulator_kernels.cuh");
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

CUresult run(const Case& c, CUfunction f) {
  emu::Buffer<float> x(std::vector<float>(64, 1.f)), y(64);
  emu::Buffer<unsigned> counter(std::vector<unsigned>(4, 0u));
  void* host = &x;
  Params params{x.at, y.at, 64, {2.0}};
  void* args[] = {&x.at, &y.at, &counter.at, &host, &params};
  CUlaunchAttribute cluster = {};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = c.cluster;
  cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  CUlaunchConfig config = {};
  config.gridDimX = c.grid;
  config.blockDimX = c.block;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = c.shared;
  config.attrs = &cluster;
  config.numAttrs = c.cluster > 1;
  return EMU(cuLaunchKernelEx)(&config, f, args, nullptr);
}
}  // namespace

int main() {
  emu::start();
  emu::Program program(kernels_text());
  KW_EXPECT_EQ(program.log, "");
  KW_EXPECT_EQ(program.result, NVRTC_SUCCESS);
  emu::Library library(program);
  KW_EXPECT_EQ(library.result, CUDA_SUCCESS);
  CUfunction good = library.kernel("up_to_the_end");
  if (!good) return kw::test::finish();
  for (const char* schedule : {"inorder", "reverse", "shuffle", "greedy"}) {
    KW_EXPECT_EQ(emu::set("schedule", schedule), 0);
    for (auto& c : cases) {
      emu::clear_reports();
      CUfunction f = library.kernel(c.kernel);
      if (!KW_EXPECT(f != nullptr)) continue;
      CUresult result = run(c, f);
      std::string what = std::string(c.kernel) + " (" + schedule + "): ";
      KW_EXPECT_EQ(what + emu::first_kind(), what + c.kind);
      KW_EXPECT_EQ(what + std::to_string(result), what + std::to_string(*c.kind ? c.result : CUDA_SUCCESS));
      if (*c.kind) {  // it names the kernel, and nothing is left behind
        KW_EXPECT(emu::report(0).find(c.kernel) != std::string::npos);
        emu::clear_reports();
        KW_EXPECT_EQ(run({"up_to_the_end", ""}, good), CUDA_SUCCESS);
        KW_EXPECT_EQ(emu::report_count(), 0);
      }
    }
  }
  KW_EXPECT_EQ(emu::set("schedule", "inorder"), 0);
  // A report says where: the buffer, and both places of a race by the lines of the source.
  auto all_reports = [&](const char* kernel) {
    emu::clear_reports();
    run({kernel, ""}, library.kernel(kernel));
    std::string all;
    for (int i = 0; i < emu::report_count(); i++) all += emu::report(i);
    return all;
  };
  std::string race = all_reports("read_then_overwritten");
  std::string text = kernels_text();
  size_t at = text.find("read_then_overwritten");
  auto line_of = [&](const char* code) {
    return "folder/test.cu:" + std::to_string(std::count(text.begin(), text.begin() + (long)text.find(code, at), '\n') + 1);
  };
  KW_EXPECT(race.find("__shared__ values at byte ") != std::string::npos);
  KW_EXPECT(race.find("  at      " + line_of("y[tid()]") + "\n") != std::string::npos);
  KW_EXPECT(race.find("written by block (0,0,0) thread (31,0,0) at " + line_of("= 2;")) != std::string::npos);
  KW_EXPECT(race.find("read by block (0,0,0) thread (31,0,0) at " + line_of("y[tid()]")) != std::string::npos);
  KW_EXPECT(all_reports("one_past_the_end").find("(256 bytes) at byte 256 of 256") != std::string::npos);
  emu::clear_reports();  // equal values are forgiven, unless asked
  emu::set("strict", "1");
  KW_EXPECT_EQ(run({"same_value", ""}, library.kernel("same_value")), CUDA_ERROR_LAUNCH_FAILED);
  emu::set("strict", "0");
  return kw::test::finish();
}
