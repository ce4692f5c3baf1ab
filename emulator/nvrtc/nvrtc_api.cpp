// NVRTC's stand-in.
#include <nvrtc.h>

#include <algorithm>

#include "emulator/driver/driver.h"
#include "emulator/nvrtc/compiler.h"

using namespace kwemu;
struct _nvrtcProgram {
  Job job;
  Built built;
  bool compiled = false;
};
namespace {
constexpr int kArchs[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
nvrtcResult copy_out(const std::string& text, char* to) {
  if (!to) return NVRTC_ERROR_INVALID_INPUT;
  memcpy(to, text.data(), text.size());
  return NVRTC_SUCCESS;
}

// "--gpu-architecture=sm_90", "-arch=compute_90a" -> 90
unsigned arch_of(const std::string& value) {
  size_t at = value.find('_');
  unsigned arch = at == std::string::npos ? 0 : (unsigned)strtoul(value.c_str() + at + 1, nullptr, 10);
  return std::find(std::begin(kArchs), std::end(kArchs), (int)arch) != std::end(kArchs) ? arch : 0;
}

// Empty, or what is wrong. An option's value follows '=', or is the next argument.
std::string read_options(Job& job, int count, const char* const* options) {
  for (int i = 0; i < count; i++) {
    if (!options[i]) return "option " + std::to_string(i) + " is null";
    std::string option = options[i], value;
    auto value_of = [&](std::initializer_list<const char*> names) {
      for (std::string n : names) {
        if (option.rfind(n + "=", 0) == 0) return value = option.substr(n.size() + 1), true;
        if (option == n && i + 1 < count) return value = options[++i], true;
      }
      return false;
    };
    auto prefixed = [&](const char* prefix) {
      if (option.rfind(prefix, 0) || option.size() < 3) return false;
      return value = option.substr(2), true;
    };
    if (value_of({"--gpu-architecture", "-arch"})) {
      if (!(job.arch = arch_of(value))) return "unsupported architecture '" + value + "'";
    } else if (value_of({"--std", "-std"})) {
      if (value.rfind("c++", 0) || value.size() != 5) return "unsupported standard '" + value + "'";
      job.standard = value.substr(3);
    } else if (value_of({"--define-macro", "-D"}) || prefixed("-D")) {
      job.defines.push_back(value);
    } else if (value_of({"--include-path", "-I"}) || prefixed("-I")) {
      job.include_dirs.push_back(value);
    }  // the others change how the GPU's code is made, not what it means
  }
  return "";
}
}  // namespace

KWEMU_EXPORT const char* nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
    case NVRTC_SUCCESS:
      return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
      return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_INVALID_INPUT:
      return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION:
      return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
      return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION:
      return "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    case NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION:
      return "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
      return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    case NVRTC_ERROR_INTERNAL_ERROR:
      return "NVRTC_ERROR_INTERNAL_ERROR";
    default:
      return "NVRTC_ERROR unknown";
  }
}
// The minor version tells this emulator's builds apart from each other and from every real NVRTC, so that caches of kernels do too.
KWEMU_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  if (!major || !minor) return NVRTC_ERROR_INVALID_INPUT;
  *major = CUDA_VERSION / 1000;
  *minor = 1'000'000 + (int)(build_id() % 1'000'000'000);
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  if (!count) return NVRTC_ERROR_INVALID_INPUT;
  *count = (int)std::size(kArchs);
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  if (!archs) return NVRTC_ERROR_INVALID_INPUT;
  std::copy(std::begin(kArchs), std::end(kArchs), archs);
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int header_count,
                                            const char* const* headers, const char* const* include_names) {
  if (!program || !source || header_count < 0 || (header_count && (!headers || !include_names))) return NVRTC_ERROR_INVALID_INPUT;
  auto* p = new (std::nothrow) _nvrtcProgram;
  if (!p) return NVRTC_ERROR_OUT_OF_MEMORY;
  p->job.source = source;
  p->job.name = name && *name ? name : "default_program";
  p->job.arch = device_model.arch;
  for (int i = 0; i < header_count; i++) p->job.headers[include_names[i]] = headers[i];
  *program = p;
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (!program || !*program) return NVRTC_ERROR_INVALID_PROGRAM;
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!expression) return NVRTC_ERROR_INVALID_INPUT;
  if (program->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  auto& known = program->job.expressions;
  if (std::find(known.begin(), known.end(), expression) == known.end()) known.push_back(expression);
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (count < 0 || (count && !options)) return NVRTC_ERROR_INVALID_INPUT;
  try {
    std::string trouble = read_options(program->job, count, options);
    if (!trouble.empty()) {
      program->built.log = "error: " + trouble + "\n";
      return NVRTC_ERROR_INVALID_OPTION;
    }
    program->built = compile(program->job);
    program->compiled = true;
    return program->built.ok ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
  } catch (const std::bad_alloc&) {
    return NVRTC_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    program->built.log = std::string("error: ") + e.what() + "\n";
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
}
KWEMU_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!bytes) return NVRTC_ERROR_INVALID_INPUT;
  *bytes = program->built.log.size() + 1;
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!log) return NVRTC_ERROR_INVALID_INPUT;
  memcpy(log, program->built.log.c_str(), program->built.log.size() + 1);
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  if (!program || !program->built.ok) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!bytes) return NVRTC_ERROR_INVALID_INPUT;
  *bytes = program->built.image.size();
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  if (!program || !program->built.ok) return NVRTC_ERROR_INVALID_PROGRAM;
  return copy_out(program->built.image, cubin);
}
KWEMU_EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) {
  if (!program || !program->built.ok) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!bytes) return NVRTC_ERROR_INVALID_INPUT;
  *bytes = 0;  // as NVRTC does for a real architecture: there is none
  return NVRTC_SUCCESS;
}
KWEMU_EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char*) {
  return program && program->built.ok ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}
KWEMU_EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression, const char** name) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!expression || !name) return NVRTC_ERROR_INVALID_INPUT;
  if (!program->built.ok) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  auto i = program->built.lowered.find(expression);
  if (i == program->built.lowered.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *name = i->second.c_str();
  return NVRTC_SUCCESS;
}
