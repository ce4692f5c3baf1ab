// The pack that this process looks in before it compiles: the file that KW_PACK names ("0": none), else kernelwright.pack beside the
// library. Opened at the first look-up. What keeps it, or a part of it, from being used is told once, and kernels are compiled.
#pragma once
#include "kw/runtime/pack_file.h"

namespace kw {

struct Driver;

// Null when there is none, or it cannot be used at all; then `why` says so ("" when none was looked for, or none is there).
const Pack* pack_in_use(std::string* why = nullptr);

// Why a process with this driver cannot use the pack, "" when it can; and the same for a GPU.
std::string trouble_with(const Pack& pack, const Driver& cuda);
std::string trouble_with(const Pack& pack, int gpu_arch);

// The entry of a kernel for this GPU: of its own architecture, else of the nearest older one of the same major version, whose code it
// runs; null when there is none. An edited source is another kernel.
const PackEntry* find_in_pack(const Pack& pack, const SourceSet& sources, const std::string& expression, int gpu_arch);

// The kernel for this process's driver and a GPU, or nothing.
std::optional<PackedKernel> load_from_pack(const SourceSet& sources, const std::string& expression, int gpu_arch);

}  // namespace kw
