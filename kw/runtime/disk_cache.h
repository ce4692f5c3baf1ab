// Compiled kernels on disk, named by their content: a file is right or it is ignored, never out of date.
//
// Folder: KW_CACHE_DIR, else $XDG_CACHE_HOME/kernelwright, else ~/.cache/kernelwright; made 0700. KW_CACHE=0 turns the cache off.
// A folder that another user owns or may write to is not used: code is loaded from here. Every trouble is told once on stderr, and the
// process goes on without the cache.
#pragma once
#include <optional>
#include <string>

#include "kw/runtime/nvrtc.h"

namespace kw {

// The folder in use; "" when the cache is off or refused (then `why` says so).
std::string disk_cache_dir(std::string* why = nullptr);

// Nothing when the file is absent, cut short, foreign or damaged.
std::optional<CompiledKernel> load_from_disk(const Digest& key);

// Written beside its place and renamed, so that no reader sees half a file.
void save_to_disk(const Digest& key, const CompiledKernel& kernel);

}  // namespace kw
