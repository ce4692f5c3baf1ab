#include "testing/access.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "emulator/kwemu.h"
#include "testing/inputs.h"
#include "testing/tensor.h"

namespace kw::test {
namespace {

template <class F>
F* function(void* library, const char* name) {
  void* p = dlsym(library, name);
  if (!p) throw Error(KW_ERROR_TOOLCHAIN, format("the emulator has no function %s", name));
  return reinterpret_cast<F*>(p);
}

std::vector<std::string> split(const std::string& place) {
  const std::string between = " < ";
  std::vector<std::string> frames;
  for (size_t at = 0; at <= place.size();) {
    const size_t end = std::min(place.find(between, at), place.size());
    frames.push_back(place.substr(at, end - at));
    at = end + between.size();
  }
  return frames;
}

// A call's tensors in the emulator's memory, by name.
class Call {
 public:
  Call(Device& device, const Op& op, const Arguments& arguments) : attributes_(raw_attributes(op, arguments)) {
    const Contract& c = op.contract;
    const size_t n = c.inputs.size(), m = c.results.size();
    views_.resize(n + m), inputs_.resize(n), results_.resize(m);
    const std::vector<Tensor> tensors = make_inputs(op, Case{arguments});
    for (size_t i = 0; i < n; i++)
      if (tensors[i].present) inputs_[i] = add(c.inputs[i].name, i, std::make_unique<Placed>(device, tensors[i]));
    bind_inputs(op, inputs_.data(), attributes_.data(), bound);
    for (size_t r = 0; r < m; r++) {
      const TensorSpec& spec = bound.results[r];
      if (!spec.present) continue;
      const Arrangement plain = arrange(Layout::plain, std::vector<int64_t>(spec.sizes, spec.sizes + spec.rank), spec.rank, n + r, 1, true);
      results_[r] = add(c.results[r].name, n + r, std::make_unique<Placed>(device, spec, 0xff, plain));
    }
    bind_results(results_.data(), bound);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void name(AccessBuffer& buffer) const {
    for (const auto& [tensor, view] : named_) {
      const auto* data = static_cast<const char*>(view->data);
      const auto* at = static_cast<const char*>(buffer.at);
      if (data < at || data >= at + buffer.size) continue;
      buffer.name = tensor;
      buffer.size = dtype_bytes(view->dtype);
      for (int32_t d = 0; d < view->rank; d++) buffer.size *= view->sizes[d];
    }
  }
  Bound bound;

 private:
  kw_argument add(const std::string& name, size_t i, std::unique_ptr<Placed> tensor) {
    views_[i] = tensor->view();
    named_.emplace_back(name, &views_[i]);
    placed_.push_back(std::move(tensor));
    return {&views_[i], 1};
  }
  std::vector<kw_attribute> attributes_;
  std::vector<std::unique_ptr<Placed>> placed_;
  std::vector<kw_tensor> views_;
  std::vector<kw_argument> inputs_, results_;
  std::vector<std::pair<std::string, const kw_tensor*>> named_;
};

double share(int64_t of, int64_t in) { return in ? static_cast<double>(of) / static_cast<double>(in) : 0; }

}  // namespace

bool AccessSite::is_shared() const { return what.find("shared") != what.npos; }

std::string AccessSite::place() const {
  const auto own = std::find_if(frames.begin(), frames.end(), [](const std::string& f) { return f.find("kw/device/") == f.npos; });
  return own != frames.end() ? *own : frames.front();
}

double AccessBuffer::times_read() const { return share(read, size * launches); }
double AccessBuffer::times_written() const { return share(written, size * launches); }

AccessReport read_access(void* library) {
  AccessReport report;
  kwemu_site s{};
  for (int i = 0; function<decltype(kwemu_access_site)>(library, "kwemu_access_site")(i, &s); i++) {
    const auto whole = [](unsigned long long n) { return static_cast<int64_t>(n); };
    report.sites.push_back({s.kernel, s.what, split(s.place), s.bytes, whole(s.launches), whole(s.requests), whole(s.lanes),
                            whole(s.pieces), whole(s.least), whole(s.dropped)});
  }
  kwemu_buffer b{};
  for (int i = 0; function<decltype(kwemu_access_buffer)>(library, "kwemu_access_buffer")(i, &b); i++) {
    const auto whole = [](unsigned long long n) { return static_cast<int64_t>(n); };
    report.buffers.push_back({b.kernel, b.name, b.at, whole(b.size), whole(b.launches), whole(b.read), whole(b.read_sectors),
                              whole(b.written), whole(b.written_sectors)});
  }
  return report;
}

AccessReport observe_access(Device& emulator, void* library, const Op& op, const Arguments& arguments) {
  auto* set = function<int(const char*, const char*)>(library, "kwemu_set");
  auto* clear = function<void()>(library, "kwemu_clear_access");
  const Call call(emulator, op, arguments);
  struct On {
    decltype(set) option;
    explicit On(decltype(set) o) : option(o) { option("access", "1"); }
    ~On() { option("access", "0"); }
  };
  clear();
  {
    const On on(set);
    emulator.run(call.bound);
  }
  AccessReport report = read_access(library);
  clear();
  for (AccessBuffer& buffer : report.buffers) call.name(buffer);
  return report;
}

std::vector<std::string> access_faults(const AccessReport& report, const std::vector<Traffic>& stated) {
  std::vector<std::string> faults;
  std::vector<Traffic> seen;
  std::vector<std::string> names;
  for (const AccessBuffer& b : report.buffers)
    if (std::find(names.begin(), names.end(), b.name) == names.end()) names.push_back(b.name);
  for (const Traffic& s : stated)
    if (std::find(names.begin(), names.end(), s.tensor) == names.end()) names.push_back(s.tensor);
  for (const std::string& name : names) {
    Traffic found{name.c_str()}, want{name.c_str()};
    for (const AccessBuffer& b : report.buffers)
      if (b.name == name) found.read += share(b.read, b.size), found.written += share(b.written, b.size);
    for (const Traffic& s : stated)
      if (name == s.tensor) want = s;
    if (std::fabs(found.read - want.read) > 1e-9)
      faults.push_back(format("%s is read %.6g times, not %.6g", name.c_str(), found.read, want.read));
    if (std::fabs(found.written - want.written) > 1e-9)
      faults.push_back(format("%s is written %.6g times, not %.6g", name.c_str(), found.written, want.written));
  }
  for (const AccessSite& s : report.sites) {
    const std::string where = s.what + " at " + s.place() + " in " + s.kernel;
    if (s.pieces > s.least)
      faults.push_back(format("%s: %.6g %s a request where %.6g would do", where.c_str(), share(s.pieces, s.requests),
                              s.is_shared() ? "wavefronts" : "sectors", share(s.least, s.requests)));
    if (s.dropped) faults.push_back(format("%s: %lld accesses were not counted", where.c_str(), static_cast<long long>(s.dropped)));
  }
  return faults;
}

}  // namespace kw::test
