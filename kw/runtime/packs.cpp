#include "kw/runtime/packs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "kw/core/error.h"
#include "kw/core/log.h"
#include "kw/runtime/driver.h"
#include "kw/runtime/library.h"

namespace fs = std::filesystem;

namespace kw {
namespace {

struct State {
  std::mutex mutex;
  bool looked = false;
  std::string setting;  // of KW_PACK, when we looked
  std::string why;
  std::vector<std::unique_ptr<const Pack>> opened;  // never closed: a reader may hold one
  const Pack* pack = nullptr;
};
State& state() {
  static auto* s = new State;
  return *s;
}

const char* wish() {
  const char* path = std::getenv("KW_PACK");
  return path ? path : "";
}

// "" when there is none. A library that is reached by a link (a staged package) has its pack beside the link or beside the file.
std::string beside_the_library() {
  std::error_code none;
  const fs::path own = own_dir();
  const fs::path real = fs::canonical(own_file(), none).parent_path();
  for (const fs::path& dir : {own, real, own / "../lib"})
    if (const fs::path file = dir / "kernelwright.pack"; fs::exists(file, none)) return file.lexically_normal().string();
  return "";
}

}  // namespace

const Pack* pack_in_use(std::string* why) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.looked || s.setting != wish()) {
    s.looked = true, s.setting = wish(), s.pack = nullptr, s.why = "";
    const std::string path = s.setting.empty() ? beside_the_library() : s.setting;
    if (!path.empty() && path != "0") try {
        s.opened.push_back(std::make_unique<const Pack>(path));
        s.pack = s.opened.back().get();
      } catch (const Error& e) {
        s.why = e.what();
      }
  }
  if (why) *why = s.why;
  return s.pack;
}

std::string trouble_with(const Pack& pack, const Driver& cuda) {
  const PackHeader& h = pack.header();
  const char* made_by = h.compiler;
  const auto compiler = std::string(made_by, strnlen(made_by, sizeof h.compiler));
  if (cuda.emulator) {
    if (!h.emulator) return "the pack " + pack.path() + " is for GPUs, but the driver is the emulator";
    return compiler == nvrtc().identity ? "" : "the pack " + pack.path() + " was made by another build of the emulator";
  }
  if (h.emulator) return "the pack " + pack.path() + " is for the emulator, but the driver is a GPU's";
  if (static_cast<int>(h.compiler_major) > cuda.version / 1000)
    return format("the pack %s was compiled by %s, but the driver is for CUDA %d.%d: a newer driver is needed for it", pack.path().c_str(),
                  compiler.c_str(), cuda.version / 1000, cuda.version % 1000 / 10);
  return "";
}

std::string trouble_with(const Pack& pack, int gpu_arch) {
  const std::vector<int> archs = pack.archs();
  if (std::any_of(archs.begin(), archs.end(), [&](int a) { return a <= gpu_arch && a / 10 == gpu_arch / 10; })) return "";
  return format("the pack %s holds kernels for %s and none that an sm_%d GPU runs", pack.path().c_str(), pack.archs_text().c_str(),
                gpu_arch);
}

const PackEntry* find_in_pack(const Pack& pack, const SourceSet& sources, const std::string& expression, int gpu_arch) {
  const std::vector<int> archs = pack.archs();
  for (auto arch = archs.rbegin(); arch != archs.rend(); ++arch)
    if (*arch <= gpu_arch && *arch / 10 == gpu_arch / 10)
      if (const PackEntry* entry = pack.find(pack_key(sources, expression, *arch))) return entry;
  return nullptr;
}

std::optional<PackedKernel> load_from_pack(const SourceSet& sources, const std::string& expression, int gpu_arch) {
  std::string why;
  const Pack* pack = pack_in_use(&why);
  auto warn_of = [](const std::string& trouble) { warn(trouble + "; kernels are compiled at their first call"); };
  if (!pack) {
    if (!why.empty()) warn_of(why);
    return std::nullopt;
  }
  why = trouble_with(*pack, driver());
  // The pack that came with the library stays silent under the emulator, which was asked for.
  if (!why.empty() && driver().emulator && *wish() == '\0') return std::nullopt;
  if (why.empty()) why = trouble_with(*pack, gpu_arch);
  if (!why.empty()) return warn_of(why), std::nullopt;
  const PackEntry* entry = find_in_pack(*pack, sources, expression, gpu_arch);
  if (!entry) return std::nullopt;
  auto packed = pack->read(*entry);
  if (!packed) warn_of("the pack " + pack->path() + " is damaged: the checksum of a kernel does not agree");
  return packed;
}

}  // namespace kw
