#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "kw/runtime/device.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/driver.h"
#include "kw/runtime/kernel_cache.h"
#include "kw/runtime/problem.h"
#include "tools/kw/access.h"
#include "tools/kw/call_in_words.h"
#include "tools/kw/devices.h"
#include "tools/kw/json.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

std::vector<kw_device_facts> gpus_asked(const Options& options) {
  if (options.has("--arch") && options.has("--gpu")) throw Usage{"--arch and --gpu exclude each other"};
  if (options.has("--gpu")) {
    if (options.get("--gpu") != "all") return {known_gpu(options.get("--gpu"))};
    std::vector<kw_device_facts> all;
    for (const KnownGpu& g : known_gpus()) all.push_back(g.facts);
    return all;
  }
  const std::string arch = options.get("--arch");
  if (arch == "all") return {facts_of_arch("sm_75"), facts_of_arch("sm_80"), facts_of_arch("sm_90"), facts_of_arch("sm_100")};
  if (!arch.empty()) return {facts_of_arch(arch)};
  return {!emulator_requested() && device_count() > 0 ? device_facts(0) : facts_of_arch("sm_90")};
}

void plan_json(Json& json, const Op& op, const Bound& bound, const kw_device_facts& gpu) {
  json.key("gpu").open('{').key("name").string(gpu.name).key("arch").whole(gpu.arch).key("sm_count").whole(gpu.sm_count).close('}');
  json.key("alignment").whole(alignment_of(bound)).key("strided").boolean(is_strided(bound)).key("launches").open('[');
  if (!is_empty(bound)) {
    const kw_choice choice = choose_kernels(bound, alignment_of(bound), gpu);
    kw_plan plan;
    fill_launches(bound, gpu, choice, plan);
    for (int32_t i = 0; i < plan.launch_count; i++) {
      const kw_launch& l = plan.launches[i];
      if (l.kernel < 0 || l.kernel >= choice.kernel_count)
        throw Error(KW_ERROR_CONTRACT, op.contract.name + ": a launch names a kernel that was not chosen");
      const kw_kernel& kernel = choice.kernels[l.kernel];
      json.open('{').key("kernel").string(kernel.name).key("source").string(kernel.source).key("code");
      json.string(origin_name(origin_of(*source_set(kernel.source, is_strided(bound)), kernel.name, gpu.arch)));
      json.key("grid").open('[').whole(l.grid[0]).whole(l.grid[1]).whole(l.grid[2]).close(']');
      json.key("block").open('[').whole(l.block[0]).whole(l.block[1]).whole(l.block[2]).close(']');
      json.key("cluster").whole(l.cluster).key("shared_bytes").whole(l.shared_bytes).key("params_bytes").whole(l.params_bytes).close('}');
    }
  }
  json.close(']');
}

// The emulator as a device like `gpu`.
std::unique_ptr<test::Device> emulated(const kw_device_facts& gpu) {
  use_emulator();
  auto* set = reinterpret_cast<int (*)(const char*, const char*)>(dlsym(driver().handle, "kwemu_set"));
  if (!set) throw Error(KW_ERROR_TOOLCHAIN, format("the emulator %s has no function kwemu_set", driver().path.c_str()));
  set("sms", std::to_string(gpu.sm_count).c_str());
  set("arch", std::to_string(gpu.arch).c_str());
  set("detect", "0");  // that is for kw check
  return open_device("emulate");
}

int run(const Options& options) {
  if (options.words().empty()) throw Usage{"kw plan needs the name of an op; kw list shows what there is"};
  Json json;
  json.open('[');
  std::string text;
  const std::vector<kw_device_facts> gpus = gpus_asked(options);
  std::unique_ptr<test::Device> emulator;
  if (options.has("--access")) {
    if (gpus.size() != 1) throw Usage{"--access runs the call as on one GPU: give one --arch or --gpu"};
    emulator = emulated(gpus[0]);
  }
  for (const Op* op : ops_named(options.words())) {
    std::vector<std::string> words = options.all("--arg");
    if (words.empty() && op->def->bench_count) words.push_back(op->def->bench[0].arguments);
    const test::Arguments arguments = test::parse_arguments(*op, words);
    const CallInWords call(*op, arguments);
    for (const kw_device_facts& gpu : gpus) {
      json.open('{').key("op").string(op->contract.name).key("arguments").string(describe(*op, arguments));
      json.key("copies").open('[');
      for (const std::string& input : call.copies()) json.string(input);
      json.close(']');
      plan_json(json, *op, call.bound(), gpu);
      text += (text.empty() ? "" : "\n") + describe_plan(call.bound(), gpu) + "args    " + describe(*op, arguments) + "\n";
      for (const std::string& input : call.copies())
        text += "copy    " + input + ": no kernel reads this layout, so a face makes it contiguous first, and counts that\n";
      if (options.has("--compile")) {
        const auto start = std::chrono::steady_clock::now();
        const size_t bytes = is_empty(call.bound()) ? 0 : compile_for(call.bound(), gpu);
        const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        json.key("cubin_bytes").whole(static_cast<int64_t>(bytes)).key("compile_ms").number(ms);
        text += format("cubin   %zu bytes in %.0f ms (a cached kernel takes about none)\n", bytes, ms);
      }
      if (emulator) {
        for (const test::Argument& a : arguments.inputs)
          if (!a.strides.empty()) throw Usage{"--access counts contiguous tensors: leave the strides out"};
        const test::AccessReport report = test::observe_access(*emulator, driver().handle, *op, arguments);
        json.key("access").open('{');
        write_access(json, report);
        json.close('}');
        text += access_table(report);
      }
      json.close('}');
    }
  }
  json.close(']');
  std::printf("%s", options.has("--json") ? (json.text() + "\n").c_str() : text.c_str());
  return 0;
}

}  // namespace

const Verb plan_verb = {
    "plan",
    "OP...",
    "what a call would launch, without a GPU",
    "Prints every kernel launch of a call: kernel, grid, threads, shared memory, and where its code is: in the pack, in the disk\n"
    "cache, or nowhere yet. Without --arg, the op's first bench case.\n"
    "Tensors are written name=dtype[sizes], attributes name=value; required tensors that are left out are derived from the\n"
    "others (dy from x), optional ones are absent. Strides may follow the sizes: x=bf16[64,4096:8192,2]; what a face would have to\n"
    "copy is said. Without --arch and --gpu: the GPU that is here, else sm_90.\n\n"
    "example: kw plan OP --arg x=bf16[8192,4096] --arg eps=1e-5 --arch all",
    {{"--arg", "NAME=VALUE", "a tensor or an attribute; may be repeated"},
     {"--arch", "sm_90", "an architecture from sm_75 on, or all (sm_75, sm_80, sm_90, sm_100)"},
     {"--gpu", "h200", "a known GPU, or all: SM count and shared memory differ within an architecture"},
     {"--compile", nullptr, "compile the kernels too (NVRTC), and print the code's size and the time"},
     {"--access", nullptr, "run the call on the emulator and count what its loads and stores cost (a minute for 512 MiB)"},
     {"--json", nullptr, "the launches as JSON"}},
    run};

}  // namespace kw::tool
