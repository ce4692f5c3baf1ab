// `kw plan` and ahead-of-time compiling: the steps of a call that need no GPU.
#include "kw/runtime/disk_cache.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/launch.h"
#include "kw/runtime/packs.h"
#include "kw/runtime/problem.h"

namespace kw {
namespace {

// Bytes of memory that a tensor covers; a dimension of stride 0 repeats what is there.
int64_t bytes_of(const kw_argument& argument) {
  int64_t total = 0;
  for (int32_t i = 0; i < argument.count; i++) {
    const kw_tensor& t = argument.tensors[i];
    int64_t n = dtype_bytes(t.dtype);
    for (int32_t d = 0; d < t.rank; d++)
      if (t.strides[d] != 0 || t.sizes[d] == 0) n *= t.sizes[d];
    total += n;
  }
  return total;
}

std::string traffic(const Bound& bound) {
  const Contract& contract = bound.op->contract;
  int64_t read = 0, written = 0, scratch = 0;
  for (size_t i = 0; i < contract.inputs.size(); i++) {
    read += bytes_of(bound.raw.inputs[i]);
    if (contract.inputs[i].type.written) written += bytes_of(bound.raw.inputs[i]);
  }
  for (size_t i = 0; i < contract.results.size(); i++)
    (contract.results[i].kind == Result::Kind::scratch ? scratch : written) += bytes_of(bound.raw.results[i]);
  std::string text = format("moves   %lld bytes at least: reads %lld, writes %lld", static_cast<long long>(read + written),
                            static_cast<long long>(read), static_cast<long long>(written));
  return scratch ? text + format("; scratch of %lld bytes", static_cast<long long>(scratch)) + "\n" : text + "\n";
}

std::string shape(const uint32_t (&n)[3]) { return n[1] == 1 && n[2] == 1 ? format("%u", n[0]) : format("%u x %u x %u", n[0], n[1], n[2]); }

std::string code_text(const kw_kernel& kernel, bool strided, const kw_device_facts& gpu) {
  switch (origin_of(*source_set(kernel.source, strided), kernel.name, gpu.arch)) {
    case Origin::pack:
      return "in the pack " + pack_in_use()->path();
    case Origin::disk:
      return "in the disk cache " + disk_cache_dir();
    default:
      return "compiled at the first call";
  }
}

std::string launch_text(const kw_launch& l, const kw_kernel& kernel, bool strided, const kw_device_facts& gpu, int number) {
  std::string text =
      format("launch %d  %s\n  source  %s\n  code    %s\n", number, kernel.name, kernel.source, code_text(kernel, strided, gpu).c_str());
  if (is_idle(l)) return text + "  nothing to do (an empty grid)\n";
  text += format("  grid    %s blocks of %s threads", shape(l.grid).c_str(), shape(l.block).c_str());
  if (l.cluster > 1) text += format(", clusters of %u", l.cluster);
  return text + format("\n  shared  %u bytes\n  params  %u bytes\n", l.shared_bytes, l.params_bytes);
}

}  // namespace

std::string describe_plan(const Bound& bound, const kw_device_facts& gpu) {
  const char* op = bound.op->contract.name.c_str();
  std::string text = format("%s on %s (sm_%d, %d SMs)\n", op, gpu.name, gpu.arch, gpu.sm_count);
  if (is_empty(bound)) return text + "nothing to do: the results are empty\n";
  int32_t alignment = alignment_of(bound);
  kw_choice choice = choose_kernels(bound, alignment, gpu);
  kw_plan plan;
  fill_launches(bound, gpu, choice, plan);
  check_launches(op, plan, choice, gpu, nullptr);
  const bool strided = is_strided(bound);
  text +=
      format("rows    aligned to %d bytes%s\n", alignment, strided ? ", of some tensor at more than one distance" : "") + traffic(bound);
  for (int32_t i = 0; i < plan.launch_count; i++)
    text += launch_text(plan.launches[i], choice.kernels[plan.launches[i].kernel], strided, gpu, i + 1);
  return text;
}

size_t compile_for(const Bound& bound, const kw_device_facts& gpu) {
  return named_after(*bound.op, [&] {
    kw_choice choice = choose_kernels(bound, alignment_of(bound), gpu);
    size_t total = 0;
    for (int32_t i = 0; i < choice.kernel_count; i++)
      total += find_code(*source_set(choice.kernels[i].source, is_strided(bound)), choice.kernels[i].name, gpu.arch).code.size();
    return total;
  });
}

}  // namespace kw
