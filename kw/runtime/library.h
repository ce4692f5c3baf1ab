// Finding shared libraries at run time: nothing of CUDA is linked, so that one binary runs with any toolkit and on machines with none.
#pragma once
#include <string>
#include <vector>

namespace kw {

// A folder to look in for NVRTC before the system's: the one that holds it, or a Python site-packages folder.
void add_library_dir(const char* dir);

// Folders that may hold NVRTC, most particular first: those added, the wheels of the Python installation around this library, of
// VIRTUAL_ENV, then CUDA_HOME and /usr/local/cuda. Only folders that exist.
std::vector<std::string> toolkit_dirs();

// The folder of the library or executable that holds this code; "" when the loader does not say.
std::string own_dir();
std::string own_file();
// The file that a function came from.
std::string file_of(const void* function);

// One search: tries names in order, remembers what it tried for the sentence that explains a failure.
class LibrarySearch {
 public:
  void* loaded(const char* soname);     // only if the process has it already
  void* open(const std::string& path);  // a path, or a soname for the system's search
  const std::string& tried() const { return tried_; }

 private:
  std::string tried_;
};

}  // namespace kw
