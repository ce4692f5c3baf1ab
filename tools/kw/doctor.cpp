#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "kw/core/op.h"
#include "kw/cpu/isa.h"
#include "kw/cpu/parallel.h"
#include "kw/runtime/copy_rate.h"
#include "kw/runtime/device.h"
#include "kw/runtime/disk_cache.h"
#include "kw/runtime/driver.h"
#include "kw/runtime/library.h"
#include "kw/runtime/packs.h"
#include "tools/kw/json.h"
#include "tools/kw/machine.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

struct Line {
  std::string what, state, text, advice;  // state: ok, warning or missing
};

std::string program(const char* name) {  // its path, as the shell would find it
  const char* path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string file = rest.substr(0, colon) + "/" + name;
    std::error_code none;
    if (std::filesystem::is_regular_file(file, none)) return file;
    rest.erase(0, colon + 1);
  }
  return "";
}

// Of every file with kernels that this process has, edits below KW_KERNEL_PATH included.
std::set<Digest> all_source_digests() {
  std::set<Digest> out;
  for (const Op* op : ops())
    for (const kw_source* s = op->room->sources; s && s->path; s++) out.insert(source_set(s->path)->digest);
  return out;
}

void gpu_lines(std::vector<Line>& lines, bool quick) {
  std::string why;
  const Driver* cuda = find_driver(&why);
  if (!cuda) {
    lines.push_back({"driver", "missing", why, "ops run on the CPU; kernels are checked with kw check --device emulate"});
    return;
  }
  lines.push_back({"driver", "ok",
                   format("CUDA %d.%d, %s%s", cuda->version / 1000, cuda->version % 1000 / 10, cuda->path.c_str(),
                          cuda->emulator ? " (the emulator)" : ""),
                   ""});
  const int count = device_count();
  if (count == 0) lines.push_back({"gpu", "missing", "the driver sees no GPU", "look at nvidia-smi and CUDA_VISIBLE_DEVICES"});
  for (int i = 0; i < count; i++) {
    const std::string name = count == 1 ? "gpu" : format("gpu %d", i);
    try {
      const kw_device_facts& f = device_facts(i);
      lines.push_back({name, "ok",
                       format("%s: sm_%d, %d SMs, %d KiB shared memory a block, %d KiB an SM, L2 %.0f MiB", f.name, f.arch, f.sm_count,
                              f.shared_per_block / 1024, f.shared_per_sm / 1024, static_cast<double>(f.l2_bytes) / (1 << 20)),
                       ""});
      if (quick || cuda->emulator) continue;
      const CopyRate rate = measure_copy_rate(i);
      lines.push_back({name + " copy", "ok",
                       format("%.0f GB/s read and written (%s), %.0f GB/s by the driver's own copy: the ceiling of memory-bound kernels",
                              rate.kernel_gb_per_s, rate.kernel.c_str(), rate.memcpy_gb_per_s),
                       ""});
    } catch (const Error& e) {
      lines.push_back({name, "warning", e.what(), ""});
    }
  }
}

void toolchain_lines(std::vector<Line>& lines) {
  std::string why;
  if (const Nvrtc* nvrtc = find_nvrtc(&why)) {
    const std::string range = nvrtc->archs.empty() ? "" : format(", for sm_%d to sm_%d", nvrtc->archs.front(), nvrtc->archs.back());
    lines.push_back({"nvrtc", "ok", format("%d.%d, %s%s", nvrtc->major, nvrtc->minor, nvrtc->path.c_str(), range.c_str()), ""});
  } else {
    lines.push_back({"nvrtc", "missing", why, "GPU kernels cannot be compiled: pip install nvidia-cuda-nvrtc, or a CUDA toolkit"});
  }
  std::error_code none;
  std::string emulator = own_dir() + "/libkwemu.so";
  if (!std::filesystem::exists(emulator, none)) emulator = own_dir() + "/../lib/libkwemu.so";
  if (std::filesystem::exists(emulator, none))
    lines.push_back({"emulator", "ok", std::filesystem::path(emulator).lexically_normal().string(), ""});
  else
    lines.push_back({"emulator", "missing", "no libkwemu.so beside this program or in ../lib",
                     "kw check --device emulate needs it: ninja -C build kwemu, or set KW_EMULATOR"});
  const std::string compiler = program("g++");
  if (!compiler.empty())
    lines.push_back({"g++", "ok", compiler, ""});
  else
    lines.push_back({"g++", "warning", "not on PATH", "the emulator compiles kernels with it: apt install g++"});
  std::string reason;
  const std::string cache = disk_cache_dir(&reason);
  if (cache.empty()) {
    lines.push_back({"cache", "warning", "compiled kernels are not kept: " + reason,
                     "every process compiles anew; set KW_CACHE_DIR to a folder of yours"});
  } else {
    const CacheUse use = cache_use(cache);
    lines.push_back({"cache", "ok",
                     format("%s: %lld kernels, %.1f of %.0f MiB", cache.c_str(), static_cast<long long>(use.files),
                            static_cast<double>(use.bytes) / (1 << 20), static_cast<double>(disk_cache_limit()) / (1 << 20)),
                     ""});
  }
}

// Whose kernels of the pack would this process use? Those of the very sources it has.
void pack_line(std::vector<Line>& lines) {
  std::string trouble;
  const Pack* pack = pack_in_use(&trouble);
  const std::string advice = "kernels are compiled at their first call; kw pack makes a pack";
  if (!pack) {
    const bool none = trouble.empty();
    lines.push_back(
        {"pack", none ? "ok" : "warning", none ? "none: kernels are compiled at their first call" : trouble, none ? "" : advice});
    return;
  }
  const Driver* cuda = find_driver();
  if (cuda) trouble = trouble_with(*pack, *cuda);
  for (int i = 0; cuda && trouble.empty() && i < device_count(); i++) trouble = trouble_with(*pack, device_facts(i).arch);
  int64_t edited = 0;
  const std::set<Digest> known = all_source_digests();
  for (const PackEntry& e : pack->entries()) edited += !known.count(e.sources);
  const std::string text = format("%s: %zu kernels for %s", pack->path().c_str(), pack->entries().size(), pack->archs_text().c_str());
  if (trouble.empty() && edited)
    trouble =
        format("%s; %lld of them are of other sources than this library's and are not used", text.c_str(), static_cast<long long>(edited));
  lines.push_back({"pack", trouble.empty() ? "ok" : "warning", trouble.empty() ? text : trouble, trouble.empty() ? "" : advice});
}

int run(const Options& options) {
  if (!options.words().empty()) throw Usage{"kw doctor takes no '" + options.words()[0].substr(0, 40) + "'"};
  const bool quick = options.has("--quick");
  std::vector<Line> lines;
  lines.push_back({"kw", ops().empty() ? "missing" : "ok", format("version %s, %zu ops", KW_VERSION, ops().size()),
                   ops().empty() ? "this build has no room in kw/ops" : ""});
  lines.push_back(
      {"cpu", "ok", format("%s, %s, %d threads on %d cores", cpu_model().c_str(), isa_name(isa()), thread_count(), cpu_cores()), ""});
  if (!has_isa(Isa::avx2))
    lines.push_back({"cpu isa", "warning", "no AVX2", "CPU kernels run with the baseline instructions, several times slower"});
  if (!quick)
    lines.push_back(
        {"cpu copy", "ok", format("%.1f GB/s read and written: the ceiling of memory-bound kernels here", cpu_copy_rate()), ""});
  gpu_lines(lines, quick);
  toolchain_lines(lines);
  pack_line(lines);
  bool usable = true;
  Json json;
  json.open('[');
  for (const Line& l : lines) {
    if (l.what == "kw") usable = l.state == "ok";
    json.open('{').key("what").string(l.what).key("state").string(l.state).key("text").string(l.text);
    if (!l.advice.empty()) json.key("advice").string(l.advice);
    json.close('}');
    if (options.has("--json")) continue;
    std::printf("%-9s %-8s %s\n", l.what.c_str(), l.state.c_str(), l.text.c_str());
    if (!l.advice.empty()) std::printf("%-18s -> %s\n", "", l.advice.c_str());
  }
  json.close(']');
  if (options.has("--json")) std::printf("%s\n", json.text().c_str());
  return usable ? 0 : 1;
}

}  // namespace

const Verb doctor_verb = {
    "doctor",
    "",
    "what of this machine Kernelwright can use",
    "One line for each thing: ok, warning or missing, and what to do. The copy rates are measured: no memory-bound kernel is faster.\n"
    "Exit status 0 when ops run at least on the CPU.\n\nexample: kw doctor --quick",
    {{"--quick", nullptr, "measure nothing"}, {"--json", nullptr, "the lines as JSON"}},
    run};

}  // namespace kw::tool
