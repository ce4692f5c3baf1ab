#include "faces/c/kernelwright.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>
#include <unordered_set>

#include "faces/c/guarded.h"
#include "faces/c/shared_object.h"
#include "kw/core/bind.h"
#include "kw/core/error.h"
#include "kw/core/log.h"
#include "kw/core/manifest.h"
#include "kw/core/registry.h"
#include "kw/cpu/parallel.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/kernel_cache.h"
#include "kw/runtime/paper_call.h"

namespace {

// Plain memory, so that keeping an error never fails and a thread's end has nothing to clean up.
thread_local kw_message last_error;

const kw::Op* op_of(const kw_op* op) { return reinterpret_cast<const kw::Op*>(op); }
const kw_op* handle(const kw::Op* op) { return reinterpret_cast<const kw_op*>(op); }

void require(bool there, const char* sentence) {
  if (!there) throw kw::Error(KW_ERROR_ARGUMENT, sentence);
}

void load_library(const char* path) {
  require(path, "kw_load_library: the path is a null pointer");
  kw::expect_whole_library(path);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    throw kw::Error(KW_ERROR_ARGUMENT, kw::format("%s cannot be loaded: %s", path, why ? why : "unknown reason"));
  }
  try {
    using Rooms = const kw_room* const*(int32_t*);
    auto* rooms = reinterpret_cast<Rooms*>(dlsym(library, "kw_rooms"));
    if (!rooms) throw kw::Error(KW_ERROR_CONTRACT, kw::format("%s exports no kw_rooms, so it brings no ops", path));
    int32_t count = 0;
    const kw_room* const* list = rooms(&count);
    if (count < 1 || !list) throw kw::Error(KW_ERROR_CONTRACT, kw::format("%s brings no rooms", path));
    kw::register_rooms({list, list + count});
  } catch (...) {
    dlclose(library);
    throw;
  }
}

}  // namespace

int kw::keep_error(int32_t status, const char* text) noexcept {
  last_error.status = status;
  std::snprintf(last_error.text, sizeof last_error.text, "%s", text);
  return status;
}

using kw::guarded;

extern "C" {

const char* kw_version(void) { return KW_VERSION; }
const char* kw_last_error(void) { return last_error.text; }
int32_t kw_last_error_status(void) { return last_error.status; }

void kw_set_log(kw_log_function function, void* context) {
  guarded([&] { kw::set_log(function, context); });
}

int32_t kw_op_count(void) {
  int32_t count = 0;
  guarded([&] { count = static_cast<int32_t>(kw::ops().size()); });
  return count;
}

const kw_op* kw_op_at(int32_t index) {
  const kw_op* op = nullptr;
  guarded([&] {
    const auto& ops = kw::ops();
    if (index >= 0 && static_cast<size_t>(index) < ops.size()) op = handle(ops[static_cast<size_t>(index)]);
  });
  return op;
}

const kw_op* kw_op_find(const char* name) {
  const kw_op* op = nullptr;
  if (name) guarded([&] { op = handle(kw::find_op(name)); });
  return op;
}

int32_t kw_op_index(const kw_op* op) { return op ? op_of(op)->index : -1; }
const kw_signature* kw_op_signature(const kw_op* op) { return op ? &op_of(op)->signature : nullptr; }
uint64_t kw_op_calls(const kw_op* op) { return op ? op_of(op)->calls.load(std::memory_order_relaxed) : 0; }

int kw_infer(const kw_op* op, const kw_call* call, kw_spec* specs) {
  return guarded([&] {
    require(op && call && specs, "kw_infer: op, call or specs is a null pointer");
    kw::Bound bound;
    kw::bind_inputs(*op_of(op), call->inputs, call->attributes, bound);
    for (int32_t i = 0; i < bound.raw.signature->result_count; i++) {
      const kw::TensorSpec& from = bound.results[i];
      specs[i] = {from.present, from.dtype, from.rank, {}};
      std::memcpy(specs[i].sizes, from.sizes, sizeof from.sizes);
    }
  });
}

int kw_run(const kw_op* op, const kw_call* call) {
  return guarded([&] {
    require(op && call, "kw_run: op or call is a null pointer");
    kw::Bound bound;
    kw::bind_inputs(*op_of(op), call->inputs, call->attributes, bound);
    kw::bind_results(call->results, bound);
    bound.raw.stream = call->stream;
    kw::execute(bound);
  });
}

int kw_warmup(const kw_op* op, const kw_call* call) {
  return guarded([&] {
    require(op && call, "kw_warmup: op or call is a null pointer");
    kw::warm_up(kw::PaperCall(*op_of(op), call->inputs, call->attributes).bound);
  });
}

void kw_count_kernels(kw_kernel_counts* counts) {
  const kw::CacheCounts now = kw::cache_counts();
  if (counts) *counts = {now.memory, now.pack, now.disk, now.compiled};
}

int kw_needs_copy(const kw_op* op, int32_t input, const kw_tensor* t) {
  if (!op || !t || input < 0 || input >= op_of(op)->signature.input_count || t->rank < 0 || t->rank > KW_MAX_RANK) return -1;
  if (!kw::is_dtype(t->dtype)) return -1;
  if (t->rank > 0 && (!t->sizes || !t->strides)) return -1;
  return kw::needs_copy(*t, kw::row_rank(op_of(op)->contract.inputs[static_cast<size_t>(input)].type));
}

const char* kw_manifest(void) {
  const char* text = nullptr;
  guarded([&] {
    // Texts are kept, one per state of the registry, so that a pointer handed out stays good.
    static std::mutex mutex;
    static auto& texts = *new std::unordered_set<std::string>;
    std::string now = kw::manifest();
    std::lock_guard lock(mutex);
    text = texts.insert(std::move(now)).first->c_str();
  });
  return text;
}

int kw_register_room(const kw_room* room) {
  return guarded([&] { kw::register_room(room); });
}

int kw_load_library(const char* path) {
  return guarded([&] { load_library(path); });
}

void kw_set_threads(int32_t n) {
  guarded([&] { kw::set_thread_count(n < 0 ? 0 : n); });
}

}  // extern "C"
