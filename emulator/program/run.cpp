// Running a built program in this process, and its launches.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "emulator/cudart/cudart.h"
#include "emulator/cudart/graph.h"
#include "emulator/engine/report.h"
#include "emulator/kwemu.h"
#include "emulator/program/program.h"

using namespace kwemu;
namespace {
Module* program = nullptr;

struct Launch {  // as in device/program.h
  struct {
    unsigned x, y, z;
  } grid, block;
  size_t shared_bytes;
  unsigned cluster;
  bool cooperative;
  const char* name;
};

cudaError_t check(const Launch& l) {
  u64 threads = u64{l.block.x} * l.block.y * l.block.z;
  if (!threads || threads > 1024 || l.block.z > 64 || !l.grid.x || !l.grid.y || !l.grid.z) return cudaErrorInvalidConfiguration;
  if (l.grid.x > 0x7fffffff || l.grid.y > 65535 || l.grid.z > 65535) return cudaErrorInvalidConfiguration;
  if (l.shared_bytes > max_shared_per_block(device_model.arch)) return cudaErrorInvalidValue;
  if (l.cluster > 16 || (l.cluster > 1 && l.grid.x % l.cluster)) return cudaErrorInvalidConfiguration;
  return cudaSuccess;
}
}  // namespace

KWEMU_EXPORT cudaError_t kwemu_start_kernel(const Launch* l, cudaStream_t stream, void (*run)(void*), const void* arguments, size_t bytes) {
  if (!current) {
    const auto* begin = static_cast<const char*>(arguments);
    const auto later = [launch = *l, run, kept = std::vector<char>(begin, begin + bytes)] {
      return kwemu_start_kernel(&launch, nullptr, run, kept.data(), kept.size());
    };
    if (captured(stream, cudaGraphNodeTypeKernel, later)) return cudaSuccess;
  }
  return runtime([&] {
    if (!program) return cudaErrorInitializationError;
    if (current) {
      report("nested-launch", KWEMU_PC, "a kernel launches %s: device-side launches are not supported", l->name);
      stop_launch();
    }
    if (cudaError_t e = check(*l)) return e;
    kwemu_kernel entry = {l->name, l->name, reinterpret_cast<void (*)(void**)>(run), nullptr, 0};
    Kernel kernel;
    kernel.module = program;
    kernel.name = kernel.expression = l->name;
    kernel.entry = &entry;
    LaunchConfig config{{l->grid.x, l->grid.y, l->grid.z},
                        {l->block.x, l->block.y, l->block.z},
                        static_cast<u32>(l->shared_bytes),
                        l->cluster ? l->cluster : 1,
                        l->cooperative};
    int result = run_launch(kernel, config, static_cast<void**>(const_cast<void*>(arguments)), bytes);
    // What was found is told at the end. The program itself goes on as on a GPU, which would not have noticed either, unless the launch
    // had to end where it stood.
    return engine.stopped || !engine.launch_errors ? static_cast<cudaError_t>(result) : cudaSuccess;
  });
}

KWEMU_EXPORT void kwemu_missing_function(const char* name) {
  fprintf(stderr, "kwemu: the program called %s, which the emulator does not have\n", name);
  exit(72);
}

extern "C" __attribute__((visibility("default"))) int kwemu_program_run(const char* library, int argc, char** argv) {
  if (!start_runtime()) {
    fprintf(stderr, "kwemu: the device's address space could not be reserved\n");
    return 71;
  }
  program = load_program(library);
  if (!program) {
    fprintf(stderr, "kwemu: %s cannot be loaded\n", library);
    return 71;
  }
  auto* entry = reinterpret_cast<int (*)(int, char**)>(dlsym(program->handle, "kwemu_main"));
  return entry ? entry(argc, argv) : 71;
}

extern "C" __attribute__((visibility("default"))) int kwemu_program_build(const struct kwemu_program* p, const char* output, char* log,
                                                                          size_t log_bytes) {
  ProgramSources sources;
  const auto list = [](const char* const* words, int count) { return std::vector<std::string>(words, words + count); };
  sources.files = list(p->files, p->file_count);
  sources.include_dirs = list(p->include_dirs, p->include_dir_count);
  sources.defines = list(p->defines, p->define_count);
  for (const std::string& set : list(p->sets, p->set_count)) {
    size_t equal = set.find('=');
    if (equal == 0 || equal == std::string::npos) {
      snprintf(log, log_bytes, "error: --set takes NAME=VALUE, not %s\n", set.c_str());
      return 1;
    }
    sources.initialisers.emplace_back(set.substr(0, equal), set.substr(equal + 1));
  }
  if (p->standard && *p->standard) sources.standard = p->standard;
  sources.arch = device_model.arch;
  std::string error = build_program(sources, output);
  snprintf(log, log_bytes, "%s", error.c_str());
  return error.empty() ? 0 : 1;
}
