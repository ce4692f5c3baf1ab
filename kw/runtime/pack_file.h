// A pack: many compiled kernels in one file (docs/packs.md has the format). Made by `kw pack`, found by kw/runtime/packs.h.
//
// A kernel is found by the hash of its C++ name, its architecture and every text that went in: an edit is never hidden. Nothing of the file
// is believed before its checksum agrees.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kw/runtime/nvrtc.h"

namespace kw {

struct PackHeader {  // all numbers little-endian
  char magic[8] = {'K', 'W', 'P', 'A', 'C', 'K', '\r', '\n'};
  uint32_t format = 1;
  uint32_t kernel_count = 0;
  uint64_t file_bytes = 0;
  uint32_t emulator = 0;        // 1: code for the emulator, whose build is in `compiler`
  uint32_t compiler_major = 0;  // of NVRTC; a driver loads code of its own major version and older
  char version[32] = {};        // of Kernelwright
  char compiler[64] = {};       // "nvrtc 13.0"
  Digest content{};             // SHA-256 of this header, with zeros here, and of the index
};
static_assert(sizeof(PackHeader) == 160);

struct PackEntry {      // the index, behind the header, in order of `key`
  Digest key{};         // pack_key
  Digest sources{};     // of every text that went in
  Digest content{};     // SHA-256 of the bytes at `offset`
  uint64_t offset = 0;  // of expression, name and code, one behind the other
  uint32_t expression_bytes = 0, name_bytes = 0, code_bytes = 0;
  int32_t arch = 0;  // 90 for sm_90
};
static_assert(sizeof(PackEntry) == 120);

Digest pack_key(const SourceSet& sources, const std::string& expression, int arch);

struct PackedKernel {
  std::string expression;  // "kw::ops::rms_norm::forward<...>"
  int arch = 0;
  Digest key{}, sources{};
  CompiledKernel kernel;
};
// The whole file at once, or an Error and no file. `header`: emulator, compiler and compiler_major are the caller's to fill.
void write_pack(const std::string& path, PackHeader header, std::vector<PackedKernel> kernels);

class Pack {
 public:
  // Throws KW_ERROR_UNSUPPORTED with a sentence when there is no such file, or it is damaged, foreign, of another version, or may be
  // written by everybody.
  explicit Pack(std::string path);
  ~Pack();
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  const std::string& path() const { return path_; }
  const PackHeader& header() const { return header_; }
  const std::vector<PackEntry>& entries() const { return entries_; }
  std::vector<int> archs() const;  // ascending
  std::string archs_text() const;  // "sm_80, sm_90"
  const PackEntry* find(const Digest& key) const;
  // The kernel's name for people, and its code; nothing when its bytes are not what they were.
  std::optional<PackedKernel> read(const PackEntry& entry) const;

 private:
  std::string path_;
  int fd_ = -1;
  PackHeader header_;
  std::vector<PackEntry> entries_;
};

}  // namespace kw
