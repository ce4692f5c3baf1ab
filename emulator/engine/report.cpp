#include "emulator/engine/report.h"

#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "emulator/engine/kinds.h"

namespace kwemu {
namespace {
struct Finding {
  std::string kind, text;
  void* pc;
};
std::vector<Finding> findings;
size_t launch_begin = 0;
std::unordered_map<void*, std::vector<std::string>> places;  // innermost first

std::string quoted(const std::string& s) {  // as JSON
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    char escape[8];
    snprintf(escape, sizeof escape, (unsigned char)c < 0x20 ? "\\u%04x" : "%c", c);
    r += escape;
  }
  return r + "\"";
}

Module* module_of(void* pc) {
  for (Module* m : engine.modules)
    if ((u64)pc >= m->lo && (u64)pc < m->hi) return m;
  return nullptr;
}
}  // namespace

namespace {
const std::vector<std::string>& frames_of(void* pc) {
  auto [known, is_new] = places.try_emplace(pc);
  std::vector<std::string>& frames = known->second;
  Module* m = module_of(pc);
  if (!is_new || !m) return frames;
  char command[160], line[1024];
  snprintf(command, sizeof command, "addr2line -i -e /proc/%d/fd/%d 0x%llx 2>/dev/null", getpid(), m->file,
           (unsigned long long)((u64)pc - m->bias - 1));
  if (FILE* f = popen(command, "r")) {
    while (fgets(line, sizeof line, f)) {
      std::string l(line, strcspn(line, " \n"));
      if (l[0] == '?' || l.find("kwemu_") != std::string::npos || l.find("cuda_runtime.h") != std::string::npos || l.rfind("/usr/", 0) == 0)
        continue;  // not the user's
      while (l.rfind("./", 0) == 0) l.erase(0, 2);
      frames.push_back(std::move(l));
    }
    pclose(f);
  }
  return frames;
}
}  // namespace

std::string place(void* pc, int most) {
  if (!pc) return "?";
  std::string text;
  for (const std::string& frame : frames_of(pc))
    if (most-- > 0) text += (text.empty() ? "" : " < ") + frame;
  return text.empty() ? "?" : text;
}
bool same_line(void* a, void* b) { return a == b || place(a) == place(b); }
void forget_places() { places.clear(); }

std::string name_of(const Thread* t) {
  char b[160];
  snprintf(b, sizeof b, "block (%u,%u,%u) thread (%u,%u,%u)", t->block->bx, t->block->by, t->block->bz, t->x, t->y, t->z);
  return b;
}
std::string name_of_epoch(u64 e) {
  u32 thread = thread_of(e);
  if (thread >= engine.thread_count) return "an asynchronous copy";
  if (gang_of(e) != engine.gang)
    return "thread " + std::to_string(thread % (engine.thread_count / engine.block_count)) + " of another block";
  return name_of(&engine.threads[thread]);
}
std::string name_of_address(const Region* r, u64 a) {
  char b[400];
  u64 offset = a - r->lo;
  if (!r->shared) {
    snprintf(b, sizeof b, "%s at byte %lld of %llu", r->name.c_str(), (long long)offset, (unsigned long long)(r->hi - r->lo));
    return r->allocated_at ? std::string(b) + ", allocated at " + place(r->allocated_at) : b;
  }
  if (offset >= engine.dynamic_offset && offset < engine.dynamic_offset + kMaxDynamicShared) {
    snprintf(b, sizeof b, "dynamic shared memory at byte %llu of %u", (unsigned long long)(offset - engine.dynamic_offset),
             engine.launch.shared_bytes);
    return b;
  }
  auto& symbols = engine.module->shared_symbols;
  auto i = std::upper_bound(symbols.begin(), symbols.end(), offset, [](u64 v, const Symbol& s) { return v < s.lo; });
  if (i == symbols.begin()) return "shared memory";
  --i;
  snprintf(b, sizeof b, "__shared__ %s at byte %llu of %llu", i->name.c_str(), (unsigned long long)(offset - i->lo),
           (unsigned long long)(i->hi - i->lo));
  return b;
}

void report(const char* kind, void* pc, const char* format, ...) {
  for (size_t i = launch_begin; i < findings.size(); i++)
    if (findings[i].pc == pc && findings[i].kind == kind) return;
  char message[800];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  const Kind& k = kind_of(kind);
  bool error = k.severity == kError || (k.severity == kWarning ? engine.options.strict : engine.options.formal);
  const char* severity = error ? "error" : k.severity == kWarning ? "warning" : "formal";
  const std::string kernel = engine.kernel ? engine.kernel->expression : "", at = pc ? place(pc) : "";
  std::string text = std::string("kwemu ") + severity + ": " + kind;
  if (engine.kernel) text += "\n  kernel  " + kernel;
  if (current)
    text += "\n  thread  " + name_of(current) + " warp " + std::to_string(current->tid >> 5) + " lane " + std::to_string(current->lane);
  if (!at.empty()) text += "\n  at      " + at;
  text += std::string("\n  what    ") + message + "\n";
  if (*k.advice) text += std::string("  help    ") + k.advice + "\n";
  fputs(text.c_str(), stderr);
  if (!engine.options.findings.empty())
    if (FILE* f = fopen(engine.options.findings.c_str(), "ae")) {
      fprintf(f, "{\"severity\": \"%s\", \"kind\": \"%s\", \"kernel\": %s, \"thread\": %s, \"at\": %s, \"what\": %s, \"help\": %s}\n",
              severity, kind, quoted(kernel).c_str(), quoted(current ? name_of(current) : "").c_str(), quoted(at).c_str(),
              quoted(message).c_str(), quoted(k.advice).c_str());
      fclose(f);
    }
  findings.push_back({kind, std::move(text), pc});
  if (!error || !engine.kernel) return;
  if (!engine.launch_errors++) engine.launch_result = k.result;
  if (engine.launch_errors >= engine.options.max_reports && !engine.stopped) {
    engine.stopped = true;  // the scheduler sees it at the next switch
  }
}

size_t report_count() { return findings.size(); }
const char* report_text(size_t i) { return i < findings.size() ? findings[i].text.c_str() : nullptr; }
void clear_reports() {
  findings.clear();
  launch_begin = 0;
}
void begin_launch_reports() {
  if (engine.options.findings.empty()) launch_begin = findings.size();  // a program's places are told once
}
}  // namespace kwemu
