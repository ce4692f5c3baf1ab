// The OpenMP runtime that is loaded in this process already, if any; never loads or links one.
#pragma once

namespace kw {

class OpenMP {
 public:
  // Null while none is loaded. Cheap (under 100 ns): looks through the loaded libraries only after one was added.
  static const OpenMP* find();

  int max_threads() const { return max_threads_(); }  // of the calling thread: what torch.set_num_threads sets
  bool in_parallel() const { return in_parallel_() != 0; }
  // Calls body(context, i, n) on n threads at once, 1 <= n <= threads: the runtime may give fewer than asked.
  void run(int threads, void (*body)(void* context, int thread, int threads), void* context) const;

 private:
  bool load(const char* path);

  int (*max_threads_)() = nullptr;
  int (*in_parallel_)() = nullptr;
  int (*thread_)() = nullptr;
  int (*threads_)() = nullptr;
  void (*parallel_)(void (*body)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
};

}  // namespace kw
