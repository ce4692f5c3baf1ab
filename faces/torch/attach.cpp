// Makes the registry known to torch, and the face's few exported functions.
#include <algorithm>
#include <mutex>

#include "faces/c/guarded.h"
#include "faces/torch/call.h"
#include "faces/torch/kernel.h"
#include "faces/torch/schema.h"
#include "faces/torch/torch_face.h"
#include "kw/core/error.h"

namespace kw::torch_face {
namespace {

constexpr const char* name_space = "kernelwright";

struct Libraries {  // never deleted: that would deregister the ops
  Handle fragment = nullptr, cpu = nullptr, cuda = nullptr;
  int attached = 0;  // ops of the registry, in its order
};

void open_libraries(Libraries& l) {
  if (l.fragment) return;
  const Shim& torch = shim();
  Handle fragment = nullptr;
  if (torch.aoti_torch_library_init_impl(name_space, "CPU", "", 0, &l.cpu) ||
      torch.aoti_torch_library_init_impl(name_space, "CUDA", "", 0, &l.cuda) ||
      torch.aoti_torch_library_init_fragment(name_space, "", 0, &fragment))
    throw Error(KW_ERROR_UNSUPPORTED, "this torch refuses the namespace kernelwright");
  l.fragment = fragment;
}

void attach(const Libraries& l, const Op& op, bool with_saved) {
  const Shim& torch = shim();
  std::string text = schema(op.contract, with_saved), name = text.substr(0, text.find('('));
  BoxedKernel kernel = trampoline(op.index);
  if (torch.aoti_torch_library_def(l.fragment, text.c_str())) throw Error(KW_ERROR_CONTRACT, "torch refuses the schema " + text);
  if (torch.torch_library_impl(l.cpu, name.c_str(), kernel, abi_version) ||
      torch.torch_library_impl(l.cuda, name.c_str(), kernel, abi_version))
    throw Error(KW_ERROR_UNSUPPORTED, "torch refuses the kernel of " + name);
}

int attach_all() {
  load_shim();
  static std::mutex mutex;
  static Libraries libraries;
  std::lock_guard lock(mutex);
  open_libraries(libraries);
  const auto& registry = ops();
  while (libraries.attached < static_cast<int>(registry.size())) {
    const Op& op = *registry[static_cast<size_t>(libraries.attached)];
    if (op.index >= max_ops) throw Error(KW_ERROR_UNSUPPORTED, format("the PyTorch face serves at most %d ops", max_ops));
    libraries.attached++;  // an op that torch refused stays refused: half of it may be defined
    attach(libraries, op, false);
    const auto saved = [](const Result& r) { return r.kind == Result::Kind::saved; };
    if (std::any_of(op.contract.results.begin(), op.contract.results.end(), saved)) attach(libraries, op, true);
  }
  return libraries.attached;
}

// Shows the call to torch's profiler under the name that the dispatcher would give it. Without a profiler it costs the question.
class Recorded {
 public:
  explicit Recorded(const Op& op) {
    if (!shim().has_callbacks || !shim().has_callbacks()) return;
    std::string name = std::string(name_space) + "::" + op.contract.name;
    if (shim().aoti_record_function_start(name.c_str(), nullptr, nullptr, 0, &record_)) record_ = nullptr;
  }
  ~Recorded() {
    if (record_) shim().aoti_record_function_end(record_);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

 private:
  void* record_ = nullptr;
};

}  // namespace
}  // namespace kw::torch_face

using kw::torch_face::Handle;

static const kw::Op& op_of(const kw_op* op) { return *reinterpret_cast<const kw::Op*>(op); }

int kw_attach_torch(void) {
  int attached = -1;
  kw::guarded([&] { attached = kw::torch_face::attach_all(); });
  return attached;
}

const char* kw_torch_schema(const kw_op* op, int with_saved) {
  thread_local std::string text;
  text = kw::torch_face::schema(op_of(op).contract, with_saved != 0);
  return text.c_str();
}

uint64_t kw_torch_copies(const kw_op* op) { return kw::torch_face::copies(op_of(op)).load(); }

int kw_torch_call(const kw_op* op, const kw_argument* inputs, const kw_attribute* attributes, int with_saved, void** results) {
  return kw::guarded([&] {
    kw::torch_face::Recorded recorded(op_of(op));
    kw::torch_face::call(op_of(op), inputs, attributes, {.saved = with_saved != 0, .empty_for_absent = false}, results);
  });
}

void* kw_torch_symbol(const char* name) { return kw::torch_face::find_symbol(name); }
