#include <algorithm>
#include <filesystem>
#include <future>
#include <map>
#include <set>

#include "emulator/device/abi.h"
#include "emulator/nvrtc/assembly.h"
#include "emulator/nvrtc/device_text.h"
#include "emulator/nvrtc/host_compiler.h"
#include "emulator/program/program.h"
#include "emulator/rewriter/rewriter.h"

namespace kwemu {
namespace {
namespace fs = std::filesystem;

// The toolkit's headers: types and prototypes of the runtime, half precision.
std::string toolkit_headers() {
  std::vector<fs::path> places;
  const auto from = [&](const char* value, const char* below) {
    if (value && *value) places.push_back(value + std::string(below));
  };
  from(getenv("KWEMU_CUDA_INCLUDE"), "");
  from(getenv("CUDA_HOME"), "/include");
  from(getenv("CUDA_PATH"), "/include");
  std::error_code ignored;
  const auto site_packages = [&](const fs::path& folder) {  // of CUDA 13's wheels, and of those before
    places.insert(places.end(), {folder / "nvidia/cu13/include", folder / "nvidia/cuda_runtime/include"});
  };
  const auto environment = [&](const fs::path& prefix) {
    for (const auto& python : fs::directory_iterator(prefix / "lib", ignored)) site_packages(python.path() / "site-packages");
  };
  // In an installed package the emulator lies in site-packages/kernelwright, in a checkout it lies in build/ beside .venv/.
  for (fs::path p = fs::path(library_path()).lexically_normal().parent_path();; p = p.parent_path()) {
    site_packages(p);
    environment(p / ".venv");
    if (p == p.root_path()) break;
  }
  if (const char* active = getenv("VIRTUAL_ENV")) environment(active);
  places.push_back("/usr/local/cuda/include");
  for (auto& p : places)
    if (fs::is_regular_file(p / "cuda_runtime_api.h", ignored)) return p.string();
  return "";
}

// The program's files, rewritten, at their own absolute paths below a folder, so that every #include finds what it would have found.
class Mirror {
 public:
  Mirror(const ProgramSources& sources, std::string root) : root_(std::move(root)) {
    dialect.program = true;
    dialect.initialisers = sources.initialisers;
    for (auto& d : sources.include_dirs) dirs_.push_back(fs::absolute(d).lexically_normal());
  }
  Dialect dialect;
  bool dynamic_shared = false;
  std::set<std::string> device_functions;
  std::string error;

  std::string place(const fs::path& file) const { return root_ + fs::absolute(file).lexically_normal().string(); }
  const std::vector<fs::path>& dirs() const { return dirs_; }

  bool add(const fs::path& file, const std::string& name) {  // name: what reports call it
    fs::path path = fs::absolute(file).lexically_normal();
    if (!done_.insert(path.string()).second) return true;
    Rewritten r = rewrite(read_file(path.string()), name, dialect);
    if (!r.error.empty()) return error = r.error, false;
    dynamic_shared |= r.dynamic_shared;
    device_functions.merge(r.device_functions);
    if (!write_file(place(path), "#line 1 \"" + name + "\"\n" + r.text)) return error = "error: cannot write below " + root_ + "\n", false;
    for (auto& include : r.includes) {
      std::vector<fs::path> from = dirs_;
      from.insert(from.begin(), path.parent_path());
      for (size_t i = 0; i < from.size(); i++) {
        std::error_code ignored;
        fs::path found = (from[i] / include).lexically_normal();
        if (!fs::is_regular_file(found, ignored)) continue;
        if (!add(found, i ? found.string() : (fs::path(name).parent_path() / include).lexically_normal().string())) return false;
        break;
      }
    }
    return true;
  }

 private:
  std::string root_;
  std::vector<fs::path> dirs_;
  std::set<std::string> done_;
};

// Several headers in one, each with a name by which reports can leave it out.
std::string prefix_text() {
  std::string text = "#pragma once\n";
  const std::pair<const char*, const char*> parts[] = {
      {"kwemu_abi.h", kwemu_text_abi},   {"kwemu_program.h", kwemu_text_program},       {"kwemu_language.h", kwemu_text_language},
      {"kwemu_math.h", kwemu_text_math}, {"kwemu_intrinsics.h", kwemu_text_intrinsics}, {"kwemu_ptx.h", kwemu_text_ptx}};
  for (auto& [name, part] : parts) text += std::string("#line 1 \"") + name + "\"\n" + part + "\n";
  return text;
}

// What every module has, and a main that the loader can find.
std::string table_text(unsigned arch) {
  return "#include \"kwemu_abi.h\"\n__thread char kwemu_anchor;\nstatic void* kwemu_touch() { return &kwemu_anchor; }\n"
         "static const kwemu_kernel kwemu_kernels[] = {{}};\n#define KWEMU_VISIBLE extern \"C\" __attribute__((visibility(\"default\")))\n"
         "KWEMU_VISIBLE const kwemu_module_table kwemu_module;\nconst kwemu_module_table kwemu_module = {" +
         std::to_string(KWEMU_ABI) + ", " + std::to_string(arch) +
         ", 0, kwemu_kernels, &kwemu_touch};\nint main(int, char**);\n"
         "KWEMU_VISIBLE int kwemu_main(int argc, char** argv) { return main(argc, argv); }\n";
}

// From the linker's complaints: a function for each name, which tells who was called.
std::string missing_functions(const std::string& log) {
  std::set<std::string> names;
  const std::string before = "undefined reference to `";
  for (size_t at = 0; (at = log.find(before, at)) != std::string::npos;) {
    at += before.size();
    names.insert(log.substr(at, log.find('\'', at) - at));
  }
  std::string text;
  for (auto& name : names) {
    if (name.find_first_of(":( ") != std::string::npos) return "";  // C++ of the program's own: a file is missing
    fprintf(stderr, "kwemu warning: the program uses %s, which the emulator does not have; a call of it will end the program\n",
            name.c_str());
    text += "\t.text\n\t.globl " + name + "\n" + name +
            ":\n\tleaq 1f(%rip), %rdi\n\tandq $-16, %rsp\n\tcall kwemu_missing_function@PLT\n1:\t.string \"" + name + "\"\n";
  }
  return text;
}

struct Unit {
  std::string assembly, error;
};

// Does the sentence of an unobserved access ("ns::f<int> passes ...") speak of device code? Host code needs no observing.
bool of_device_code(const std::string& sentence, const std::set<std::string>& device_functions) {
  std::string name = sentence.substr(0, sentence.find_first_of("<( "));
  name = name.substr(name.rfind(':') == std::string::npos ? 0 : name.rfind(':') + 1);
  return device_functions.count(name.rfind("operator", 0) == 0 ? "operator" : name) > 0;
}

Unit compile_unit(const std::string& at, const std::string& file, size_t number, const std::vector<std::string>& flags, bool is_cuda,
                  const std::set<std::string>& device_functions) {
  std::string base = "unit" + std::to_string(number), log;
  std::vector<std::string> command = {compiler_name(), "-x", "c++"};
  command.insert(command.end(), flags.begin(), flags.end());
  if (is_cuda) command.insert(command.end(), {"-include", at + "/kwemu/kwemu_prefix.h"});
  command.insert(command.end(), {"-fdump-tree-optimized=" + at + "/" + base + ".tree", "-S", file, "-o", at + "/" + base + ".s"});
  if (int status = run(command, at, log)) return {"", explained(status, log, at)};
  Unit unit;
  Assembly assembly = edit_assembly(read_file(at + "/" + base + ".s"), false);
  // Inline assembly that is left is the host's (rdtsc): the rewriter has translated or refused the rest.
  for (auto& sentence : unobserved_accesses(read_file(at + "/" + base + ".tree"), assembly.shared_names))
    if (of_device_code(sentence, device_functions))
      unit.error += "error: " + sentence + ": the emulator would not see that access; make the function inline, or pass a reference\n";
  write_file(at + "/" + base + ".s", assembly.text);
  unit.assembly = base + ".s";
  return unit;
}
}  // namespace

std::string build_program(const ProgramSources& sources, const std::string& output) {
  if (sources.files.empty()) return "error: a program needs a source file\n";
  std::string headers = toolkit_headers();
  if (headers.empty())
    return "error: a program needs the CUDA toolkit's headers (cuda_runtime_api.h), which come with the PyPI package nvidia-cuda-runtime; "
           "set KWEMU_CUDA_INCLUDE to their folder\n";
  TemporaryFolder folder;
  const std::string& at = folder.path();
  if (at.empty()) return "error: the emulator could not create a temporary folder (set TMPDIR)\n";
  Mirror mirror(sources, at + "/src");
  for (auto& file : sources.files) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return "error: there is no file " + file + "\n";
    if (!mirror.add(file, file)) return mirror.error;
  }
  for (auto& [name, value] : sources.initialisers)
    if (std::find(mirror.dialect.initialised.begin(), mirror.dialect.initialised.end(), name) == mirror.dialect.initialised.end())
      return "error: there is no variable or macro " + name + " that begins with a value, so --set " + name + "=" + value +
             " would change nothing\n";
  write_file(at + "/kwemu/kwemu_abi.h", kwemu_text_abi);
  write_file(at + "/kwemu/kwemu_prefix.h", prefix_text());
  for (auto& [name, text] : kToolkit) write_file(at + "/kwemu/" + name, text);
  write_file(at + "/table.cpp", table_text(sources.arch));

  std::vector<std::string> flags = {"-std=gnu++" + sources.standard};
  flags.insert(flags.end(), kStrictFlags.begin(), kStrictFlags.end());
  std::string arch = std::to_string(sources.arch * 10);
  flags.insert(flags.end(),
               {"-fpermissive", "-DKW_EMULATED=1", "-DKWEMU_CUDACC=1", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0",
                "-D__CUDACC_VER_BUILD__=0", "-DKWEMU_CUDA_ARCH=" + arch, "-fdebug-prefix-map=" + at + "=.", "-I" + at + "/kwemu"});
  if (mirror.dynamic_shared) flags.push_back("-DKWEMU_DYNAMIC_SHARED");
  for (auto& d : mirror.dirs()) flags.insert(flags.end(), {"-I" + mirror.place(d), "-I" + d.string()});
  for (auto& d : sources.defines) flags.push_back("-D" + d);
  flags.insert(flags.end(), {"-isystem", headers});
  std::vector<std::future<Unit>> work;
  for (size_t i = 0; i < sources.files.size(); i++)
    work.push_back(std::async(std::launch::async, [&, i] {
      const fs::path file = sources.files[i];
      return compile_unit(at, mirror.place(file), i, flags, file.extension() != ".c", mirror.device_functions);
    }));
  std::vector<std::string> link = {compiler_name(), "-shared"};
  std::string error;
  for (auto& w : work) {
    Unit unit = w.get();
    error += unit.error;
    link.push_back(unit.assembly);
  }
  if (!error.empty()) return error;
  std::string log;
  if (run({compiler_name(), "-std=gnu++17", "-w", "-fPIC", "-O1", "-fvisibility=hidden", "-I" + at + "/kwemu", "-S", "table.cpp", "-o",
           "table.s"},
          at, log))
    return log;
  write_file(at + "/table.s", edit_assembly(read_file(at + "/table.s"), mirror.dynamic_shared).text);
  link.insert(link.end(), {"table.s", library_path(), "-Wl,-z,now", "-Wl,-z,defs", "-lm", "-o", fs::absolute(output).string()});
  if (!run(link, at, log)) return "";
  // Functions that nobody has (a library that the emulator lacks): named now; a call of one ends the program.
  std::string stubs = missing_functions(log);
  if (stubs.empty()) return log;
  write_file(at + "/missing.s", stubs);
  link.insert(link.begin() + 2, "missing.s");
  log.clear();
  return run(link, at, log) ? log : "";
}
}  // namespace kwemu
