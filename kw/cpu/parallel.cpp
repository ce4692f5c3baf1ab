#include "kw/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "kw/cpu/openmp.h"
#include "kw/cpu/pool.h"

namespace kw {
namespace {

std::atomic<int> override_count{0};

// One parallel_for. Every thread takes one contiguous range; an exception waits here until all threads are back.
struct Loop {
  int64_t count, grain;
  void (*body)(void*, int64_t, int64_t);
  void* context;
  std::mutex error_mutex;
  std::exception_ptr error;

  void run(int thread, int threads) noexcept {
    int64_t length = std::max(grain, count / threads + (count % threads != 0));
    int64_t first = thread < count / length + 1 ? thread * length : count;
    if (first >= count) return;
    try {
      body(context, first, std::min(count - first, length) + first);
    } catch (...) {
      std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }
};

}  // namespace

int thread_count() {
  if (int n = override_count.load(std::memory_order_relaxed)) return n;
  if (const OpenMP* omp = OpenMP::find()) return std::max(1, omp->max_threads());
  static const int cores = std::max(1u, std::thread::hardware_concurrency());
  return cores;
}

void set_thread_count(int n) { override_count.store(std::clamp(n, 0, 1024), std::memory_order_relaxed); }

void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const OpenMP* omp = OpenMP::find();
  bool nested = Pool::inside() || (omp && omp->in_parallel());
  int64_t ranges = nested ? 1 : std::min<int64_t>(thread_count(), count / grain + (count % grain != 0));
  if (ranges <= 1) return body(context, 0, count);

  Loop loop{count, grain, body, context, {}, {}};
  auto run = [](void* l, int thread, int threads) { static_cast<Loop*>(l)->run(thread, threads); };
  // OpenMP's threads do not survive a fork, and GNU's would wait for them for ever: a child uses our pool, with OpenMP's number.
  if (omp && !Pool::forked())
    omp->run(static_cast<int>(ranges), run, &loop);
  else
    Pool::run(static_cast<int>(ranges), run, &loop);
  if (loop.error) std::rethrow_exception(loop.error);
}

}  // namespace kw
