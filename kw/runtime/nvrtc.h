// NVRTC, the CUDA run-time compiler, found at run time; nvrtc.h gives types only.
#pragma once
#include <nvrtc.h>

#include <string>
#include <vector>

#include "kw/runtime/source_set.h"

namespace kw {

// clang-format off
#define KW_NVRTC_FUNCTIONS(F) \
  F(nvrtcVersion) F(nvrtcGetErrorString) F(nvrtcGetNumSupportedArchs) F(nvrtcGetSupportedArchs) \
  F(nvrtcCreateProgram) F(nvrtcDestroyProgram) F(nvrtcAddNameExpression) F(nvrtcCompileProgram) \
  F(nvrtcGetProgramLogSize) F(nvrtcGetProgramLog) F(nvrtcGetLoweredName) F(nvrtcGetCUBINSize) F(nvrtcGetCUBIN)
// The emulator has none: null then.
#define KW_NVRTC_OPTIONAL(F) F(nvrtcGetPTXSize) F(nvrtcGetPTX)
// clang-format on

struct Nvrtc {
#define KW_MEMBER(name) decltype(&::name) name = nullptr;
  KW_NVRTC_FUNCTIONS(KW_MEMBER)
  KW_NVRTC_OPTIONAL(KW_MEMBER)
#undef KW_MEMBER
  std::string path;
  int major = 0, minor = 0;
  std::string identity;    // what a cached kernel depends on: "nvrtc 13.0"; the emulator puts its build into the minor version
  std::vector<int> archs;  // it can compile for, ascending
};

// Looks for: KW_NVRTC (a path); the driver's own compiler when that is the emulator; the libnvrtc.so.13 or .12 that is loaded already;
// toolkit_dirs(); the system's. Throws KW_ERROR_TOOLCHAIN with what was tried and what to do; the next call tries again.
const Nvrtc& nvrtc();
const Nvrtc* find_nvrtc(std::string* why = nullptr);

// What to compile for a GPU: its own architecture; else the nearest older one of the same major version, whose code it runs; else PTX
// of the newest older one, which the driver finishes. A GPU newer than NVRTC is so slower to start, never refused.
struct Target {
  int arch = 0;
  bool ptx = false;
};
Target target_for(const Nvrtc& compiler, int gpu_arch);

struct CompiledKernel {
  std::string name;  // as the driver knows it (mangled)
  std::string code;  // cubin or PTX
};

// The options of a compile, and the name of its result in every cache: a hash of all text that went in, the options, the compiler and
// the expression.
std::vector<std::string> compile_options(Target target);
Digest kernel_key(const Nvrtc& compiler, const SourceSet& sources, const std::string& expression, Target target);

// Compiles one kernel, named by a C++ expression, out of the set's first file. Throws KW_ERROR_TOOLCHAIN with the file and the log's
// first errors; nothing is left behind.
CompiledKernel compile(const Nvrtc& compiler, const SourceSet& sources, const std::string& expression, Target target);

}  // namespace kw
