// Parallel loops for CPU kernels.
#pragma once
#include <cstdint>

namespace kw {

// Runs body(first, last) over disjoint ranges that cover [0, count), each at least `grain` long (but the last). The ranges depend on the
// number of threads, so a body must give the same bits whatever its range: sums across ranges go through a fixed partition of the caller's.
//
// Threads: the OpenMP pool of the process if one is loaded (PyTorch's own: no second pool fights for the cores, and
// torch.set_num_threads holds here too), else a pool of ours. kw_set_threads overrides the number.
void parallel_for(int64_t count, int64_t grain, void (*body)(void* context, int64_t first, int64_t last), void* context);

template <class F>
void parallel_for(int64_t count, int64_t grain, F&& body) {
  parallel_for(count, grain, [](void* f, int64_t first, int64_t last) { (*static_cast<F*>(f))(first, last); }, &body);
}

int thread_count();
void set_thread_count(int n);  // 0: back to the default

}  // namespace kw
