#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>

#include "kw/runtime/copy_rate.h"
#include "kw/runtime/device.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/timer.h"
#include "testing/inputs.h"
#include "tools/kw/devices.h"
#include "tools/kw/machine.h"
#include "tools/kw/progress.h"
#include "tools/kw/verb.h"

namespace kw::tool {
namespace {

struct Row {
  std::string op, arguments;
  int64_t bytes = 0;
  size_t runs = 0;
  double median = 0, p20 = 0, p80 = 0;  // seconds
};

// Runs `once` and gives its time; what it does between runs is not timed.
using Timed = std::function<double()>;

void measure(const Timed& once, double min_time, Row& row) {
  for (int i = 0; i < 3; i++) once();  // compiles, allocates thread pools, warms clocks
  std::vector<double> seconds;
  const auto start = std::chrono::steady_clock::now();
  auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  while (seconds.size() < 11 || (spent() < min_time && seconds.size() < 100000)) {
    seconds.push_back(once());
    if (spent() > 20 * min_time + 10) break;  // one run of hours is no reason to make eleven
  }
  std::sort(seconds.begin(), seconds.end());
  row.runs = seconds.size();
  row.median = seconds[seconds.size() / 2];
  row.p20 = seconds[seconds.size() / 5];
  row.p80 = seconds[seconds.size() * 4 / 5];
}

// Each input read once, each result written once; scratch is not counted, because a better kernel might need none.
int64_t bytes_moved(const Op& op, const Bound& bound) {
  int64_t bytes = 0;
  for (size_t i = 0; i < op.contract.inputs.size(); i++)
    for (int32_t k = 0; k < bound.raw.inputs[i].count; k++) {
      const kw_tensor& t = bound.raw.inputs[i].tensors[k];
      int64_t n = dtype_bytes(t.dtype);
      for (int32_t d = 0; d < t.rank; d++) n *= t.sizes[d];
      bytes += op.contract.inputs[i].type.written ? 2 * n : n;
    }
  for (size_t r = 0; r < op.contract.results.size(); r++)
    if (bound.raw.results[r].count && op.contract.results[r].kind != Result::Kind::scratch)
      bytes += bound.results[r].elements() * dtype_bytes(bound.results[r].dtype);
  return bytes;
}

Row bench(test::Device& device, const Op& op, const test::Arguments& arguments, bool gradient, double min_time, EventTimer* timer,
          DeviceBuffer* flush) {
  struct Memory {  // freed whatever happens
    test::Device& device;
    std::vector<void*> all;
    ~Memory() {
      for (void* p : all) device.free(p);
    }
  } memory{device, {}};
  const size_t n = op.contract.inputs.size(), m = op.contract.results.size();
  std::vector<test::Tensor> shapes;
  std::vector<kw_tensor> views(n + m);
  std::vector<kw_argument> in(n), out(m);
  std::vector<std::vector<int64_t>> result_strides(m);
  // Values matter little to time, but NaN, zeros and subnormals do; 2^20 random elements repeat.
  for (size_t i = 0; i < n; i++) {
    const test::Argument& a = arguments.inputs[i];
    shapes.emplace_back();
    if (!a.present) continue;
    int64_t count = 1;
    for (int64_t s : a.sizes) count *= s;
    test::Tensor pattern(a.dtype, {std::min<int64_t>(std::max<int64_t>(count, 1), 1 << 20)});
    test::fill(pattern, test::Values::random, i + 1);
    const size_t bytes = static_cast<size_t>(count * dtype_bytes(a.dtype));
    auto* p = static_cast<unsigned char*>(device.allocate(bytes));
    memory.all.push_back(p);
    for (size_t at = 0; at < bytes; at += pattern.bytes.size())
      device.upload(p + at, pattern.bytes.data(), std::min(pattern.bytes.size(), bytes - at));
    shapes[i].present = true, shapes[i].dtype = a.dtype, shapes[i].sizes = a.sizes, shapes[i].strides.resize(a.sizes.size());
    int64_t step = 1;
    for (size_t d = a.sizes.size(); d-- > 0;) shapes[i].strides[d] = step, step *= std::max<int64_t>(a.sizes[d], 1);
    views[i] = shapes[i].view(p, device.type(), device.index());
    in[i] = {&views[i], 1};
  }
  const std::vector<kw_attribute> attributes = test::raw_attributes(op, arguments);
  Bound bound;
  bind_inputs(op, in.data(), attributes.data(), bound);
  for (size_t r = 0; r < m; r++) {
    const TensorSpec& s = bound.results[r];
    if (!s.present || (!gradient && op.contract.results[r].kind == Result::Kind::saved)) continue;
    void* p = device.allocate(static_cast<size_t>(s.elements() * dtype_bytes(s.dtype)));
    memory.all.push_back(p);
    result_strides[r].resize(static_cast<size_t>(s.rank));
    int64_t step = 1;
    for (int32_t d = s.rank; d-- > 0;) result_strides[r][static_cast<size_t>(d)] = step, step *= std::max<int64_t>(s.sizes[d], 1);
    views[n + r] = {p, s.sizes, result_strides[r].data(), s.rank, s.dtype, device.type(), device.index()};
    out[r] = {&views[n + r], 1};
  }
  bind_results(out.data(), bound);
  Row row{op.contract.name, describe(op, arguments), bytes_moved(op, bound)};
  if (timer) {
    measure(
        [&] {
          flush->fill(0);  // L2 holds none of the inputs then
          return timer->seconds(nullptr, [&] { execute(bound); });
        },
        min_time, row);
  } else {
    measure(
        [&] {
          const auto start = std::chrono::steady_clock::now();
          execute(bound);
          return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        },
        min_time, row);
  }
  return row;
}

void write(Json& json, const Row& r, double copy) {
  const double rate = static_cast<double>(r.bytes) / r.median / 1e9;
  json.open('{').key("op").string(r.op).key("arguments").string(r.arguments).key("median_us").number(r.median * 1e6);
  json.key("p20_us").number(r.p20 * 1e6).key("p80_us").number(r.p80 * 1e6).key("runs").whole(static_cast<int64_t>(r.runs));
  json.key("bytes").whole(r.bytes).key("gb_per_s").number(rate).key("share_of_copy").number(rate / copy).close('}');
}

int run(const Options& options) {
  const std::vector<const Op*> list = ops_named(options.words());
  const std::string name = options.get("--device", "cpu"), file = options.get("--json");
  if (name != "cpu" && name != "cuda") throw Usage{"--device takes cpu or cuda: times on anything else mean nothing"};
  if (options.has("--arg") && list.size() != 1) throw Usage{"--arg describes a call of one op: name it"};
  const double min_time = options.number("--min-time", 0.5, 0.001, 600);
  struct Work {
    const Op* op;
    test::Arguments arguments;
  };
  std::vector<Work> work;
  for (const Op* op : list) {
    if (options.has("--arg"))
      work.push_back({op, test::parse_arguments(*op, options.all("--arg"))});
    else
      for (int32_t i = 0; i < op->def->bench_count; i++) work.push_back({op, test::parse_arguments(*op, {op->def->bench[i].arguments})});
  }
  for (const auto& w : work) test::refuse_strides(*w.op, w.arguments);
  if (work.empty()) throw Usage{"no bench case: the rooms name none, so add --arg"};
  std::ofstream out;
  if (!file.empty()) {  // before the work, not after it
    out.open(file);
    if (!out) throw Usage{"cannot write " + file};
  }
  const auto device = open_device(name);
  std::optional<EventTimer> timer;
  std::optional<DeviceBuffer> flush;
  double copy = 0;
  Progress progress;
  progress.show("copy rate", 0, static_cast<int64_t>(work.size()));
  if (name == "cuda") {
    timer.emplace(0);
    // 60 us of work on an H200, so that the host has enqueued the kernel before it ends: a kernel that follows an idle moment of 0.3 ms
    // takes 2-3 % longer.
    flush.emplace(0, static_cast<size_t>(std::max<int64_t>(4 * device_facts(0).l2_bytes, 64 << 20)));
    copy = measure_copy_rate(0).best();
  } else {
    copy = cpu_copy_rate();
  }
  progress.clear();
  Json json;
  json.open('{').key("kind").string("kw_bench").key("schema").whole(1).key("date").string(utc_now()).key("commit");
  const std::string commit = git_commit();
  commit.empty() ? json.null() : json.string(commit);
  std::string line;
  for (const std::string& word : command_line()) line += (line.empty() ? "" : " ") + word;
  json.key("command").string(line).key("version").string(KW_VERSION).key("device").string(name).key("machine");
  write_machine(json);
  json.key("gpu");
  if (timer) {
    const kw_device_facts& f = device_facts(0);
    json.open('{').key("name").string(f.name).key("arch").whole(f.arch).key("sm_count").whole(f.sm_count).key("l2_bytes").whole(f.l2_bytes);
    json.key("driver").whole(driver().version).close('}');
  } else {
    json.null();
  }
  json.key("cold_cache").boolean(timer.has_value()).key("copy_gb_per_s").number(copy).key("cases").open('[');
  std::printf("%s, copy rate %.1f GB/s\n%-20s %10s %10s %10s %9s %6s  %s\n", timer ? device_facts(0).name : cpu_model().c_str(), copy, "op",
              "median us", "p20", "p80", "GB/s", "copy", "arguments");
  for (size_t i = 0; i < work.size(); i++) {
    progress.show(work[i].op->contract.name, static_cast<int64_t>(i), static_cast<int64_t>(work.size()));
    const Row r = bench(*device, *work[i].op, work[i].arguments, !options.has("--no-gradient"), min_time, timer ? &*timer : nullptr,
                        flush ? &*flush : nullptr);
    progress.clear();
    const double rate = static_cast<double>(r.bytes) / r.median / 1e9;
    std::printf("%-20s %10.2f %10.2f %10.2f %9.1f %5.0f%%  %s\n", r.op.c_str(), r.median * 1e6, r.p20 * 1e6, r.p80 * 1e6, rate,
                100 * rate / copy, r.arguments.c_str());
    std::fflush(stdout);
    write(json, r, copy);
  }
  json.close(']').close('}');
  if (!file.empty() && !(out << json.text() << "\n" << std::flush)) throw Error(KW_ERROR_INTERNAL, "writing " + file + " failed");
  return 0;
}

}  // namespace

const Verb bench_verb = {
    "bench",
    "[OP...]",
    "how long ops take, and their share of the copy rate",
    "Times the rooms' bench cases, or one call. Median, 20th and 80th percentile; GB/s counts every input read once and every result\n"
    "written once; the share is of the copy rate measured in the same run. On cuda the L2 cache is overwritten before every run; on\n"
    "the cpu a call finds the caches as the last one left them. benchmarks/README.md has the form of the JSON file.\n\n"
    "example: kw bench --device cpu --min-time 1 --json results.json",
    {{"--device", "NAME", "cpu (default) or cuda"},
     {"--arg", "NAME=VALUE", "a tensor or an attribute of a single call; may be repeated"},
     {"--no-gradient", nullptr, "leave out what an op computes for its gradient only"},
     {"--min-time", "SECONDS", "to spend on each case (default 0.5)"},
     {"--json", "FILE", "also write the results there"}},
    run};

}  // namespace kw::tool
