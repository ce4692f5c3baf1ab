// Our own threads, for processes without OpenMP and for children after a fork.
#pragma once

namespace kw {

class Pool {
 public:
  // Calls body(context, i, n) on n threads at once, 1 <= n <= threads, the caller's being one of them. Threads start with the first call.
  // While another thread of the process uses the pool, the caller works alone. The body must not throw.
  static void run(int threads, void (*body)(void* context, int thread, int threads), void* context);
  static bool inside();  // the calling thread is in a body
  static bool forked();  // this process is the child of one that had loaded the library
};

}  // namespace kw
