#include "kw/cpu/openmp.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace kw {
namespace {

// GNU's runtime, LLVM's and Intel's; the latter two offer GNU's entry points as well, so one way serves all.
bool is_openmp(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  for (const char* prefix : {"libgomp", "libiomp5", "libomp"})
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

// How many libraries this process has loaded so far; asks for the first entry of the list only.
unsigned long long loaded_so_far() {
  unsigned long long adds = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &adds);
  return adds;
}

std::vector<std::string> loaded_openmp() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name && is_openmp(info->dlpi_name)) static_cast<std::vector<std::string>*>(out)->push_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

template <class F>
bool symbol(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool OpenMP::load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);  // counts us in: it stays loaded for as long as we point into it
  if (!library) return false;
  return symbol(library, "omp_get_max_threads", max_threads_) && symbol(library, "omp_in_parallel", in_parallel_) &&
         symbol(library, "omp_get_thread_num", thread_) && symbol(library, "omp_get_num_threads", threads_) &&
         symbol(library, "GOMP_parallel", parallel_);
}

const OpenMP* OpenMP::find() {
  static std::atomic<const OpenMP*> found{nullptr};
  static std::atomic<unsigned long long> looked_at{0};
  if (const OpenMP* omp = found.load(std::memory_order_acquire)) return omp;
  unsigned long long loaded = loaded_so_far();
  if (loaded == looked_at.load(std::memory_order_relaxed)) return nullptr;

  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (const OpenMP* omp = found.load(std::memory_order_relaxed)) return omp;
  static OpenMP omp;
  for (const std::string& path : loaded_openmp()) {  // in load order: the first is the one that a framework brought
    if (omp.load(path.c_str())) {
      found.store(&omp, std::memory_order_release);
      return &omp;
    }
  }
  looked_at.store(loaded, std::memory_order_relaxed);
  return nullptr;
}

void OpenMP::run(int threads, void (*body)(void*, int, int), void* context) const {
  struct Region {
    const OpenMP* omp;
    void (*body)(void*, int, int);
    void* context;
  } region{this, body, context};
  auto enter = [](void* data) {
    auto& r = *static_cast<Region*>(data);
    r.body(r.context, r.omp->thread_(), r.omp->threads_());
  };
  parallel_(enter, &region, static_cast<unsigned>(threads), 0);
}

}  // namespace kw
