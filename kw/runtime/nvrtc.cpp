#include "kw/runtime/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "kw/runtime/device.h"
#include "kw/runtime/driver.h"
#include "kw/runtime/library.h"

namespace kw {
namespace {

std::atomic<const Nvrtc*> current{nullptr};
std::mutex loading;

// KW_DRIVER may name the emulator's file too. Without a wish no driver is loaded here: compiling needs none.
bool emulator_is_driver() {
  if (emulator_requested()) return driver().emulator;
  const Driver* cuda = std::getenv("KW_DRIVER") ? find_driver() : nullptr;
  return cuda && cuda->emulator;
}

void* open_nvrtc() {
  LibrarySearch search;
  const char* wish = std::getenv("KW_NVRTC");
  if (wish && *wish) {
    if (void* handle = search.open(wish)) return handle;
    throw Error(KW_ERROR_TOOLCHAIN, "the NVRTC that KW_NVRTC names could not be loaded: " + search.tried());
  }
  if (emulator_is_driver()) return driver().handle;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"})
    if (void* handle = search.loaded(name)) return handle;
  for (const auto& dir : toolkit_dirs())
    for (const char* name : {"/libnvrtc.so.13", "/libnvrtc.so.12"})
      if (void* handle = search.open(dir + name)) return handle;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    if (void* handle = search.open(name)) return handle;
  throw Error(KW_ERROR_TOOLCHAIN, "NVRTC, CUDA's run-time compiler, was not found (tried " + search.tried() +
                                      "): 'pip install nvidia-cuda-nvrtc' brings it, or set KW_NVRTC to the library's path");
}

std::unique_ptr<Nvrtc> load() {
  auto compiler = std::make_unique<Nvrtc>();
  void* handle = open_nvrtc();
  std::string missing;
#define KW_LOAD(name) \
  if (!(compiler->name = reinterpret_cast<decltype(compiler->name)>(dlsym(handle, #name)))) missing += " " #name;
  KW_NVRTC_FUNCTIONS(KW_LOAD)
#undef KW_LOAD
#define KW_LOAD(name) compiler->name = reinterpret_cast<decltype(compiler->name)>(dlsym(handle, #name));
  KW_NVRTC_OPTIONAL(KW_LOAD)
#undef KW_LOAD
  if (!missing.empty()) throw Error(KW_ERROR_TOOLCHAIN, "this NVRTC lacks" + missing + ": NVRTC 12.0 or newer is needed");
  compiler->path = file_of(reinterpret_cast<const void*>(compiler->nvrtcCompileProgram));
  compiler->nvrtcVersion(&compiler->major, &compiler->minor);
  int count = 0;
  if (!compiler->nvrtcGetNumSupportedArchs(&count) && count > 0) {
    compiler->archs.resize(static_cast<size_t>(count));
    compiler->nvrtcGetSupportedArchs(compiler->archs.data());
    std::sort(compiler->archs.begin(), compiler->archs.end());
  }
  compiler->identity = format("nvrtc %d.%d", compiler->major, compiler->minor);
  return compiler;
}

struct Program {
  const Nvrtc& compiler;
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle) compiler.nvrtcDestroyProgram(&handle);
  }
};

void check(const Nvrtc& compiler, nvrtcResult result, const char* doing) {
  if (result != NVRTC_SUCCESS)
    throw Error(result == NVRTC_ERROR_OUT_OF_MEMORY ? KW_ERROR_MEMORY : KW_ERROR_TOOLCHAIN,
                format("NVRTC, %s: %s", doing, compiler.nvrtcGetErrorString(result)));
}

// The first three errors, each with the lines that show its place.
std::string first_errors(const std::string& log) {
  std::string out;
  int errors = 0, lines = 0;
  bool showing = false;
  for (size_t at = 0; at < log.size() && lines < 30;) {
    size_t end = std::min(log.find('\n', at), log.size());
    std::string line = log.substr(at, end - at);
    at = end + 1;
    if (line.find(": error") != std::string::npos || line.find("error:") != std::string::npos) {
      showing = ++errors <= 3;
    } else if (line.find(": warning") != std::string::npos || line.find("detected in the compilation") != std::string::npos) {
      showing = false;
    }
    if (showing && !line.empty()) out += "\n  " + line, lines++;
  }
  return out.empty() ? "\n" + log.substr(0, 2000) : out;
}

std::string log_of(const Nvrtc& compiler, nvrtcProgram program) {
  size_t size = 0;
  if (compiler.nvrtcGetProgramLogSize(program, &size) || size < 2) return "";
  std::string log(size, '\0');
  compiler.nvrtcGetProgramLog(program, log.data());
  log.resize(size - 1);
  return log;
}

}  // namespace

const Nvrtc& nvrtc() {
  if (const Nvrtc* ready = current.load(std::memory_order_acquire)) return *ready;
  std::lock_guard lock(loading);
  if (!current.load(std::memory_order_relaxed)) current.store(load().release(), std::memory_order_release);
  return *current.load(std::memory_order_relaxed);
}

const Nvrtc* find_nvrtc(std::string* why) {
  try {
    return &nvrtc();
  } catch (const Error& e) {
    if (why) *why = e.what();
    return nullptr;
  }
}

Target target_for(const Nvrtc& compiler, int gpu_arch) {
  if (gpu_arch < oldest_arch)
    throw Error(KW_ERROR_UNSUPPORTED, format("sm_%d is not supported; Kernelwright needs sm_%d (Turing) or newer", gpu_arch, oldest_arch));
  if (compiler.archs.empty()) return {gpu_arch, false};
  auto after = std::upper_bound(compiler.archs.begin(), compiler.archs.end(), gpu_arch);
  if (after == compiler.archs.begin())
    throw Error(KW_ERROR_UNSUPPORTED, format("NVRTC %d.%d compiles for sm_%d and newer, but the GPU is sm_%d: install an older NVRTC and "
                                             "set KW_NVRTC to it",
                                             compiler.major, compiler.minor, compiler.archs.front(), gpu_arch));
  int arch = *--after;
  return {arch, arch / 10 != gpu_arch / 10};
}

std::vector<std::string> compile_options(Target target) {
  // No folder is searched: every text that goes in is in the hash.
  return {format(target.ptx ? "-arch=compute_%d" : "-arch=sm_%d", target.arch), "--std=c++20", "-lineinfo", "-no-source-include",
          "--fmad=false"};  // products and sums are fused where the source says so: else kernels of one op round differently
}

Digest kernel_key(const Nvrtc& compiler, const SourceSet& sources, const std::string& expression, Target target) {
  Sha256 sha;
  sha.add("kernelwright kernel 1").add(compiler.identity).add(expression);
  for (const auto& option : compile_options(target)) sha.add(option);
  sha.add(hex(sources.digest));
  return sha.finish();
}

CompiledKernel compile(const Nvrtc& compiler, const SourceSet& sources, const std::string& expression, Target target) {
  std::vector<const char*> texts, names, options;
  for (const auto& file : sources.files) texts.push_back(file.text.c_str()), names.push_back(file.path.c_str());
  const std::vector<std::string> option_texts = compile_options(target);
  for (const auto& option : option_texts) options.push_back(option.c_str());

  const std::string& path = sources.files.front().path;
  std::string main = sources.preamble + "#include \"" + path + "\"\n";
  Program program{compiler};
  check(compiler,
        compiler.nvrtcCreateProgram(&program.handle, main.c_str(), "kernel.cu", static_cast<int>(texts.size()), texts.data(), names.data()),
        "creating a program");
  check(compiler, compiler.nvrtcAddNameExpression(program.handle, expression.c_str()), "naming a kernel");
  nvrtcResult result = compiler.nvrtcCompileProgram(program.handle, static_cast<int>(options.size()), options.data());
  if (result != NVRTC_SUCCESS) {
    std::string from = sources.files.front().on_disk ? ", read from " + sources.root : "";
    std::string log = log_of(compiler, program.handle);
    throw Error(KW_ERROR_TOOLCHAIN, format("the kernel %s of %s%s does not compile for sm_%d: %s%s", expression.c_str(), path.c_str(),
                                           from.c_str(), target.arch, compiler.nvrtcGetErrorString(result), first_errors(log).c_str()));
  }
  CompiledKernel out;
  const char* lowered = nullptr;
  check(compiler, compiler.nvrtcGetLoweredName(program.handle, expression.c_str(), &lowered), "finding the kernel's name");
  out.name = lowered;
  auto size_of = target.ptx ? compiler.nvrtcGetPTXSize : compiler.nvrtcGetCUBINSize;
  auto code_of = target.ptx ? compiler.nvrtcGetPTX : compiler.nvrtcGetCUBIN;
  if (!size_of || !code_of) throw Error(KW_ERROR_UNSUPPORTED, "this compiler makes no PTX: " + compiler.path);
  size_t bytes = 0;
  check(compiler, size_of(program.handle, &bytes), "sizing the code");
  out.code.resize(bytes);
  check(compiler, code_of(program.handle, out.code.data()), "reading the code");
  return out;
}

}  // namespace kw
