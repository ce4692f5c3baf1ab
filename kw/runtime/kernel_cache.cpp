#include "kw/runtime/kernel_cache.h"

#include <map>
#include <memory>
#include <mutex>

#include "kw/runtime/disk_cache.h"

namespace kw {
namespace {

// One per key: whoever comes first works under `mutex`, the others wait there and take what came of it.
struct Slot {
  std::mutex mutex;
  std::atomic<const Kernel*> ready{nullptr};
  std::atomic<uint64_t> attempts{0};
  std::shared_ptr<const Error> failure;  // of the last attempt, under mutex
};

struct Table {
  std::mutex mutex;
  std::map<Digest, std::unique_ptr<Slot>> slots;
  std::atomic<uint64_t> memory{0}, disk{0}, compiled{0};
};
Table& table() {
  static auto* t = new Table;  // never destroyed: a late thread may still launch
  return *t;
}

// Said once per architecture that NVRTC does not know.
void tell_about_ptx(const Nvrtc& compiler, Target target, int gpu_arch) {
  static std::atomic<int> told{0};
  if (!target.ptx || told.exchange(gpu_arch) == gpu_arch) return;
  std::fprintf(stderr,
               "kernelwright: NVRTC %d.%d does not know sm_%d; kernels are compiled for compute_%d and finished by the driver. "
               "A newer NVRTC makes them faster.\n",
               compiler.major, compiler.minor, gpu_arch, target.arch);
}

CompiledKernel code_for(const Nvrtc& compiler, const Digest& key, const SourceSet& sources, const std::string& expression, Target target) {
  if (auto cached = load_from_disk(key)) {
    table().disk++;
    return std::move(*cached);
  }
  CompiledKernel fresh = compile(compiler, sources, expression, target);
  table().compiled++;
  save_to_disk(key, fresh);
  return fresh;
}

std::unique_ptr<Kernel> load(const Driver& cuda, const Nvrtc& compiler, const CompiledKernel& code, const std::string& expression,
                             const std::string& source) {
  auto kernel = std::make_unique<Kernel>();
  kernel->expression = expression;
  kernel->source = source;
  CUresult result = cuda.cuLibraryLoadData(&kernel->library, code.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != CUDA_SUCCESS)
    throw Error(KW_ERROR_DRIVER,
                format("loading the kernel %s: %s; it was compiled by NVRTC %d.%d, the driver is for CUDA %d.%d%s", expression.c_str(),
                       error_text(cuda, result).c_str(), compiler.major, compiler.minor, cuda.version / 1000, cuda.version % 1000 / 10,
                       compiler.major > cuda.version / 1000 ? ": use an NVRTC of the driver's version, or a newer driver" : ""));
  check(cuda, cuda.cuLibraryGetKernel(&kernel->handle, kernel->library, code.name.c_str()), "finding a kernel in its code");
  size_t offset = 0, size = 0;
  CUresult told = CUDA_ERROR_NOT_SUPPORTED;
  if (cuda.cuKernelGetParamInfo)
    told = cuda.cuKernelGetParamInfo(kernel->handle, 0, &offset, &size);
  else if (cuda.cuFuncGetParamInfo)
    told = cuda.cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel->handle), 0, &offset, &size);
  if (told == CUDA_SUCCESS) kernel->params_bytes = static_cast<int64_t>(size);
  return kernel;
}

}  // namespace

const Kernel& find_kernel(const SourceSet& sources, const std::string& expression, int gpu_arch) {
  const Driver& cuda = driver();
  const Nvrtc& compiler = nvrtc();
  Target target = target_for(compiler, gpu_arch);
  tell_about_ptx(compiler, target, gpu_arch);
  Digest key = kernel_key(compiler, sources, expression, target);
  Slot* slot;
  {
    std::lock_guard lock(table().mutex);
    auto& place = table().slots[key];
    if (!place) place = std::make_unique<Slot>();
    slot = place.get();
  }
  uint64_t seen = slot->attempts;
  std::lock_guard lock(slot->mutex);
  if (const Kernel* ready = slot->ready) {
    table().memory++;
    return *ready;
  }
  if (slot->attempts != seen && slot->failure) throw *slot->failure;  // it failed while we waited
  try {
    slot->ready =
        load(cuda, compiler, code_for(compiler, key, sources, expression, target), expression, sources.files.front().path).release();
  } catch (const Error& e) {
    slot->failure = std::make_shared<Error>(e);
    slot->attempts++;
    throw;
  }
  slot->failure.reset();
  return *slot->ready.load();
}

CompiledKernel find_code(const SourceSet& sources, const std::string& expression, int gpu_arch) {
  const Nvrtc& compiler = nvrtc();
  Target target = target_for(compiler, gpu_arch);
  return code_for(compiler, kernel_key(compiler, sources, expression, target), sources, expression, target);
}

CacheCounts cache_counts() { return {table().memory, table().disk, table().compiled}; }

}  // namespace kw
