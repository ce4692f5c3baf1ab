#include "kw/core/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace kw {
namespace {

struct State {
  std::mutex mutex;
  std::set<std::string> said;
  std::vector<std::string> kept;
  std::atomic<bool> any_kept{false};
  kw_log_function function = nullptr;
  void* context = nullptr;
};
State& state() {
  static auto* s = new State;  // never destroyed: a late thread may still warn
  return *s;
}

}  // namespace

void warn(const std::string& sentence) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.said.insert(sentence).second) return;
  if (!s.function) {
    std::fprintf(stderr, "kernelwright: %s\n", sentence.c_str());
    return;
  }
  s.kept.push_back(sentence);
  s.any_kept = true;
}

void deliver_warnings() {
  State& s = state();
  if (!s.any_kept.load(std::memory_order_relaxed)) return;
  std::vector<std::string> sentences;
  kw_log_function function;
  void* context;
  {
    std::lock_guard lock(s.mutex);
    sentences = std::exchange(s.kept, {});
    s.any_kept = false;
    function = s.function, context = s.context;
  }
  for (const std::string& sentence : sentences) {
    if (function)
      function(sentence.c_str(), context);
    else
      std::fprintf(stderr, "kernelwright: %s\n", sentence.c_str());
  }
}

void set_log(kw_log_function function, void* context) {
  deliver_warnings();  // to the one that was told to listen when they came up
  std::lock_guard lock(state().mutex);
  state().function = function;
  state().context = context;
}

}  // namespace kw
