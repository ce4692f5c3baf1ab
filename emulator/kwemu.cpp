#include "emulator/kwemu.h"

#include <cstdlib>

#include "emulator/driver/driver.h"
#include "emulator/engine/memory.h"
#include "emulator/engine/report.h"
#include "emulator/engine/requests.h"

using namespace kwemu;
namespace {
bool set_option(const std::string& name, const char* text) {
  Options& o = engine.options;
  if (name == "schedule") {
    const char* const names[] = {"inorder", "shuffle", "reverse", "greedy"};
    for (int i = 0; i < 4; i++)
      if (!strcmp(text, names[i])) return o.schedule = (Schedule)i, true;
    return false;
  }
  if (name == "findings") return o.findings = text, true;
  char* end = nullptr;
  u64 v = strtoull(text, &end, 10);
  if (end == text || *end) return false;
  if (name == "seed") return engine.random.seed(v), true;
  if (name == "detect") return o.detect = v != 0, true;
  if (name == "strict") return o.strict = v != 0, true;
  if (name == "access") return o.access = v != 0, true;
  if (name == "formal") return o.formal = v != 0, true;
  if (name == "sample") return o.sample = v, v > 0;
  if (name == "max_reports") return o.max_reports = (u32)v, v > 0;
  if (name == "step_limit") return o.step_limit = v, v > 0;
  if (name == "stuck_ms") return o.stuck_ms = v, v > 0;
  if (name == "only_block") return o.only_block = v, true;
  if (name == "sms") return device_model.sm_count = (u32)v, v > 0;
  if (name == "arch") return device_model.arch = (u32)v, v >= 50;
  return false;
}

__attribute__((constructor)) void read_environment() {
  for (const char* name : {"schedule", "seed", "detect", "strict", "formal", "access", "max_reports", "step_limit", "stuck_ms",
                           "only_block", "sample", "findings", "sms", "arch"}) {
    std::string variable = "KWEMU_";
    for (const char* c = name; *c; c++) variable += (char)toupper(*c);
    const char* value = getenv(variable.c_str());
    if (value && !set_option(name, value)) fprintf(stderr, "kwemu: %s=%s is not understood and has no effect\n", variable.c_str(), value);
  }
}
}  // namespace

KWEMU_EXPORT int kwemu_report_count() {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  return (int)report_count();
}
KWEMU_EXPORT const char* kwemu_report(int i) {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  return i < 0 ? nullptr : report_text((size_t)i);
}
KWEMU_EXPORT void kwemu_clear_reports() {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  clear_reports();
}
KWEMU_EXPORT int kwemu_set(const char* option, const char* value) {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  return option && value && set_option(option, value) ? 0 : 1;
}
KWEMU_EXPORT size_t kwemu_unwritten(const void* p) {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  return unwritten_bytes((u64)p);
}
KWEMU_EXPORT void kwemu_poison(void* p, size_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  if (inside((u64)p, bytes)) poison((u64)p, bytes);
}

KWEMU_EXPORT int kwemu_access_site(int i, struct kwemu_site* out) {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  if (i < 0 || (size_t)i >= site_costs().size()) return 0;
  const SiteCost& c = site_costs()[(size_t)i];
  *out = {c.kernel.c_str(), c.place.c_str(), c.what.c_str(), c.bytes, c.launches, c.requests, c.lanes, c.pieces, c.least, c.dropped};
  return 1;
}
KWEMU_EXPORT int kwemu_access_buffer(int i, struct kwemu_buffer* out) {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  if (i < 0 || (size_t)i >= buffer_costs().size()) return 0;
  const BufferCost& c = buffer_costs()[(size_t)i];
  *out = {c.kernel.c_str(), c.name.c_str(), (const void*)c.at, c.size, c.launches, c.read, c.read_sectors, c.written, c.written_sectors};
  return 1;
}
KWEMU_EXPORT void kwemu_clear_access() {
  std::lock_guard<std::recursive_mutex> lock(driver_lock);
  clear_costs();
}
