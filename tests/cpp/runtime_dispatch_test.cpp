// Dispatch without a device: the CPU path, keys, the memory cache, plans and their checks, ahead-of-time compiles.
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "kw/runtime/device.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/kernel_cache.h"
#include "kw/runtime/problem.h"
#include "kw/runtime/ready.h"
#include "testing/expect.h"
#include "tests/cpp/runtime_test_room.h"

using namespace kw;
using test_room::Attributes;
using test_room::TestCall;

alignas(64) static float xs[4096], ys[4096], zs[4096];

static void on_the_cpu() {
  const Op& op = get_op("test_axpby");
  for (int i = 0; i < 6; i++) xs[i] = static_cast<float>(i);
  execute(TestCall(xs, nullptr, zs, {2, 3}, {.a = 2}).bound);
  KW_EXPECT_EQ(zs[5], 10.0f);
  KW_EXPECT_EQ(op.calls.load(), 1u);
  KW_EXPECT_THROWS(execute(TestCall(xs, nullptr, zs, {2, 3}, {.fault = test_room::fill_throws}).bound),
                   "test_axpby: this cannot be computed");
  KW_EXPECT_EQ(op.calls.load(), 1u);
  int before = test_room::computed;
  execute(TestCall(xs, nullptr, zs, {0, 3}).bound);  // empty: a call, but nothing to compute
  execute(TestCall(xs, nullptr, zs, {2, 0}).bound);
  KW_EXPECT_EQ(test_room::computed.load(), before);
  KW_EXPECT_EQ(op.calls.load(), 3u);
}

static void alignment() {
  auto of = [](const float* x, std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
    return alignment_of(TestCall(x, nullptr, zs, std::move(shape), {}, KW_CPU, KW_F32, std::move(strides)).bound);
  };
  KW_EXPECT_EQ(of(xs, {4, 8}), 16);
  KW_EXPECT_EQ(of(xs + 2, {4, 8}), 8);
  KW_EXPECT_EQ(of(xs + 1, {4, 8}), 4);
  KW_EXPECT_EQ(of(xs, {4, 6}), 8);  // rows of 24 bytes
  KW_EXPECT_EQ(of(xs, {4, 7}), 4);
  KW_EXPECT_EQ(of(xs, {1, 7}), 16);          // one row: its stride is never used
  KW_EXPECT_EQ(of(xs, {4, 8}, {9, 1}), 4);   // rows with a gap
  KW_EXPECT_EQ(of(xs, {4, 8}, {0, 1}), 16);  // one row for all
  KW_EXPECT_EQ(of(xs + 1, {0, 8}), 16);      // no rows at all
}

static void keys() {
  auto key = [](std::vector<int64_t> shape, Attributes a = {}, int32_t dtype = KW_F32, bool y = true, int alignment = 16, int device = 0) {
    return problem_key(TestCall(xs, y ? ys : nullptr, zs, std::move(shape), a, KW_CPU, dtype).bound, device, alignment);
  };
  const ProblemKey one = key({4, 8});
  KW_EXPECT(one == key({4, 8}));
  KW_EXPECT(one == key({3, 2, 8}));                 // the number of rows never chooses
  KW_EXPECT(one == key({4, 8}, {.a = 3, .b = 4}));  // nor does a float
  KW_EXPECT(!(one == key({4, 16})));
  KW_EXPECT(!(one == key({4, 8}, {.threads = 256})));
  KW_EXPECT(!(one == key({4, 8}, {}, KW_F64)));
  KW_EXPECT(!(one == key({4, 8}, {}, KW_F32, false)));
  KW_EXPECT(!(one == key({4, 8}, {}, KW_F32, true, 8)));
  KW_EXPECT(!(one == key({4, 8}, {}, KW_F32, true, 16, 1)));
  KW_EXPECT_EQ(one.hash(), key({7, 8}).hash());
}

static void table() {
  ReadyTable ready;
  auto key = [](uint64_t i) {
    ProblemKey k;
    k.words = 3;
    k.word[0] = i / 100, k.word[1] = 5, k.word[2] = i % 100;
    return k;
  };
  constexpr uint64_t count = 5000;
  for (uint64_t i = 0; i < count; i++) {
    auto entry = std::make_unique<Ready>();
    entry->key = key(i);
    const Ready* kept = ready.insert(std::move(entry));
    KW_EXPECT_EQ(ready.find(key(i)), kept);
  }
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++) found += ready.find(key(i)) != nullptr;
  KW_EXPECT_EQ(found, count);
  KW_EXPECT(!ready.find(key(count)));
  auto entry = std::make_unique<Ready>();
  entry->key = key(17);
  const Ready* newer = ready.insert(std::move(entry));
  KW_EXPECT_EQ(ready.find(key(17)), newer);
}

// A reader that finds the place of its key empty never gets what a writer puts there in that moment.
static void table_race() {
  auto key = [](uint64_t i) {
    ProblemKey k;
    k.words = 1;
    k.word[0] = i;
    return k;
  };
  uint64_t rival = 1;  // another key, the same place
  while ((key(rival).hash() & 255) != (key(0).hash() & 255)) rival++;
  constexpr int rounds = 3000;
  std::vector<ReadyTable> tables(rounds);
  std::atomic<int> round{-1};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    for (int r = 0; r < rounds; r++) {
      round = r;
      for (int i = 0; i < 20000 && !tables[static_cast<size_t>(r)].find(key(rival)); i++)
        wrong += tables[static_cast<size_t>(r)].find(key(0)) != nullptr;
    }
  });
  for (int r = 0; r < rounds; r++) {
    while (round < r) std::this_thread::yield();
    auto entry = std::make_unique<Ready>();
    entry->key = key(rival);
    tables[static_cast<size_t>(r)].insert(std::move(entry));
  }
  reader.join();
  KW_EXPECT_EQ(wrong.load(), 0);
}

static void gpus() {
  KW_EXPECT_EQ(known_gpu("h200").arch, 90);
  KW_EXPECT_EQ(known_gpu("t4").threads_per_sm, 1024);
  KW_EXPECT_THROWS(known_gpu("h300"), "the GPU 'h300' is not known; known are t4, a100");
  KW_EXPECT_EQ(std::string(facts_of_arch("sm_90").name), "NVIDIA H100");
  KW_EXPECT_EQ(facts_of_arch("87").arch, 87);
  KW_EXPECT_EQ(facts_of_arch("87").sm_count, known_gpu("rtx3090").sm_count);
  for (const char* arch : {"75", "80", "86", "89", "90", "100", "120"}) KW_EXPECT_EQ(std::to_string(facts_of_arch(arch).arch), arch);
  KW_EXPECT_THROWS(facts_of_arch("sm_70"), "needs sm_75");
  KW_EXPECT_THROWS(facts_of_arch("hopper"), "'hopper' is not an architecture");
  KW_EXPECT_THROWS(facts_of_arch("sm_9a"), "is not an architecture");
}

static void plans() {
  auto plan = [](Attributes a, const kw_device_facts& gpu = known_gpu("h200"), std::vector<int64_t> shape = {4, 64}) {
    return describe_plan(TestCall(xs, ys, zs, std::move(shape), a, KW_CUDA).bound, gpu);
  };
  std::string text = plan({.threads = 64});
  for (const char* part :
       {"test_axpby on NVIDIA H200 (sm_90, 132 SMs)", "test::axpby<float, 64>", "test/axpby.cuh", "4 blocks of 64 threads",
        "params  80 bytes", "aligned to 16 bytes", "moves   3072 bytes at least: reads 2048, writes 1024"})
    KW_EXPECT(text.find(part) != std::string::npos);
  text = describe_plan(TestCall(xs, ys, zs, {4, 64}, {}, KW_CUDA, KW_F32, {0, 1}).bound, known_gpu("h200"));  // x is one row, four times
  KW_EXPECT(text.find("moves   2304 bytes at least: reads 1280, writes 1024") != std::string::npos);
  KW_EXPECT(plan({}, known_gpu("h200"), {0, 64}).find("nothing to do") != std::string::npos);
  KW_EXPECT_THROWS(plan({.fault = test_room::choose_throws}), "test_axpby: there is no kernel for this");
  KW_EXPECT_THROWS(plan({.fault = test_room::fill_throws}), "test_axpby: this cannot be filled");
  KW_EXPECT_THROWS(plan({.fault = test_room::grid_too_large}), "needs a grid of 2 x 70000 x 1 blocks");
  KW_EXPECT_THROWS(plan({.fault = test_room::shared_too_large}), "needs 1048576 bytes of shared memory; NVIDIA H200 has 232448");
  KW_EXPECT_THROWS(plan({.fault = test_room::bad_cluster}), "clusters of 5 blocks on a grid of 2");
  KW_EXPECT_THROWS(plan({.fault = test_room::bad_cluster}, known_gpu("a100")), "uses clusters, which sm_80 does not have");
  KW_EXPECT_THROWS(plan({.threads = 2048}), "has blocks of 2048 threads");
}

static void compiles() {
  char temporary[] = "/tmp/kw_dispatch_test_XXXXXX";
  setenv("KW_CACHE_DIR", mkdtemp(temporary), 1);
  TestCall call(xs, ys, zs, {4, 64}, {.threads = 96}, KW_CUDA);
  KW_EXPECT(compile_for(call.bound, known_gpu("h200")) > 1000);
  KW_EXPECT(compile_for(call.bound, known_gpu("t4")) > 1000);
  KW_EXPECT_EQ(cache_counts().compiled, 2u);
  KW_EXPECT(compile_for(call.bound, known_gpu("h100")) > 1000);  // the same sm_90
  KW_EXPECT_EQ(cache_counts().compiled, 2u);
  KW_EXPECT_EQ(cache_counts().disk, 1u);
  KW_EXPECT_THROWS(compile_for(TestCall(xs, ys, zs, {4, 64}, {.fault = test_room::no_such_kernel}, KW_CUDA).bound, known_gpu("h200")),
                   "test_axpby: the kernel test::nothing<float, 128> of test/axpby.cuh does not compile");
  std::filesystem::remove_all(temporary);
}

int main() {
  unsetenv("KW_DRIVER"), unsetenv("KW_CACHE");
  register_room(&test_room::room);
  on_the_cpu();
  alignment();
  keys();
  table();
  table_race();
  gpus();
  plans();
  compiles();
  // No GPU: a sentence, from the call, and the process lives.
  setenv("KW_DRIVER", "/nonexistent/libcuda.so.1", 1);
  KW_EXPECT_THROWS(execute(TestCall(xs, ys, zs, {4, 64}, {}, KW_CUDA).bound), "/nonexistent/libcuda.so.1");
  execute(TestCall(xs, nullptr, zs, {2, 3}).bound);
  return kw::test::finish();
}
