#include "kw/runtime/dispatch.h"

#include "kw/runtime/context.h"
#include "kw/runtime/launch.h"
#include "kw/runtime/problem.h"
#include "kw/runtime/ready.h"

namespace kw {
namespace {

void run_on_cpu(const Bound& bound) {
  const Op& op = *bound.op;
  if (!op.def->cpu) throw Error(KW_ERROR_UNSUPPORTED, op.contract.name + " has no CPU kernel");
  kw_message message;
  message.text[0] = '\0';
  if (int32_t status = op.def->cpu(&bound.raw, &message)) throw_room_error(op, status, message);
}

void run_on_cuda(const Bound& bound) {
  const char* op = bound.op->contract.name.c_str();
  const int device = bound.raw.device_index;
  const Driver& cuda = driver();
  ContextGuard guard(cuda, device);
  if (cuda.synchronous) check_no_earlier_error(cuda, op);
  const Ready& ready = find_ready(bound);
  kw_plan plan;  // not cleared: 4 KiB per call
  fill_launches(bound, *ready.gpu, ready.choice, plan);
  check_launches(op, plan, ready.choice, *ready.gpu, ready.kernels);  // all of them before the first runs
  for (int32_t i = 0; i < plan.launch_count; i++) {
    const kw_launch& launch = plan.launches[i];
    if (!is_idle(launch))
      enqueue(cuda, op, *ready.kernels[launch.kernel], launch, device, *ready.gpu, static_cast<CUstream>(bound.raw.stream));
  }
}

}  // namespace

void warm_up(const Bound& bound) {
  if (bound.raw.device_type != KW_CUDA) return;
  named_after(*bound.op, [&] {
    ContextGuard guard(driver(), bound.raw.device_index);
    find_ready(bound);
  });
}

void execute(const Bound& bound) {
  if (!is_empty(bound)) {
    if (bound.raw.device_type == KW_CPU)
      run_on_cpu(bound);
    else if (bound.raw.device_type == KW_CUDA)
      named_after(*bound.op, [&] { run_on_cuda(bound); });
    else
      throw Error(KW_ERROR_UNSUPPORTED,
                  format("%s: device type %d is neither the CPU nor CUDA", bound.op->contract.name.c_str(), bound.raw.device_type));
  }
  bound.op->calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace kw
