// The whole way of a CUDA call, through the emulator's driver and compiler: caches, an edited kernel, threads, errors.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kw/runtime/copy_rate.h"
#include "kw/runtime/device.h"
#include "kw/runtime/device_buffer.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/kernel_cache.h"
#include "testing/expect.h"
#include "tests/cpp/runtime_test_room.h"

namespace fs = std::filesystem;
using namespace kw;
using test_room::Attributes;
using test_room::TestCall;

static void spit(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct Arrays {  // x = 0 1 2 ..., y = 100
  int64_t n;
  DeviceBuffer x, y, z;
  explicit Arrays(int64_t count) : n(count), x(0, bytes()), y(0, bytes()), z(0, bytes()) {
    std::vector<float> host(static_cast<size_t>(n));
    for (size_t i = 0; i < host.size(); i++) host[i] = static_cast<float>(i);
    x.upload(host.data(), bytes());
    std::fill(host.begin(), host.end(), 100.0f);
    y.upload(host.data(), bytes());
  }
  size_t bytes() const { return static_cast<size_t>(n) * sizeof(float); }
  std::vector<float> result() const {
    check(driver(), driver().cuStreamSynchronize(nullptr), "waiting");
    std::vector<float> host(static_cast<size_t>(n));
    z.download(host.data(), bytes());
    return host;
  }
};

// The whole result right?
static bool right(const std::vector<float>& z, float a, float b) {
  for (size_t i = 0; i < z.size(); i++)
    if (z[i] != a * static_cast<float>(i) + b * 100) return false;
  return !z.empty();
}

static void run(Arrays& arrays, std::vector<int64_t> shape, Attributes attributes = {}) {
  execute(TestCall(arrays.x.data(), arrays.y.data(), arrays.z.data(), std::move(shape), attributes, KW_CUDA).bound);
}

static void calls() {
  const Op& op = get_op("test_axpby");
  Arrays arrays(int64_t{8} * 96);
  run(arrays, {8, 96}, {.a = 2, .b = 3});
  KW_EXPECT(right(arrays.result(), 2, 3));
  KW_EXPECT_EQ(op.calls.load(), 1u);
  KW_EXPECT_EQ(cache_counts().compiled, 1u);
  int chosen = test_room::chosen;
  run(arrays, {2, 2, 96}, {.a = 5});  // half the rows, another float: the same entry, not chosen again
  auto z = arrays.result();
  constexpr size_t half = 384;
  KW_EXPECT_EQ(z[half], 2.0f * half + 300);  // not touched
  z.resize(half);
  KW_EXPECT(right(z, 5, 1));
  KW_EXPECT_EQ(test_room::chosen.load(), chosen);
  run(arrays, {16, 48});  // another length: chosen again, the kernel is there
  KW_EXPECT(right(arrays.result(), 1, 1));
  KW_EXPECT_EQ(test_room::chosen.load(), chosen + 1);
  KW_EXPECT_EQ(cache_counts().compiled, 1u);
  KW_EXPECT_EQ(cache_counts().memory, 1u);

  execute(TestCall(nullptr, nullptr, nullptr, {0, 96}, {}, KW_CUDA).bound);  // empty
  KW_EXPECT_EQ(op.calls.load(), 4u);

  // A thread that has never seen CUDA.
  std::thread([&] { run(arrays, {8, 96}, {.a = 7}); }).join();
  KW_EXPECT(right(arrays.result(), 7, 1));

  for (auto fault : {test_room::fill_throws, test_room::grid_too_large, test_room::shared_too_large, test_room::bad_cluster,
                     test_room::wrong_params, test_room::no_such_kernel})
    KW_EXPECT_THROWS(run(arrays, {8, 96}, {.fault = fault}), "test_axpby: ");
  KW_EXPECT_THROWS(run(arrays, {8, 96}, {.fault = test_room::wrong_params}), "takes 80 bytes of parameters, but the room fills 8");
  KW_EXPECT_EQ(op.calls.load(), 5u);
  run(arrays, {8, 96}, {.a = 4});
  KW_EXPECT(right(arrays.result(), 4, 1));
}

// 8 threads, one kernel that nobody has: one compile, eight right results.
static void threads() {
  uint64_t before = cache_counts().compiled;
  std::vector<std::unique_ptr<Arrays>> arrays;
  std::vector<std::thread> workers;
  for (int t = 0; t < 8; t++) arrays.push_back(std::make_unique<Arrays>(64));
  for (int t = 0; t < 8; t++)
    workers.emplace_back([&, t] { run(*arrays[static_cast<size_t>(t)], {2, 32}, {.a = static_cast<double>(t), .threads = 64}); });
  for (auto& w : workers) w.join();
  for (int t = 0; t < 8; t++) KW_EXPECT(right(arrays[static_cast<size_t>(t)]->result(), static_cast<float>(t), 1));
  KW_EXPECT_EQ(cache_counts().compiled, before + 1);
}

// Kernels below KW_KERNEL_PATH: an edit to a word is seen by the next call, one that does not compile is told, the next one works.
static void edits(const fs::path& root) {
  Arrays arrays(64);
  run(arrays, {2, 32}, {.a = 2});
  fs::create_directories(root);
  set_kernel_path(root);  // seen by calls that were ready before
  uint64_t before = cache_counts().compiled;
  run(arrays, {2, 32}, {.a = 2});
  KW_EXPECT(right(arrays.result(), 2, 1));
  KW_EXPECT_EQ(cache_counts().compiled, before);  // nothing there: the library's own text

  std::string word = test_room::word;
  auto edit = [&](const std::string& expression) {
    std::string text = word;
    spit(root / "test/word.cuh", text.replace(text.find("a * x + b * y"), 13, expression));
  };
  edit("a * x - b * y");
  run(arrays, {2, 32}, {.a = 2});
  KW_EXPECT(right(arrays.result(), 2, -1));
  KW_EXPECT_EQ(cache_counts().compiled, before + 1);
  edit("a * x - c * y");
  KW_EXPECT_THROWS(run(arrays, {2, 32}, {.a = 2}), "test_axpby: the kernel test::axpby<float, 128> of test/axpby.cuh");
  KW_EXPECT_THROWS(run(arrays, {2, 32}, {.a = 2}), "test/word.cuh");
  KW_EXPECT_THROWS(run(arrays, {2, 32}, {.a = 2}), "4");  // the line
  edit("a * x - b * y");
  run(arrays, {2, 32}, {.a = 3});  // known by its content
  KW_EXPECT(right(arrays.result(), 3, -1));
  KW_EXPECT_EQ(cache_counts().compiled, before + 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  run(arrays, {2, 32}, {.a = 3});
  set_kernel_path("");
  run(arrays, {2, 32}, {.a = 3});
  KW_EXPECT(right(arrays.result(), 3, 1));
}

// Another process finds the kernels on disk.
static void again(const char* self) {
  pid_t child = fork();
  if (child == 0) {
    execl(self, self, "again", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  KW_EXPECT_EQ(status, 0);
}

// A kernel that writes where it must not: the call that launched it says so.
static void crash() {
  Arrays arrays(64);
  KW_EXPECT_THROWS(run(arrays, {2, 32}, {.fault = test_room::out_of_bounds}),
                   "test_axpby: the kernel test::axpby<float, 128> failed: CUDA_ERROR");
  KW_EXPECT_THROWS(run(arrays, {2, 32}, {.fault = test_room::out_of_bounds}),
                   "test/axpby.cuh:11");  // the checker's report, in the sentence
}

int main(int argc, char** argv) {
  unsetenv("KW_DRIVER"), unsetenv("KW_CACHE"), unsetenv("KW_KERNEL_PATH"), unsetenv("KW_NVRTC");
  use_emulator();
  register_room(&test_room::room);
  if (argc > 1) {
    Arrays arrays(64);
    run(arrays, {2, 32}, {.a = 2});
    KW_EXPECT(right(arrays.result(), 2, 1));
    KW_EXPECT_EQ(cache_counts().disk, 1u);
    KW_EXPECT_EQ(cache_counts().compiled, 0u);
    return kw::test::finish();
  }
  char temporary[] = "/tmp/kw_emulator_test_XXXXXX";
  fs::path root = mkdtemp(temporary);
  setenv("KW_CACHE_DIR", (root / "cache").c_str(), 1);
  KW_EXPECT(driver().emulator);
  KW_EXPECT_EQ(device_count(), 1);
  KW_EXPECT(device_facts(0).arch >= 75);
  KW_EXPECT_THROWS(device_facts(1), "there is no CUDA device 1: this process sees 1");
  KW_EXPECT(nvrtc().path == driver().path);
  calls();
  threads();
  edits(root / "kernels");
  again(argv[0]);
  CopyRate rate = measure_copy_rate(0, 64 << 10, 1);
  KW_EXPECT(rate.best() > 0 && rate.kernel.starts_with("copy<"));
  crash();
  fs::remove_all(root);
  return kw::test::finish();
}
