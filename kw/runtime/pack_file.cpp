#include "kw/runtime/pack_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "kw/core/error.h"
#include "kw/runtime/file.h"

namespace kw {
namespace {

Digest content_of(PackHeader header, const std::vector<PackEntry>& entries) {
  header.content = {};
  Sha256 sha;
  sha.update(&header, sizeof header);
  sha.update(entries.data(), entries.size() * sizeof(PackEntry));
  return sha.finish();
}

Digest content_of(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  return sha.finish();
}

template <size_t size>
std::string text_of(const char (&field)[size]) {
  return {field, strnlen(field, size)};
}

}  // namespace

Digest pack_key(const SourceSet& sources, const std::string& expression, int arch) {
  Sha256 sha;
  sha.add("kernelwright pack 1").add(expression);
  for (const std::string& option : compile_options({arch, false})) sha.add(option);
  sha.add(hex(sources.digest));
  return sha.finish();
}

void write_pack(const std::string& path, PackHeader header, std::vector<PackedKernel> kernels) {
  std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  std::snprintf(header.version, sizeof header.version, "%s", KW_VERSION);
  header.kernel_count = static_cast<uint32_t>(kernels.size());
  std::vector<PackEntry> entries;
  std::vector<std::string> bytes;
  uint64_t offset = sizeof header + kernels.size() * sizeof(PackEntry);
  for (const PackedKernel& k : kernels) {
    bytes.push_back(k.expression + k.kernel.name + k.kernel.code);
    entries.push_back({k.key, k.sources, content_of(bytes.back()), offset, static_cast<uint32_t>(k.expression.size()),
                       static_cast<uint32_t>(k.kernel.name.size()), static_cast<uint32_t>(k.kernel.code.size()), k.arch});
    offset += bytes.back().size();
  }
  header.file_bytes = offset;
  header.content = content_of(header, entries);
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&header), sizeof header},
                                      {reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(PackEntry)}};
  parts.insert(parts.end(), bytes.begin(), bytes.end());
  if (const int error = write_and_rename(path, parts, 0644))
    throw Error(KW_ERROR_ARGUMENT, "the pack " + path + " cannot be written: " + std::strerror(error));
}

Pack::Pack(std::string path) : path_(std::move(path)), fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  const File closes_on_error(fd_);
  auto refuse = [&](const std::string& why) { throw Error(KW_ERROR_UNSUPPORTED, "the pack " + path_ + " " + why); };
  struct stat s{};
  if (fd_ < 0 || fstat(fd_, &s)) refuse(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(s.st_mode)) refuse("is not a file");
  if (s.st_mode & 002) refuse("may be written by everybody and is not trusted (chmod o-w mends it)");
  const PackHeader wanted;
  if (!read_at(fd_, &header_, sizeof header_, 0) || std::memcmp(header_.magic, wanted.magic, sizeof wanted.magic))
    refuse("is no pack of Kernelwright, or is cut short");
  if (header_.format != wanted.format)
    refuse(format("has format %u, but this version reads format %u: make it anew with kw pack", header_.format, wanted.format));
  const auto size = static_cast<uint64_t>(s.st_size);
  const uint64_t index_bytes = uint64_t{header_.kernel_count} * sizeof(PackEntry);
  if (header_.file_bytes != size)
    refuse(format("is damaged: it has %llu bytes, but was made with %llu", static_cast<unsigned long long>(size),
                  static_cast<unsigned long long>(header_.file_bytes)));
  if (index_bytes > size - sizeof header_) refuse("is damaged: its index is longer than the file");
  entries_.resize(header_.kernel_count);
  if (!read_at(fd_, entries_.data(), index_bytes, sizeof header_) || content_of(header_, entries_) != header_.content)
    refuse("is damaged: the checksum of its index does not agree");
  if (text_of(header_.version) != KW_VERSION)
    refuse(format("was made by Kernelwright %s, but this is %s: make it anew with kw pack", text_of(header_.version).c_str(), KW_VERSION));
  fd_ = dup(fd_);
  if (fd_ < 0) refuse(std::string("cannot be kept open: ") + std::strerror(errno));
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

Pack::~Pack() {
  if (fd_ >= 0) close(fd_);
}

std::vector<int> Pack::archs() const {
  std::set<int> all;
  for (const PackEntry& e : entries_) all.insert(e.arch);
  return {all.begin(), all.end()};
}

std::string Pack::archs_text() const {
  std::string text;
  for (int arch : archs()) text += format("%ssm_%d", text.empty() ? "" : ", ", arch);
  return text.empty() ? "no architecture" : text;
}

const PackEntry* Pack::find(const Digest& key) const {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), key, [](const PackEntry& e, const Digest& k) { return e.key < k; });
  return at != entries_.end() && at->key == key ? &*at : nullptr;
}

std::optional<PackedKernel> Pack::read(const PackEntry& e) const {
  const uint64_t size = uint64_t{e.expression_bytes} + e.name_bytes + e.code_bytes;
  if (e.offset > header_.file_bytes || size > header_.file_bytes - e.offset) return std::nullopt;
  std::string bytes(size, '\0');
  if (!read_at(fd_, bytes.data(), size, e.offset) || content_of(bytes) != e.content) return std::nullopt;
  PackedKernel out{bytes.substr(0, e.expression_bytes), e.arch, e.key, e.sources, {}};
  out.kernel.name = bytes.substr(e.expression_bytes, e.name_bytes);
  out.kernel.code = bytes.substr(e.expression_bytes + e.name_bytes);
  return out;
}

}  // namespace kw
