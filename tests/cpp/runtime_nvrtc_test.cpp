// The real NVRTC, without a GPU: found, asked, and its failures as sentences.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "faces/c/kernelwright.h"
#include "kw/core/error.h"
#include "kw/runtime/driver.h"
#include "kw/runtime/library.h"
#include "kw/runtime/nvrtc.h"
#include "testing/expect.h"

using namespace kw;

static SourceSet two_files(const std::string& word) {
  SourceSet set = source_set_of_text("t/scale.cuh", R"(#pragma once
#include "t/word.cuh"
namespace t {
struct Params { const float* x; float* y; int n; };
template <int threads>
__global__ void __launch_bounds__(threads) scale(Params p) {
  int i = blockIdx.x * threads + threadIdx.x;
  if (i < p.n) p.y[i] = word(p.x[i]);
}
}
)");
  set.files.push_back(
      {"t/word.cuh", "#pragma once\nnamespace t { __device__ inline float word(float v) { return " + word + "; } }\n", {}, false});
  set.digest = Sha256().add(word).finish();
  return set;
}

int main() {
  // Missing libraries: a sentence with what was tried and what to do; found later without a new process.
  unsetenv("KW_DRIVER");
  setenv("KW_NVRTC", "/nonexistent/libnvrtc.so", 1);
  KW_EXPECT_THROWS(nvrtc(), "the NVRTC that KW_NVRTC names could not be loaded: /nonexistent/libnvrtc.so");
  std::string why;
  KW_EXPECT(!find_nvrtc(&why) && !why.empty());
  unsetenv("KW_NVRTC");
  setenv("KW_DRIVER", "/nonexistent/libcuda.so.1", 1);
  KW_EXPECT_THROWS(driver(), "the CUDA driver that KW_DRIVER names could not be loaded: /nonexistent/libcuda.so.1");
  setenv("KW_DRIVER", "libdl.so.2", 1);  // a library, but not this one
  KW_EXPECT_THROWS(driver(), "the CUDA driver lacks cuInit");
  setenv("KW_DRIVER", "emulator", 1);
  setenv("KW_EMULATOR", "/nonexistent/libkwemu.so", 1);
  KW_EXPECT_THROWS(driver(), "libkwemu.so was not found (tried /nonexistent/libkwemu.so)");
  KW_EXPECT_THROWS(nvrtc(), "libkwemu.so was not found");
  unsetenv("KW_DRIVER"), unsetenv("KW_EMULATOR");

  // A folder that a face hands in: its wheels first, then itself, before all others.
  char temporary[] = "/tmp/kw_nvrtc_test_XXXXXX";
  const std::string packages = mkdtemp(temporary);
  std::filesystem::create_directories(packages + "/nvidia/cu13/lib");
  kw_add_library_dir(packages.c_str());
  kw_add_library_dir(nullptr);
  KW_EXPECT_EQ(toolkit_dirs()[0], packages + "/nvidia/cu13/lib");
  KW_EXPECT_EQ(toolkit_dirs()[1], packages);
  std::ofstream(packages + "/libnvrtc.so.13") << "not a library";  // passed over

  const Nvrtc& compiler = nvrtc();
  std::filesystem::remove_all(packages);
  std::cout << compiler.identity << '\n';
  KW_EXPECT(compiler.major >= 12);

  const SourceSet sources = two_files("2.0f * v");
  for (int arch : {75, 80, 90, 100}) {
    CompiledKernel kernel = compile(compiler, sources, "t::scale<128>", target_for(compiler, arch));
    KW_EXPECT_EQ(kernel.name, "_ZN1t5scaleILi128EEEvNS_6ParamsE");
    KW_EXPECT(kernel.code.size() > 1000 && std::memcmp(kernel.code.data(), "\177ELF", 4) == 0);
  }

  // A GPU that this NVRTC does not know: an older one of its family, else PTX; too old: a sentence.
  Nvrtc pretended = compiler;
  pretended.archs = {75, 80, 86, 90};
  KW_EXPECT_EQ(target_for(pretended, 86).arch, 86);
  KW_EXPECT(!target_for(pretended, 86).ptx);
  KW_EXPECT_EQ(target_for(pretended, 89).arch, 86);
  KW_EXPECT(!target_for(pretended, 89).ptx);
  KW_EXPECT_EQ(target_for(pretended, 120).arch, 90);
  KW_EXPECT(target_for(pretended, 120).ptx);
  KW_EXPECT_THROWS(target_for(pretended, 70), "sm_70 is not supported; Kernelwright needs sm_75");
  pretended.archs = {80, 90};
  KW_EXPECT_THROWS(target_for(pretended, 75), "compiles for sm_80 and newer, but the GPU is sm_75");
  CompiledKernel ptx = compile(compiler, sources, "t::scale<64>", {90, true});
  KW_EXPECT(ptx.code.find(".target sm_90") != std::string::npos);
  KW_EXPECT_EQ(ptx.code.back(), '\0');  // the driver reads it as a C string

  // What does not compile says which kernel, which file and which line; then all goes on.
  KW_EXPECT_THROWS(compile(compiler, two_files("2.0f * u"), "t::scale<128>", {90, false}),
                   "the kernel t::scale<128> of t/scale.cuh does not compile for sm_90");
  KW_EXPECT_THROWS(compile(compiler, two_files("2.0f * u"), "t::scale<128>", {90, false}),
                   "t/word.cuh(2): error: identifier \"u\" is undefined");
  KW_EXPECT_THROWS(compile(compiler, sources, "t::scael<128>", {90, false}), "scael");
  KW_EXPECT_THROWS(compile(compiler, source_set_of_text("t/a.cuh", "#include \"t/b.cuh\"\n"), "f", {90, false}), "t/a.cuh(1)");
  KW_EXPECT_EQ(compile(compiler, sources, "t::scale<128>", {90, false}).name, "_ZN1t5scaleILi128EEEvNS_6ParamsE");
  return kw::test::finish();
}
