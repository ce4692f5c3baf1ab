// Compiled kernels on disk, named by their content: a file is right or it is ignored, never out of date. Any number of processes may use
// the folder at once (kw/runtime/cache_folder.h). Every trouble is told once, and the process goes on without the cache.
#pragma once
#include <optional>

#include "kw/runtime/cache_folder.h"
#include "kw/runtime/nvrtc.h"

namespace kw {

// Nothing when the file is absent, cut short, foreign or damaged. Marks the kernel as used now.
std::optional<CompiledKernel> load_from_disk(const Digest& key);
bool is_on_disk(const Digest& key);  // by name alone; marks nothing

// Written beside its place and renamed. Makes room first for what is above the limit, least recently used first.
void save_to_disk(const Digest& key, const CompiledKernel& kernel);

}  // namespace kw
