// The memory cache of whole calls: from a problem to what launches, in a look-up.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kw/runtime/kernel_cache.h"
#include "kw/runtime/problem.h"

namespace kw {

struct Ready {  // all that a repeated call needs
  ProblemKey key;
  kw_choice choice{};
  const kw_device_facts* gpu = nullptr;
  const Kernel* kernels[KW_MAX_LAUNCHES] = {};
  std::vector<std::shared_ptr<const SourceSet>> sources;  // by kernel
  bool from_disk = false;                                 // some source may be edited while we run (KW_KERNEL_PATH)
  uint64_t generation = 0;                                // of the kernel path

  bool is_current() const;  // free, unless from_disk
};

// Open addressing; readers take no lock (atomic pointers), writers one. Replaced entries and outgrown slots live as long as the table: a
// reader may hold them.
class ReadyTable {
 public:
  ReadyTable();
  const Ready* find(const ProblemKey& key) const;
  // Takes the place of an entry with the same key.
  const Ready* insert(std::unique_ptr<const Ready> entry);

 private:
  struct Slots {
    explicit Slots(size_t count) : mask(count - 1), at(new std::atomic<const Ready*>[count]()) {}
    size_t mask;
    std::unique_ptr<std::atomic<const Ready*>[]> at;
  };
  // Writers only, under the lock.
  static std::atomic<const Ready*>& place(const Slots& slots, const ProblemKey& key);
  const Slots* keep(std::unique_ptr<const Slots> slots);
  void grow();

  std::mutex mutex_;
  size_t count_ = 0;
  std::vector<std::unique_ptr<const Slots>> all_slots_;
  std::vector<std::unique_ptr<const Ready>> all_entries_;
  std::atomic<const Slots*> slots_;
};

// The entry of a call on a CUDA device: of this thread's last call, of the table, or made now (choose, then find_kernel).
const Ready& find_ready(const Bound& bound);

}  // namespace kw
