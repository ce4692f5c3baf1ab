#include "faces/c/shared_object.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>

#include "kw/core/error.h"
#include "kw/runtime/file.h"

namespace kw {

void expect_whole_library(const char* path) {
  if (!std::strchr(path, '/')) return;
  const File file(open(path, O_RDONLY | O_CLOEXEC));
  struct stat facts{};
  Elf64_Ehdr head{};
  if (file.fd < 0 || fstat(file.fd, &facts) || !read_at(file.fd, &head, sizeof head, 0)) return;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64) return;
  const auto size = static_cast<uint64_t>(facts.st_size);
  const auto expect_within = [&](uint64_t offset, uint64_t bytes, const char* what) {
    if (offset <= size && bytes <= size - offset) return;
    throw Error(KW_ERROR_ARGUMENT, format("%s cannot be loaded: the file is cut short, it has %llu bytes, but its %s ends at %llu", path,
                                          static_cast<unsigned long long>(size), what, static_cast<unsigned long long>(offset + bytes)));
  };
  expect_within(head.e_phoff, uint64_t{head.e_phnum} * sizeof(Elf64_Phdr), "table of segments");
  for (uint64_t i = 0; i < head.e_phnum; i++) {
    Elf64_Phdr segment{};
    if (read_at(file.fd, &segment, sizeof segment, head.e_phoff + i * sizeof segment))
      expect_within(segment.p_offset, segment.p_type == PT_LOAD ? segment.p_filesz : 0, "last segment");
  }
  if (head.e_shoff) expect_within(head.e_shoff, uint64_t{head.e_shnum} * sizeof(Elf64_Shdr), "table of sections");
}

}  // namespace kw
