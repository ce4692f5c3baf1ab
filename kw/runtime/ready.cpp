#include "kw/runtime/ready.h"

#include <future>

#include "kw/runtime/context.h"
#include "kw/runtime/device.h"
#include "kw/runtime/dispatch.h"

namespace kw {
namespace {

ReadyTable& table() {
  static auto* t = new ReadyTable;  // never destroyed: a late thread may still launch
  return *t;
}

const Ready& make_ready(const Bound& bound, const ProblemKey& key, int32_t alignment) {
  auto ready = std::make_unique<Ready>();
  ready->key = key;
  ready->generation = kernel_path_generation();
  ready->gpu = &device_facts(bound.raw.device_index);
  ready->choice = choose_kernels(bound, alignment, *ready->gpu);
  const int32_t count = ready->choice.kernel_count;
  for (int32_t i = 0; i < count; i++) {
    ready->sources.push_back(source_set(ready->choice.kernels[i].source, is_strided(bound)));
    ready->from_disk |= !ready->sources.back()->root.empty();
  }
  // Side by side: a kernel that has to be compiled takes 60-200 ms, and NVRTC works for several threads at once.
  const auto find = [&](int32_t i) {
    ContextGuard guard(driver(), bound.raw.device_index);  // a fresh thread has none, and the driver answers no question about a kernel
    return &find_kernel(*ready->sources[i], ready->choice.kernels[i].name, ready->gpu->arch);
  };
  std::vector<std::future<const Kernel*>> others;
  for (int32_t i = 1; i < count; i++) others.push_back(std::async(std::launch::async, find, i));
  if (count > 0) ready->kernels[0] = find(0);
  for (int32_t i = 1; i < count; i++) ready->kernels[i] = others[i - 1].get();
  return *table().insert(std::move(ready));
}

}  // namespace

bool Ready::is_current() const {
  if (generation != kernel_path_generation()) return false;
  if (!from_disk) return true;
  for (const auto& set : sources)
    if (!kw::is_current(*set)) return false;
  return true;
}

ReadyTable::ReadyTable() : slots_(keep(std::make_unique<Slots>(256))) {}

const ReadyTable::Slots* ReadyTable::keep(std::unique_ptr<const Slots> slots) {
  all_slots_.push_back(std::move(slots));
  return all_slots_.back().get();
}

// At most half the places are taken, so every search ends. Each place is read once: it may be filled while we look.
const Ready* ReadyTable::find(const ProblemKey& key) const {
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  for (size_t i = key.hash() & slots.mask;; i = (i + 1) & slots.mask) {
    const Ready* entry = slots.at[i].load(std::memory_order_acquire);
    if (!entry || entry->key == key) return entry;
  }
}

// Where the key is, or the empty place where it belongs.
std::atomic<const Ready*>& ReadyTable::place(const Slots& slots, const ProblemKey& key) {
  for (size_t i = key.hash() & slots.mask;; i = (i + 1) & slots.mask) {
    const Ready* entry = slots.at[i].load(std::memory_order_relaxed);
    if (!entry || entry->key == key) return slots.at[i];
  }
}

const Ready* ReadyTable::insert(std::unique_ptr<const Ready> entry) {
  std::lock_guard lock(mutex_);
  if (2 * (count_ + 1) > slots_.load(std::memory_order_relaxed)->mask + 1) grow();
  auto& at = place(*slots_.load(std::memory_order_relaxed), entry->key);
  if (!at.load(std::memory_order_relaxed)) count_++;
  all_entries_.push_back(std::move(entry));
  at.store(all_entries_.back().get(), std::memory_order_release);
  return all_entries_.back().get();
}

void ReadyTable::grow() {
  const Slots* old = slots_.load(std::memory_order_relaxed);
  auto bigger = std::make_unique<Slots>(2 * (old->mask + 1));
  for (size_t i = 0; i <= old->mask; i++)
    if (const Ready* entry = old->at[i].load(std::memory_order_relaxed)) place(*bigger, entry->key).store(entry, std::memory_order_relaxed);
  slots_.store(keep(std::move(bigger)), std::memory_order_release);
}

const Ready& find_ready(const Bound& bound) {
  thread_local const Ready* last = nullptr;
  int32_t alignment = alignment_of(bound);
  ProblemKey key = problem_key(bound, bound.raw.device_index, alignment);
  const Ready* ready = last && last->key == key ? last : table().find(key);
  if (!ready || !ready->is_current()) ready = &make_ready(bound, key, alignment);
  return *(last = ready);
}

}  // namespace kw
