// parallel_for: covers its range exactly, nested, with exceptions, from several threads, after a fork; with our pool and with OpenMP's.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kw/cpu/openmp.h"
#include "kw/cpu/parallel.h"
#include "kw/cpu/pool.h"
#include "testing/expect.h"

namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

Ranges ranges_of(int64_t count, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  kw::parallel_for(count, grain, [&](int64_t first, int64_t last) {
    std::lock_guard lock(mutex);
    ranges.emplace_back(first, last);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

void covers_exactly(int threads) {
  constexpr int64_t huge = int64_t{1} << 62;
  for (int64_t count : {int64_t{0}, int64_t{-3}, int64_t{1}, int64_t{2}, int64_t{7}, int64_t{1000}, int64_t{1048579}, huge}) {
    for (int64_t grain : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{3}, int64_t{999}, huge, INT64_MAX}) {
      Ranges ranges = ranges_of(count, grain);
      int64_t next = 0;
      bool ok = static_cast<int>(ranges.size()) <= threads;
      for (auto [first, last] : ranges) {
        ok = ok && first == next && last > first && (last == count || last - first >= grain);
        next = last;
      }
      ok = ok && next == std::max<int64_t>(count, 0);
      if (!KW_EXPECT(ok)) std::cerr << "  count " << count << ", grain " << grain << ", threads " << threads << '\n';
    }
  }
  // A long loop does use the threads.
  KW_EXPECT_EQ(static_cast<int>(ranges_of(1000000, 1).size()), threads);
}

std::thread::id thread_of_loop() {
  std::thread::id id;
  kw::parallel_for(1, 1, [&](int64_t, int64_t) { id = std::this_thread::get_id(); });
  return id;
}

void behaves(int threads) {
  kw::set_thread_count(threads);
  KW_EXPECT_EQ(kw::thread_count(), threads);
  covers_exactly(threads);
  KW_EXPECT(thread_of_loop() == std::this_thread::get_id());

  // Several threads at work, each with one range; inside, a loop stays on its thread.
  std::atomic<int> inner_ranges{0}, outer_ranges{0};
  std::atomic<bool> same_thread{true};
  kw::parallel_for(threads, 1, [&](int64_t, int64_t) {
    outer_ranges++;
    auto self = std::this_thread::get_id();
    kw::parallel_for(1000, 1, [&](int64_t first, int64_t last) {
      inner_ranges++;
      if (std::this_thread::get_id() != self || first != 0 || last != 1000) same_thread = false;
    });
  });
  KW_EXPECT_EQ(outer_ranges.load(), threads);
  if (threads > 1) {  // alone, the outer loop is no parallel region
    KW_EXPECT_EQ(inner_ranges.load(), threads);
    KW_EXPECT(same_thread.load());
  }

  // An exception, from whichever range, arrives here; the others finish first, and the next loop works.
  for (int64_t bad : {int64_t{0}, int64_t{99}}) {
    std::atomic<int> finished{0};
    KW_EXPECT_THROWS(kw::parallel_for(100, 1,
                                      [&](int64_t first, int64_t last) {
                                        if (first <= bad && bad < last) throw std::runtime_error("from a body");
                                        finished++;
                                      }),
                     "from a body");
    KW_EXPECT_EQ(finished.load(), threads - 1);
  }
  KW_EXPECT_THROWS(kw::parallel_for(100, 1, [](int64_t, int64_t) { throw std::runtime_error("from all"); }), "from all");
  covers_exactly(threads);
}

void several_callers() {
  kw::set_thread_count(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; t++)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; i++) kw::parallel_for(1000, 1, [&](int64_t first, int64_t last) { total += last - first; });
    });
  for (std::thread& t : callers) t.join();
  KW_EXPECT_EQ(total.load(), int64_t{4} * 200 * 1000);
}

void after_a_fork() {
  kw::set_thread_count(3);
  ranges_of(1000, 1);  // the pool runs
  KW_EXPECT(!kw::Pool::forked());
  pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that waits for threads it has not got dies of it, and fails the test
    bool ok = kw::Pool::forked();
    for (int i = 0; i < 10; i++) ok = ok && ranges_of(1000, 1).size() == 3;
    std::exit(ok ? 0 : 1);  // with destructors: the child ends its own threads
  }
  int status = -1;
  KW_EXPECT_EQ(waitpid(child, &status, 0), child);
  KW_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  KW_EXPECT_EQ(ranges_of(1000, 1).size(), size_t{3});  // and the parent goes on
}

void everything() {
  for (int threads : {1, 2, 3, 4, 3, 1, 7}) behaves(threads);
  several_callers();
  after_a_fork();
  kw::set_thread_count(0);
}

}  // namespace

int main() {
  if (!KW_EXPECT(kw::OpenMP::find() == nullptr)) return kw::test::finish();  // this program links none
  KW_EXPECT_EQ(kw::thread_count(), static_cast<int>(std::thread::hardware_concurrency()));
  everything();

  void* gomp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);  // comes with g++
  if (!KW_EXPECT(gomp != nullptr)) return kw::test::finish();
  if (!KW_EXPECT(kw::OpenMP::find() != nullptr)) return kw::test::finish();
  auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(gomp, "omp_set_num_threads"));
  set_threads(5);
  KW_EXPECT_EQ(kw::thread_count(), 5);  // as torch.set_num_threads does
  KW_EXPECT_EQ(ranges_of(1000, 1).size(), size_t{5});
  set_threads(1);
  KW_EXPECT_EQ(ranges_of(1000, 1).size(), size_t{1});
  // Also where OpenMP itself would nest.
  reinterpret_cast<void (*)(int)>(dlsym(gomp, "omp_set_max_active_levels"))(4);
  everything();
  // The bodies run on OpenMP's threads, not on ours: there, OpenMP knows of a parallel region.
  kw::set_thread_count(2);
  std::atomic<int> seen{0};
  kw::parallel_for(2, 1, [&](int64_t, int64_t) { seen += kw::OpenMP::find()->in_parallel() && !kw::Pool::inside(); });
  KW_EXPECT_EQ(seen.load(), 2);
  return kw::test::finish();
}
