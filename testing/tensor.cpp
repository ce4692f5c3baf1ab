#include "testing/tensor.h"

#include <algorithm>
#include <cstring>

namespace kw::test {

namespace {
constexpr size_t guard_bytes = 512;         // a vector store past the end is at most 128 lanes of 4 bytes in our kernels
constexpr unsigned char guard_byte = 0xC3;  // neither poison

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
}  // namespace

Tensor::Tensor(DType type, std::vector<int64_t> shape, Arrangement lies)
    : present(true), dtype(type), sizes(std::move(shape)), strides(std::move(lies.strides)), offset(lies.offset) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); d++) last += (sizes[d] - 1) * strides[d];
  const int64_t count = offset + (product(sizes) ? last + 1 : 0);
  const int32_t size = dtype_bytes(dtype);
  bytes.resize(static_cast<size_t>(count * size));
  for (int64_t i = 0; i < count; i++) store_nan(dtype, &bytes[static_cast<size_t>(i * size)]);
}
Tensor::Tensor(DType type, std::vector<int64_t> shape)
    : Tensor(type, shape, arrange(Layout::plain, shape, static_cast<int>(shape.size()), 0, 0, false)) {}

int64_t Tensor::elements() const { return product(sizes); }

int64_t Tensor::position(int64_t linear) const {
  int64_t p = offset;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; d--) {
    p += linear % sizes[d] * strides[d];
    linear /= sizes[d];
  }
  return p;
}

std::vector<double> Tensor::numbers() const {
  std::vector<double> out(static_cast<size_t>(elements()));
  const int64_t row = sizes.empty() ? 1 : sizes.back(), size = dtype_bytes(dtype), step = sizes.empty() ? 1 : strides.back() * size;
  for (int64_t first = 0; first < static_cast<int64_t>(out.size()); first += row) {
    const unsigned char* p = &bytes[static_cast<size_t>(position(first) * size)];
    for (int64_t i = 0; i < row; i++) out[static_cast<size_t>(first + i)] = load_number(dtype, p + i * step);
  }
  return out;
}

bool Tensor::contiguous() const {
  int64_t step = 1;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; d--) {
    if (sizes[d] != 1 && strides[d] != step) return false;
    step *= sizes[d];
  }
  return true;
}

kw_tensor Tensor::view(void* first_byte, int32_t device_type, int32_t device_index) const {
  kw_tensor t{};
  t.data = static_cast<unsigned char*>(first_byte) + offset * dtype_bytes(dtype);
  t.sizes = sizes.data();
  t.strides = strides.data();
  t.rank = static_cast<int32_t>(sizes.size());
  t.dtype = dtype;
  t.device_type = device_type;
  t.device_index = device_index;
  return t;
}

std::string describe(DType dtype, const std::vector<int64_t>& sizes) {
  std::string text = std::string(dtype_name(dtype)) + "[";
  for (size_t i = 0; i < sizes.size(); i++) text += (i ? "," : "") + std::to_string(sizes[i]);
  return text + "]";
}

Placed::Placed(Device& device, const Tensor& tensor) : device_(device), shape_(tensor) { place(shape_.bytes.size()); }

Placed::Placed(Device& device, const TensorSpec& spec, unsigned char poison, Arrangement lies)
    : device_(device), shape_(spec.dtype, std::vector<int64_t>(spec.sizes, spec.sizes + spec.rank), std::move(lies)) {
  std::fill(shape_.bytes.begin(), shape_.bytes.end(), poison);
  // A device that knows which bytes were written keeps results as they come, and tells who reads them too early. But reading the result
  // back would read gaps.
  const int64_t used = (shape_.elements() + shape_.offset) * dtype_bytes(spec.dtype);
  const bool as_it_comes = device_.watches_bounds() && poison == 0xFF && used == static_cast<int64_t>(shape_.bytes.size());
  place(as_it_comes ? static_cast<size_t>(shape_.offset * dtype_bytes(spec.dtype)) : shape_.bytes.size());
}

void Placed::place(size_t bytes) {
  guard_ = device_.watches_bounds() ? 0 : guard_bytes;
  std::vector<unsigned char> all(shape_.bytes.size() + 2 * guard_, guard_byte);
  std::copy(shape_.bytes.begin(), shape_.bytes.end(), all.begin() + static_cast<ptrdiff_t>(guard_));
  base_ = device_.allocate(all.size());
  try {
    device_.upload(base_, all.data(), guard_ ? all.size() : bytes);
  } catch (...) {
    device_.free(base_);
    throw;
  }
}

Placed::~Placed() { device_.free(base_); }

Tensor Placed::read() const {
  Tensor t = shape_;
  if (!t.bytes.empty()) device_.download(t.bytes.data(), data(), t.bytes.size());
  return t;
}

std::string Placed::guard_fault() const {
  std::vector<unsigned char> now(guard_);
  for (int side = 0; side < 2 && guard_; side++) {
    device_.download(now.data(), side ? data() + shape_.bytes.size() : static_cast<unsigned char*>(base_), guard_);
    auto bad = [](unsigned char b) { return b != guard_byte; };
    const auto count = std::count_if(now.begin(), now.end(), bad);
    if (!count) continue;
    const auto first = std::find_if(now.begin(), now.end(), bad) - now.begin();
    return side ? format("%td bytes behind its end were overwritten, the first %td bytes past it", count, first)
                : format("%td bytes before its start were overwritten, the first %td bytes before it", count,
                         static_cast<ptrdiff_t>(guard_) - first);
  }
  std::vector<unsigned char> before(std::min(shape_.bytes.size(), static_cast<size_t>(shape_.offset * dtype_bytes(shape_.dtype))));
  if (before.empty()) return "";  // else: bytes that belong to the allocation but to no element
  device_.download(before.data(), data(), before.size());
  return std::equal(before.begin(), before.end(), shape_.bytes.begin()) ? "" : "bytes just before its first element were overwritten";
}

std::string Placed::gap_fault() const {
  const Tensor now = read();
  const auto size = static_cast<size_t>(dtype_bytes(shape_.dtype));
  std::vector<bool> element(shape_.bytes.size() / size);
  for (int64_t i = 0, n = shape_.elements(); i < n; i++) element[static_cast<size_t>(shape_.position(i))] = true;
  for (size_t i = 0; i < element.size(); i++)
    if (!element[i] && !std::equal(&now.bytes[i * size], &now.bytes[i * size] + size, &shape_.bytes[i * size]))
      return format("the place %zu elements behind its start, which is between its rows, was overwritten", i);
  return "";
}

std::string Placed::unchanged_fault() const {
  const Tensor memory = read();
  for (size_t i = 0; i < memory.bytes.size(); i++)
    if (memory.bytes[i] != shape_.bytes[i]) return format("was changed: byte %zu behind its start", i);
  return "";
}

}  // namespace kw::test
