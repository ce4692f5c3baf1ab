#include "kw/runtime/kernel_cache.h"

#include <map>
#include <memory>
#include <mutex>

#include "kw/core/log.h"
#include "kw/runtime/disk_cache.h"
#include "kw/runtime/packs.h"

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
  std::atomic<uint64_t> memory{0}, pack{0}, disk{0}, compiled{0};
};
Table& table() {
  static auto* t = new Table;  // never destroyed: a late thread may still launch
  return *t;
}

void tell_about_ptx(const Nvrtc& compiler, Target target, int gpu_arch) {
  if (target.ptx)
    warn(
        format("NVRTC %d.%d does not know sm_%d; kernels are compiled for compute_%d and finished by the driver. A newer NVRTC makes them "
               "faster",
               compiler.major, compiler.minor, gpu_arch, target.arch));
}

CompiledKernel code_for(const Nvrtc& compiler, const SourceSet& sources, const std::string& expression, Target target, Origin& origin) {
  const Digest key = kernel_key(compiler, sources, expression, target);
  if (auto cached = load_from_disk(key)) {
    table().disk++;
    origin = Origin::disk;
    return std::move(*cached);
  }
  CompiledKernel fresh = compile(compiler, sources, expression, target);
  table().compiled++;
  origin = Origin::compiled;
  save_to_disk(key, fresh);
  return fresh;
}

// One for every kernel that a process may ask for. The compiler is not part of it: a process has one, or needs none.
Digest slot_key(const SourceSet& sources, const std::string& expression, int gpu_arch) {
  return Sha256().add(expression).add(gpu_arch).add(hex(sources.digest)).finish();
}

// Null, and the driver's answer, when the driver does not take the code.
std::unique_ptr<Kernel> load(const Driver& cuda, const CompiledKernel& code, const std::string& expression, const std::string& source,
                             CUresult& result) {
  auto kernel = std::make_unique<Kernel>();
  kernel->expression = expression;
  kernel->source = source;
  result = cuda.cuLibraryLoadData(&kernel->library, code.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (is_sticky(result)) check(cuda, result, "loading a kernel");
  if (result != CUDA_SUCCESS) return nullptr;
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

std::unique_ptr<Kernel> from_pack(const Driver& cuda, const SourceSet& sources, const std::string& expression, int gpu_arch) {
  const auto packed = load_from_pack(sources, expression, gpu_arch);
  if (!packed) return nullptr;
  CUresult result = CUDA_SUCCESS;
  auto kernel = load(cuda, packed->kernel, expression, sources.files.front().path, result);
  if (!kernel) {
    warn(format("the driver does not load a kernel of the pack %s: %s; it is compiled instead", pack_in_use()->path().c_str(),
                error_text(cuda, result).c_str()));
    return nullptr;
  }
  table().pack++;
  kernel->origin = Origin::pack;
  return kernel;
}

std::unique_ptr<Kernel> from_compiler(const Driver& cuda, const SourceSet& sources, const std::string& expression, int gpu_arch) {
  const Nvrtc& compiler = nvrtc();
  const Target target = target_for(compiler, gpu_arch);
  tell_about_ptx(compiler, target, gpu_arch);
  Origin origin = Origin::nowhere;
  const CompiledKernel code = code_for(compiler, sources, expression, target, origin);
  CUresult result = CUDA_SUCCESS;
  auto kernel = load(cuda, code, expression, sources.files.front().path, result);
  if (!kernel)
    throw Error(KW_ERROR_DRIVER,
                format("loading the kernel %s: %s; it was compiled by NVRTC %d.%d, the driver is for CUDA %d.%d%s", expression.c_str(),
                       error_text(cuda, result).c_str(), compiler.major, compiler.minor, cuda.version / 1000, cuda.version % 1000 / 10,
                       compiler.major > cuda.version / 1000 ? ": use an NVRTC of the driver's version, or a newer driver" : ""));
  kernel->origin = origin;
  return kernel;
}

}  // namespace

const char* origin_name(Origin origin) {
  static const char* const names[] = {"nowhere", "pack", "disk", "compiled"};
  return names[static_cast<int>(origin)];
}

const Kernel& find_kernel(const SourceSet& sources, const std::string& expression, int gpu_arch) {
  const Driver& cuda = driver();
  const Digest key = slot_key(sources, expression, gpu_arch);
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
    auto kernel = from_pack(cuda, sources, expression, gpu_arch);
    if (!kernel) kernel = from_compiler(cuda, sources, expression, gpu_arch);
    slot->ready = kernel.release();
  } catch (const Error& e) {
    slot->failure = std::make_shared<Error>(e);
    slot->attempts++;
    throw;
  }
  slot->failure.reset();
  return *slot->ready.load();
}

CompiledKernel find_code(const SourceSet& sources, const std::string& expression, int gpu_arch, bool exact) {
  const Nvrtc& compiler = nvrtc();
  const Target target = target_for(compiler, gpu_arch);
  if (exact && (target.ptx || target.arch != gpu_arch))
    throw Error(KW_ERROR_UNSUPPORTED, format("NVRTC %d.%d does not compile for sm_%d", compiler.major, compiler.minor, gpu_arch));
  Origin origin = Origin::nowhere;
  return code_for(compiler, sources, expression, target, origin);
}

Origin origin_of(const SourceSet& sources, const std::string& expression, int gpu_arch) {
  const Driver* cuda = find_driver();
  if (const Pack* pack = pack_in_use(); pack && (!cuda || trouble_with(*pack, *cuda).empty()))
    if (find_in_pack(*pack, sources, expression, gpu_arch)) return Origin::pack;
  const Nvrtc* compiler = find_nvrtc();
  if (compiler && is_on_disk(kernel_key(*compiler, sources, expression, target_for(*compiler, gpu_arch)))) return Origin::disk;
  return Origin::nowhere;
}

CacheCounts cache_counts() { return {table().memory, table().pack, table().disk, table().compiled}; }

}  // namespace kw
