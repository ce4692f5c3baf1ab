#include "emulator/nvrtc/compiler.h"

#include <filesystem>

#include "emulator/driver/driver.h"
#include "emulator/nvrtc/assembly.h"
#include "emulator/nvrtc/device_text.h"
#include "emulator/nvrtc/host_compiler.h"
#include "emulator/rewriter/rewriter.h"

namespace kwemu {
namespace {
namespace fs = std::filesystem;

bool safe_name(const std::string& name) {
  fs::path p(name);
  if (name.empty() || p.is_absolute() || name.find_first_of("\"\\\n") != std::string::npos) return false;
  for (auto& part : p)
    if (part == "..") return false;
  return true;
}

// Writes the program, and every header that it reaches, rewritten, into `folder`.
class Sources {
 public:
  Sources(const Job& job, std::string folder) : job_(job), folder_(std::move(folder)) {}
  bool dynamic_shared = false;
  std::vector<std::string> c_kernels;
  std::string error;

  bool add(const std::string& text, const std::string& name, const std::string& tail) {
    Rewritten r = rewrite(text, name);
    if (!r.error.empty()) return error = r.error, false;
    dynamic_shared |= r.dynamic_shared;
    c_kernels.insert(c_kernels.end(), r.c_kernels.begin(), r.c_kernels.end());
    if (!write_file(folder_ + "/" + name, "#line 1 \"" + name + "\"\n" + r.text + tail))
      return error = "error: cannot write below " + folder_ + "\n", false;
    for (auto& include : r.includes)
      if (!add_header(include, fs::path(name).parent_path())) return false;
    return true;
  }

 private:
  bool add_header(const std::string& include, const fs::path& beside) {
    for (auto& name : {include, (beside / include).lexically_normal().string()}) {
      if (!safe_name(name)) continue;
      if (done_[name]) return true;
      if (auto h = job_.headers.find(name); h != job_.headers.end()) return done_[name] = true, add(h->second, name, "");
    }
    for (auto& dir : job_.include_dirs) {
      std::string path = dir + "/" + include;
      std::error_code ignored;
      if (!safe_name(include) || !fs::is_regular_file(path, ignored)) continue;
      return done_[include] = true, add(read_file(path), include, "");
    }
    return true;  // the compiler will say that it is missing, unless the preprocessor skips it
  }
  const Job& job_;
  std::string folder_;
  std::map<std::string, bool> done_;
};

std::string escaped(const std::string& s) {
  std::string r;
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    r += c == '\n' ? ' ' : c;
  }
  return r;
}

// The module's table: for every kernel a function that takes the driver's array of pointers.
std::string module_table(const std::vector<std::pair<std::string, std::string>>& kernels, unsigned arch) {
  std::string text, rows;
  for (size_t i = 0; i < kernels.size(); i++) {
    const auto& [expression, name] = kernels[i];
    std::string caller = "kwemu_entry_" + std::to_string(i);
    size_t skip = expression.find_first_not_of("& \t");
    text += "#line 1 \"name expression '" + escaped(expression) + "'\"\n";
    text += "using " + caller + " = kwemu_caller<&" + expression.substr(skip == std::string::npos ? 0 : skip) + ">;\n";
    rows += "  {\"" + escaped(name) + "\", \"" + escaped(expression) + "\", &" + caller + "::run, " + caller + "::layout.parameters, " +
            caller + "::count},\n";
  }
  text +=
      "#line 1 \"kwemu_table\"\n__thread char kwemu_anchor;\nstatic __attribute__((no_sanitize_thread)) void* kwemu_touch() { return "
      "&kwemu_anchor; }\n";
  text += "static const kwemu_kernel kwemu_kernels[] = {\n" + rows + "  {}};\n";
  text +=
      "extern \"C\" __attribute__((visibility(\"default\"))) const kwemu_module_table kwemu_module;\nconst kwemu_module_table kwemu_module "
      "= {" +
      std::to_string(KWEMU_ABI) + ", " + std::to_string(arch) + ", " + std::to_string(kernels.size()) + ", kwemu_kernels, &kwemu_touch};\n";
  return text;
}
}  // namespace

Built compile(const Job& job) {
  Built built;
  TemporaryFolder folder;
  const std::string& at = folder.path();
  if (at.empty()) {
    built.log = "error: the emulator could not create a temporary folder (set TMPDIR)\n";
    return built;
  }
  std::string name = safe_name(job.name) ? job.name : "default_program";
  Sources sources(job, at + "/src");
  if (!sources.add(job.source, name, "")) {
    built.log = sources.error;
    return built;
  }
  std::vector<std::pair<std::string, std::string>> kernels;
  for (auto& k : sources.c_kernels) kernels.push_back({k, k});
  for (auto& e : job.expressions) {
    built.lowered[e] = "kwemu_kernel_" + std::to_string(kernels.size());
    kernels.push_back({e, built.lowered[e]});
  }
  std::string prefix = sources.dynamic_shared ? "#define KWEMU_DYNAMIC_SHARED\n" : "";
  prefix += std::string("#line 1 \"kwemu_abi.h\"\n") + kwemu_text_abi + "\n#line 1 \"kwemu_qualifiers.h\"\n" + kwemu_text_qualifiers +
            "\n#line 1 \"kwemu_language.h\"\n" + kwemu_text_language + "\n#line 1 \"kwemu_math.h\"\n" + kwemu_text_math +
            "\n#line 1 \"kwemu_intrinsics.h\"\n" + kwemu_text_intrinsics + "\n#line 1 \"kwemu_ptx.h\"\n" + kwemu_text_ptx;
  write_file(at + "/src/kwemu_prefix.h", prefix);
  std::string unit = "#include \"kwemu_prefix.h\"\n#include \"" + name + "\"\n" + module_table(kernels, job.arch);
  if (!write_file(at + "/src/kwemu_unit.cpp", unit)) {
    built.log = "error: cannot write below " + at + "\n";
    return built;
  }

  std::vector<std::string> command = {compiler_name(), "-std=gnu++" + job.standard};
  command.insert(command.end(), kStrictFlags.begin(), kStrictFlags.end());
  command.push_back("-fno-exceptions");
  for (const char* define : {"-DKW_EMULATED=1", "-D__CUDACC__=1", "-D__CUDACC_RTC__=1", "-D__NVCC__=1"}) command.push_back(define);
  command.push_back("-D__CUDA_ARCH__=" + std::to_string(job.arch * 10));
  command.push_back("-fdebug-prefix-map=" + at + "/src=.");  // places are told by include names
  command.push_back("-I.");
  for (auto& d : job.include_dirs) command.push_back("-I" + d);
  for (auto& d : job.defines) command.push_back("-D" + d);
  for (const char* rest : {"-fdump-tree-optimized=../tree", "-S", "kwemu_unit.cpp", "-o", "../unit.s"}) command.push_back(rest);
  int status = run(command, at + "/src", built.log);
  if (status) {
    built.log = explained(status, built.log, at);
    return built;
  }
  Assembly assembly = edit_assembly(read_file(at + "/unit.s"), sources.dynamic_shared);
  built.log += assembly.error;
  for (auto& sentence : unobserved_accesses(read_file(at + "/tree"), assembly.shared_names))
    assembly.error += "error: " + sentence + ": the emulator would not see that access; make the function inline, or pass a reference\n";
  if (!assembly.error.empty()) {
    built.log = assembly.error;
    return built;
  }
  write_file(at + "/unit.s", assembly.text);
  status =
      run({compiler_name(), "-shared", "unit.s", library_path(), "-Wl,-z,now", "-Wl,-z,defs", "-lm", "-o", "module.so"}, at, built.log);
  if (status) return built;
  std::string library = read_file(at + "/module.so");
  ImageHeader header = {};
  memcpy(header.magic, kImageMagic, sizeof kImageMagic);
  header.build = build_id();
  header.bytes = library.size();
  built.image.assign((const char*)&header, sizeof header);
  built.image += library;
  built.ok = true;
  return built;
}
}  // namespace kwemu
