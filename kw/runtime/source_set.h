// The text that a kernel is compiled from: its file and everything that it includes.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kw/runtime/sha256.h"

namespace kw {

struct FileStamp {  // changes when the file does; all zero for a file that is not on disk
  int64_t modified_ns = 0, changed_ns = 0, size = 0, inode = 0;
  bool operator==(const FileStamp&) const = default;
};

struct SourceFile {
  std::string path;  // as it is included: "kw/device/row.cuh"
  std::string text;
  FileStamp stamp;  // of <KW_KERNEL_PATH>/<path>
  bool on_disk = false;
};

struct SourceSet {
  std::vector<SourceFile> files;  // the kernel's own file first, then by first inclusion
  std::string root;               // KW_KERNEL_PATH as it was, or ""
  std::string preamble;           // in front of everything: "#define KW_STRIDED_ROWS\n", or ""
  Digest digest{};                // of the preamble, every path and text
};

// The set of a kernel's file: embedded text (find_source), or with KW_KERNEL_PATH=<root> the file <root>/<path> where there is one.
// Cached; with KW_KERNEL_PATH an edited file is seen at the next call. Throws KW_ERROR_CONTRACT when the file is nowhere.
// An include that is nowhere is left to the compiler, which names its line. `strided`: for calls with a tensor whose rows one distance does
// not place (kw/device/params.cuh).
std::shared_ptr<const SourceSet> source_set(const std::string& path, bool strided = false);

// A set of one text, for kernels that belong to no room.
SourceSet source_set_of_text(std::string path, std::string text);

// False when a file of the set has changed on disk. Free without KW_KERNEL_PATH, one stat per file with it.
bool is_current(const SourceSet& set);

// As if KW_KERNEL_PATH were set to `root` ("" for embedded text). The environment is read once, at the first use.
void set_kernel_path(const std::string& root);
uint64_t kernel_path_generation();  // grows with every set_kernel_path

}  // namespace kw
