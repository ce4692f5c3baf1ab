#include "kw/cpu/pool.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kw {
namespace {

thread_local bool inside_body = false;

struct Workers {
  std::mutex busy;  // held through one run

  std::mutex mutex;  // guards all below
  std::condition_variable wake, done;
  std::vector<std::thread> threads;
  uint64_t round = 0;
  int wanted = 0, running = 0;  // of the workers, in this round
  bool stop = false;
  void (*body)(void*, int, int) = nullptr;
  void* context = nullptr;

  void work(int index) {  // the caller is thread 0, worker i is thread i + 1
    inside_body = true;
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || round != seen; });
      if (stop) return;
      seen = round;
      if (index >= wanted) continue;
      auto* run_body = body;
      void* with = context;
      int n = wanted + 1;
      lock.unlock();
      run_body(with, index + 1, n);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }

  void run(int n, void (*run_body)(void*, int, int), void* with) {
    {
      std::lock_guard lock(mutex);
      try {
        while (static_cast<int>(threads.size()) < n - 1) threads.emplace_back(&Workers::work, this, static_cast<int>(threads.size()));
      } catch (const std::system_error&) {  // the system gives no more threads: those that there are will do
        n = static_cast<int>(threads.size()) + 1;
      }
      wanted = running = n - 1;
      body = run_body;
      context = with;
      round++;
    }
    wake.notify_all();
    run_body(with, 0, n);
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return running == 0; });
  }
};

std::atomic<Workers*> workers{nullptr};
std::atomic<bool> in_child{false};
std::atomic<bool> ended{false};

// A child has none of the threads, and the locks may have been held: it forgets them and starts anew.
void after_fork() {
  workers = nullptr;
  in_child = true;
}

struct Lifetime {
  Lifetime() { pthread_atfork(nullptr, nullptr, after_fork); }
  ~Lifetime() {  // at exit or dlclose: no thread may be left in code that goes away
    ended = true;
    Workers* w = workers;
    if (!w || inside_body) return;
    {
      std::lock_guard lock(w->mutex);
      w->stop = true;
    }
    w->wake.notify_all();
    for (std::thread& t : w->threads) t.join();
    w->threads.clear();
  }
} lifetime;

Workers& get_workers() {
  Workers* w = workers;
  if (w) return *w;
  Workers* made = new Workers;
  if (workers.compare_exchange_strong(w, made)) return *made;
  delete made;
  return *w;
}

}  // namespace

bool Pool::inside() { return inside_body; }
bool Pool::forked() { return in_child; }

void Pool::run(int threads, void (*body)(void*, int, int), void* context) {
  if (inside_body || ended) return body(context, 0, 1);
  Workers& w = get_workers();
  std::unique_lock busy(w.busy, std::try_to_lock);
  if (!busy) return body(context, 0, 1);
  inside_body = true;
  w.run(threads, body, context);
  inside_body = false;
}

}  // namespace kw
