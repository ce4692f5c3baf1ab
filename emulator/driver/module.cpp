// Modules: host libraries in an anonymous file, and the kernels in their tables.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "emulator/driver/driver.h"
#include "emulator/engine/report.h"

namespace kwemu {
namespace {
std::vector<std::unique_ptr<Module>> modules;

// "_ZZN2kw3sumEPfE7scratch" -> "scratch": of the mangled name of a local variable, the last part.
std::string short_name(const std::string& mangled) {
  if (mangled.rfind("_ZL", 0) == 0) return mangled.substr(mangled.find_first_not_of("0123456789", 3));  // static
  size_t end = mangled.rfind('E');
  if (mangled.rfind("_ZZ", 0) != 0 || end == std::string::npos) return mangled.substr(0, mangled.find('.'));
  std::string n = mangled.substr(end + 1);
  n.erase(0, n.find_first_not_of("0123456789"));
  size_t discriminator = n.find_last_not_of("0123456789_");  // "tile_0": a second one of that name
  return discriminator == std::string::npos ? n : n.substr(0, discriminator + 1);
}

void read_symbols(Module* m, const char* bytes, u64 size) {
  auto* header = (const ElfW(Ehdr)*)bytes;
  if (header->e_shoff + (u64)header->e_shnum * sizeof(ElfW(Shdr)) > size) return;
  auto* sections = (const ElfW(Shdr)*)(bytes + header->e_shoff);
  for (int s = 0; s < header->e_shnum; s++) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    auto* symbols = (const ElfW(Sym)*)(bytes + sections[s].sh_offset);
    const char* names = bytes + sections[sections[s].sh_link].sh_offset;
    for (size_t k = 0; k < sections[s].sh_size / sizeof *symbols; k++) {
      const auto& y = symbols[k];
      if (!y.st_size || y.st_shndx == SHN_UNDEF) continue;
      std::string name = names + y.st_name;
      Symbol x{y.st_value, y.st_value + y.st_size, short_name(name)};
      if (ELF64_ST_TYPE(y.st_info) == STT_TLS) {
        if (name == "kwemu_dynamic_shared") {
          m->dynamic_offset = x.lo;
        } else if (name.find("kwemu_") == std::string::npos) {
          m->shared_symbols.push_back(x);
          m->static_shared += y.st_size;
        }
      } else if (ELF64_ST_TYPE(y.st_info) == STT_OBJECT && name.find("kwemu_") == std::string::npos && name.rfind("_ZGV", 0)) {
        x.writable = y.st_shndx < header->e_shnum && (sections[y.st_shndx].sh_flags & SHF_WRITE);
        m->variables.push_back(x);  // but the guards of a function's own statics, which the compiler reads and writes
      }
    }
  }
  auto by_place = [](const Symbol& a, const Symbol& b) { return a.lo < b.lo; };
  std::sort(m->shared_symbols.begin(), m->shared_symbols.end(), by_place);
  std::sort(m->variables.begin(), m->variables.end(), by_place);
  m->shared_map.assign(m->shared_bytes / 16 + 2, kNoUnit);
  for (size_t i = 0; i < m->shared_symbols.size(); i++)
    for (u64 o = m->shared_symbols[i].lo >> 4; o <= (m->shared_symbols[i].hi - 1) >> 4; o++)
      m->shared_map[o] = m->shared_symbols[i].name.rfind("_ZGV", 0) ? (u16)i : kGuardUnit;
}

bool read_mapping(Module* m) {
  struct link_map* map = nullptr;
  if (dlinfo(m->handle, RTLD_DI_LINKMAP, &map)) return false;
  m->bias = map->l_addr;
  struct Search {
    Module* m;
    bool found;
  } search{m, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* s = (Search*)data;
        if (info->dlpi_addr != s->m->bias) return 0;
        s->found = true;
        for (int k = 0; k < info->dlpi_phnum; k++) {
          auto& p = info->dlpi_phdr[k];
          if (p.p_type == PT_LOAD) {
            u64 lo = s->m->bias + p.p_vaddr;
            s->m->lo = s->m->lo ? std::min(s->m->lo, lo) : lo;
            s->m->hi = std::max(s->m->hi, lo + (u64)p.p_memsz);
          }
          if (p.p_type == PT_TLS) s->m->shared_bytes = p.p_memsz;
        }
        return 1;
      },
      &search);
  m->dynamic_offset = m->shared_bytes;
  return search.found;
}

// The library behind `path` becomes the module; m->file holds the same bytes.
CUresult attach(Module* m, const std::string& path, const char* bytes, u64 size) {
  m->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!m->handle) {
    fprintf(stderr, "kwemu: the module cannot be loaded: %s\n", dlerror());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  auto* table = (const kwemu_module_table*)dlsym(m->handle, "kwemu_module");
  if (!table || table->abi != KWEMU_ABI || !read_mapping(m)) return CUDA_ERROR_INVALID_IMAGE;
  m->arch = table->arch;
  if (m->arch / 10 != device_model.arch / 10 || m->arch > device_model.arch) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  read_symbols(m, bytes, size);
  u32 limit = max_shared_per_block(device_model.arch);
  if (!m->program && m->static_shared > limit) return CUDA_ERROR_INVALID_IMAGE;
  for (u32 i = 0; i < table->kernel_count; i++) {
    const kwemu_kernel* k = &table->kernels[i];
    u32 usual = u64{48 * 1024} > m->static_shared ? (u32)(48 * 1024 - m->static_shared) : 0;
    m->kernels.push_back({m, k->name, k->expression, k, usual});
  }
  return CUDA_SUCCESS;
}

CUresult open_image(Module* m, const char* bytes, u64 size) {
  m->file = memfd_create("kwemu module", MFD_CLOEXEC);
  if (m->file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  for (u64 done = 0; done < size;) {
    ssize_t n = write(m->file, bytes + done, size - done);
    if (n <= 0) return CUDA_ERROR_OUT_OF_MEMORY;
    done += (u64)n;
  }
  return attach(m, "/proc/self/fd/" + std::to_string(m->file), bytes, size);
}

void close_image(Module* m) {
  if (m->handle) dlclose(m->handle);
  if (m->file >= 0) close(m->file);
}
}  // namespace

CUresult load_module(const void* image, Module** out) {
  if (!image || !out) return CUDA_ERROR_INVALID_VALUE;
  ImageHeader header;
  if (memcmp(image, kImageMagic, sizeof kImageMagic)) return CUDA_ERROR_INVALID_IMAGE;
  memcpy(&header, image, sizeof header);
  if (header.build != build_id()) return CUDA_ERROR_INVALID_IMAGE;
  auto m = std::make_unique<Module>();
  CUresult result = open_image(m.get(), (const char*)image + sizeof header, header.bytes);
  if (result != CUDA_SUCCESS) {
    close_image(m.get());
    return result;
  }
  *out = m.get();
  engine.modules.push_back(m.get());
  modules.push_back(std::move(m));
  return CUDA_SUCCESS;
}

Module* load_program(const std::string& path) {
  auto m = std::make_unique<Module>();
  m->program = true;
  m->file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (m->file < 0 || fstat(m->file, &status)) return nullptr;
  void* bytes = mmap(nullptr, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, m->file, 0);
  if (bytes == MAP_FAILED) return nullptr;
  engine.modules.push_back(m.get());  // its constructors may already allocate and launch
  modules.push_back(std::move(m));
  Module* program = modules.back().get();
  return attach(program, path, (const char*)bytes, (u64)status.st_size) ? nullptr : program;
}

CUresult unload_module(Module* m) {
  if (!known_module(m)) return CUDA_ERROR_INVALID_HANDLE;
  std::erase(engine.modules, m);
  for (auto& [at, r] : m->variable_regions)
    if (r->cells) munmap(r->cells, r->cell_count * sizeof(Cell) + 4096);
  close_image(m);
  std::erase_if(modules, [&](auto& p) { return p.get() == m; });
  forget_places();
  return CUDA_SUCCESS;
}

Module* known_module(const void* handle) {
  for (auto& m : modules)
    if (m.get() == handle) return m.get();
  return nullptr;
}
Kernel* known_kernel(const void* handle) {
  for (auto& m : modules)
    for (auto& k : m->kernels)
      if (&k == handle) return &k;
  return nullptr;
}
CUresult find_kernel(Module* m, const char* name, Kernel** out) {
  if (!known_module(m)) return CUDA_ERROR_INVALID_HANDLE;
  if (!name || !out) return CUDA_ERROR_INVALID_VALUE;
  for (auto& k : m->kernels)
    if (k.name == name) return *out = &k, CUDA_SUCCESS;
  return CUDA_ERROR_NOT_FOUND;
}
}  // namespace kwemu

using namespace kwemu;

KWEMU_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                                        unsigned) {
  return guarded([&] { return load_module(code, (Module**)library); });
}
KWEMU_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  return guarded([&] { return unload_module((Module*)library); });
}
KWEMU_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return guarded([&] { return find_kernel((Module*)library, name, (Kernel**)kernel); });
}
KWEMU_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return with_context([&] {
    if (!known_kernel(kernel)) return CUDA_ERROR_INVALID_HANDLE;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
  });
}
KWEMU_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* code) {
  return with_context([&] { return load_module(code, (Module**)module); });
}
KWEMU_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return with_context([&] { return unload_module((Module*)module); });
}
KWEMU_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return with_context([&] { return find_kernel((Module*)module, name, (Kernel**)function); });
}
KWEMU_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return with_context([&] {
    Module* m = known_module(module);
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    for (auto& v : m->variables) {
      if (!name || v.name != name) continue;
      if (address) *address = v.lo + m->bias;
      if (bytes) *bytes = v.hi - v.lo;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}
