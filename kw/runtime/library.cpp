#include "kw/runtime/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace fs = std::filesystem;

namespace kw {
namespace {

struct AddedDirs {
  std::mutex mutex;
  std::vector<std::string> dirs;
};
AddedDirs& added() {
  static auto* a = new AddedDirs;  // never destroyed: a late thread may still look
  return *a;
}

void add_if_dir(std::vector<std::string>& out, const fs::path& dir) {
  std::error_code e;
  if (fs::is_directory(dir, e) && std::find(out.begin(), out.end(), dir.string()) == out.end()) out.push_back(dir.string());
}

// NVRTC's wheels: nvidia/cu13 since CUDA 13, nvidia/cuda_nvrtc before.
void add_wheels(std::vector<std::string>& out, const fs::path& site_packages) {
  add_if_dir(out, site_packages / "nvidia/cu13/lib");
  add_if_dir(out, site_packages / "nvidia/cuda_nvrtc/lib");
}

void add_python_prefix(std::vector<std::string>& out, const fs::path& prefix) {
  std::error_code e;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", e))
    if (entry.path().filename().string().starts_with("python3")) add_wheels(out, entry.path() / "site-packages");
}

}  // namespace

void add_library_dir(const char* dir) {
  if (!dir || !*dir) return;
  std::lock_guard lock(added().mutex);
  if (std::find(added().dirs.begin(), added().dirs.end(), dir) == added().dirs.end()) added().dirs.push_back(dir);
}

std::string file_of(const void* function) {
  Dl_info info{};
  if (!dladdr(function, &info) || !info.dli_fname) return "";
  std::error_code e;
  fs::path path = fs::absolute(info.dli_fname, e);
  return e ? "" : path.lexically_normal().string();
}

std::string own_file() { return file_of(reinterpret_cast<const void*>(&own_file)); }
std::string own_dir() { return fs::path(own_file()).parent_path().string(); }

std::vector<std::string> toolkit_dirs() {
  std::vector<std::string> out;
  {
    std::lock_guard lock(added().mutex);
    for (const auto& dir : added().dirs) {
      add_wheels(out, dir);
      add_if_dir(out, dir);
    }
  }
  // In an installed package this library lies in site-packages/kernelwright, in a checkout it lies in build/ beside .venv/.
  if (std::string own = own_dir(); !own.empty())
    for (fs::path p = own;; p = p.parent_path()) {
      add_wheels(out, p);
      add_python_prefix(out, p / ".venv");
      if (p == p.root_path()) break;
    }
  if (const char* venv = std::getenv("VIRTUAL_ENV")) add_python_prefix(out, venv);
  if (const char* home = std::getenv("CUDA_HOME")) add_if_dir(out, fs::path(home) / "lib64");
  add_if_dir(out, "/usr/local/cuda/lib64");
  return out;
}

void* LibrarySearch::loaded(const char* soname) { return dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

void* LibrarySearch::open(const std::string& path) {
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  std::error_code e;
  const char* why = dlerror();
  // "No such file" is the normal case and says nothing more than the name; anything else is worth showing.
  bool found = path.find('/') != std::string::npos && fs::exists(path, e);
  tried_ += (tried_.empty() ? "" : ", ") + path + (found && why ? std::string(" (") + why + ")" : "");
  return nullptr;
}

}  // namespace kw

// A face knows where its packages lie, for example Python's site-packages folders.
extern "C" __attribute__((visibility("default"))) void kw_add_library_dir(const char* dir) {
  try {
    kw::add_library_dir(dir);
  } catch (...) {  // no memory: the folder is simply not searched
  }
}
