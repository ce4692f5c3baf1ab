// kw pack: compiles ahead of time, into one file.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "kw/runtime/device.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/driver.h"
#include "kw/runtime/kernel_cache.h"
#include "kw/runtime/pack_file.h"
#include "kw/runtime/problem.h"
#include "tools/kw/call_in_words.h"
#include "tools/kw/json.h"
#include "tools/kw/machine.h"
#include "tools/kw/pack_calls.h"
#include "tools/kw/progress.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

struct Wanted {  // a kernel to compile
  std::string op;
  kw_kernel kernel;
  int arch = 0;
};

std::vector<kw_device_facts> archs_asked(const Options& options) {
  std::string rest = options.get("--arch");
  if (rest.empty()) {
    if (emulator_requested() || device_count() == 0) throw Usage{"kw pack needs --arch, for example --arch sm_80,sm_90,sm_100"};
    return {device_facts(0)};
  }
  std::vector<kw_device_facts> out;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    out.push_back(facts_of_arch(rest.substr(0, comma)));
    rest.erase(0, comma + 1);
  }
  return out;
}

// Every kernel once, however many calls choose it.
std::vector<Wanted> kernels_wanted(const Options& options, const std::vector<kw_device_facts>& gpus) {
  std::vector<Wanted> out;
  std::map<std::string, bool> seen;
  for (const Op* op : ops_named(options.words())) {
    const std::vector<std::string> words = options.all("--arg");
    std::vector<test::Arguments> calls;
    if (words.empty())
      calls = calls_for_pack(*op);
    else
      calls.push_back(test::parse_arguments(*op, words));
    for (const test::Arguments& arguments : calls) {
      const CallInWords call(*op, arguments);
      if (is_empty(call.bound())) continue;
      for (const kw_device_facts& gpu : gpus) {
        const kw_choice choice = choose_kernels(call.bound(), alignment_of(call.bound()), gpu);
        for (int32_t k = 0; k < choice.kernel_count; k++) {
          const kw_kernel& kernel = choice.kernels[k];
          if (bool& known = seen[format("%d %s %s", gpu.arch, kernel.source, kernel.name)]; !known) {
            known = true;
            out.push_back({op->contract.name, kernel, gpu.arch});
          }
        }
      }
    }
  }
  return out;
}

// On `jobs` threads. The first failure ends the work, because a pack that silently lacks a kernel is worth little.
std::vector<PackedKernel> compile_all(const std::vector<Wanted>& wanted, int jobs) {
  std::vector<PackedKernel> out(wanted.size());
  std::atomic<size_t> next{0}, done{0};
  std::mutex mutex;
  std::exception_ptr failure;
  Progress progress;
  auto work = [&] {
    for (size_t i; (i = next++) < wanted.size();) {
      const Wanted& w = wanted[i];
      try {
        const auto sources = source_set(w.kernel.source);
        out[i] = {w.kernel.name, w.arch, pack_key(*sources, w.kernel.name, w.arch), sources->digest,
                  find_code(*sources, w.kernel.name, w.arch, true)};
      } catch (const Error& e) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::make_exception_ptr(Error(e.status(), w.op + ": " + e.what()));
        next = wanted.size();
      }
      std::lock_guard lock(mutex);
      progress.show(w.op, static_cast<int64_t>(++done), static_cast<int64_t>(wanted.size()));
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < jobs; i++) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  if (failure) std::rethrow_exception(failure);
  return out;
}

void say(const Options& options, const std::string& path, const std::vector<PackedKernel>& kernels, const std::vector<Wanted>& wanted,
         double seconds, uint64_t compiled) {
  std::map<std::string, int64_t> per_op;
  std::map<int, int64_t> per_arch;
  int64_t bytes = 0;
  for (const Wanted& w : wanted) per_op[w.op]++, per_arch[w.arch]++;
  for (const PackedKernel& k : kernels) bytes += static_cast<int64_t>(k.kernel.code.size());
  if (options.has("--json")) {
    Json json;
    json.open('{').key("path").string(path).key("kernels").whole(static_cast<int64_t>(kernels.size())).key("code_bytes").whole(bytes);
    json.key("compiled").whole(static_cast<int64_t>(compiled)).key("seconds").number(seconds).key("ops").open('{');
    for (const auto& [op, count] : per_op) json.key(op).whole(count);
    json.close('}').key("archs").open('{');
    for (const auto& [arch, count] : per_arch) json.key(format("sm_%d", arch)).whole(count);
    std::printf("%s\n", json.close('}').close('}').text().c_str());
    return;
  }
  for (const auto& [op, count] : per_op) std::printf("%-24s %6lld kernels\n", op.c_str(), static_cast<long long>(count));
  std::printf("%s: %zu kernels, %.1f MiB of code, %llu compiled now, %.0f s\n", path.c_str(), kernels.size(),
              static_cast<double>(bytes) / (1 << 20), static_cast<unsigned long long>(compiled), seconds);
}

int run(const Options& options) {
  const std::string path = options.get("-o");
  if (path.empty()) throw Usage{"kw pack needs -o FILE; kernelwright.pack beside the library is found by itself"};
  if (options.has("--arg") && options.words().size() != 1) throw Usage{"--arg describes a call of one op: name it"};
  const auto jobs = static_cast<int>(options.whole("--jobs", cpu_cores(), 1, 1024));
  const std::vector<kw_device_facts> gpus = archs_asked(options);
  const Nvrtc& compiler = nvrtc();
  const bool emulator = emulator_requested() || (find_driver() && driver().emulator);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Wanted> wanted = kernels_wanted(options, gpus);
  if (wanted.empty()) throw Usage{"there is nothing to pack: the rooms name no bench case, so add --arg"};
  if (options.has("--list")) {
    for (const Wanted& w : wanted) std::printf("sm_%d %s\n", w.arch, w.kernel.name);
    return 0;
  }
  std::vector<PackedKernel> kernels = compile_all(wanted, jobs);
  PackHeader header;
  header.emulator = emulator;
  header.compiler_major = static_cast<uint32_t>(compiler.major);
  std::snprintf(header.compiler, sizeof header.compiler, "%s", compiler.identity.c_str());
  write_pack(path, header, kernels);
  say(options, path, kernels, wanted, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
      cache_counts().compiled);
  return 0;
}

}  // namespace

const Verb pack_verb = {
    "pack",
    "[OP...]",
    "compile kernels ahead, into one file",
    "Compiles what the ops' bench cases ask for at the usual row lengths, in their dtypes and f16, for each architecture; or, with --arg,\n"
    "one call. A process finds the pack when it lies beside the library as kernelwright.pack, or when KW_PACK names it, and compiles\n"
    "what is not in it. A kernel whose source was edited is not in it. Needs NVRTC and no GPU. What was compiled before comes from the\n"
    "disk cache. docs/packs.md has the format.\n\n"
    "example: kw pack --arch sm_80,sm_90,sm_100 -o kernelwright.pack",
    {{"--arch", "sm_80,sm_90", "architectures, from sm_75 on; without it, that of the GPU here"},
     {"-o", "FILE", "the pack to write"},
     {"--arg", "NAME=VALUE", "this call alone; may be repeated, as for kw plan"},
     {"--jobs", "N", "compile on N threads; without it, as many as there are cores"},
     {"--list", nullptr, "print the kernels and compile nothing"},
     {"--json", nullptr, "the summary as JSON"}},
    run};

}  // namespace kw::tool
