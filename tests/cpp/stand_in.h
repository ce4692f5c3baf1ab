// Weak stand-ins for the layers above core, so that core's tests link while those are not there; the real ones win at link time.
#pragma once
#include "kw/core/error.h"
#include "kw/cpu/parallel.h"
#include "kw/runtime/dispatch.h"

namespace kw {

[[gnu::weak]] void execute(const Bound& bound) {
  kw_message message{};
  if (bound.op->def->cpu(&bound.raw, &message) != KW_OK) throw Error(static_cast<kw_status>(message.status), message.text);
  bound.op->calls.fetch_add(1, std::memory_order_relaxed);
}

[[gnu::weak]] void set_thread_count(int) {}

}  // namespace kw
