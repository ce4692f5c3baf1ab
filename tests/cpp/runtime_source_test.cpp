// Source sets: everything that a kernel includes, and keys that change with every text of it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kw/core/error.h"
#include "kw/core/op.h"
#include "kw/core/rooms.h"
#include "kw/runtime/nvrtc.h"
#include "testing/expect.h"

namespace fs = std::filesystem;
using namespace kw;

static void spit(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

static std::string names(const SourceSet& set) {
  std::string out;
  for (const auto& file : set.files) out += file.path + " ";
  return out;
}

int main() {
  char temporary[] = "/tmp/kw_source_test_XXXXXX";
  fs::path root = mkdtemp(temporary);
  spit(root / "t/a.cuh",
       "#pragma once\n  #  include \"t/b.cuh\"\n#if 0\n#include \"t/c.cuh\"\n#endif\n#include <math.h>\n#include \"t/nowhere.cuh\"\nint "
       "a;\n");
  spit(root / "t/b.cuh", "#include \"t/a.cuh\"\n#include \"t/d.cuh\"");  // a circle; the last line has no end
  spit(root / "t/c.cuh", "int c;\n");
  spit(root / "t/d.cuh", "");
  spit(root / "t/unused.cuh", "int unused;\n");
  set_kernel_path(root);

  auto first = source_set("t/a.cuh");
  KW_EXPECT_EQ(names(*first), "t/a.cuh t/b.cuh t/c.cuh t/d.cuh ");
  KW_EXPECT_THROWS(source_set("t/missing.cuh"), "t/missing.cuh is not in the library, nor below KW_KERNEL_PATH=/tmp/kw_source_test_");

  // An edit two includes deep, of the same length, seen at once: however soon after the first reading it comes.
  spit(root / "t/d.cuh", "//1");
  auto second = source_set("t/a.cuh");
  KW_EXPECT(second->digest != first->digest);
  for (int i = 0; i < 20; i++) {
    auto before = source_set("t/a.cuh");
    spit(root / "t/d.cuh", i % 2 ? "//1" : "//2");
    KW_EXPECT(!is_current(*before));
    KW_EXPECT(source_set("t/a.cuh")->digest != before->digest);
  }
  KW_EXPECT(source_set("t/a.cuh")->digest == second->digest);  // "//1" again: named by content
  auto settled = source_set("t/a.cuh");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  settled = source_set("t/a.cuh");
  KW_EXPECT(is_current(*settled));
  KW_EXPECT_EQ(source_set("t/a.cuh").get(), settled.get());  // nothing changed: not read again
  spit(root / "t/unused.cuh", "int other;\n");
  KW_EXPECT(is_current(*settled));

  // The key holds texts, paths, expression, options and compiler.
  Nvrtc compiler, newer;
  compiler.identity = "nvrtc 13.0", newer.identity = "nvrtc 13.1";
  const SourceSet text = source_set_of_text("t/a.cuh", "int a;");
  const Digest key = kernel_key(compiler, text, "f<1>", {90, false});
  KW_EXPECT(key == kernel_key(compiler, source_set_of_text("t/a.cuh", "int a;"), "f<1>", {90, false}));
  KW_EXPECT(key != kernel_key(compiler, source_set_of_text("t/a.cuh", "int b;"), "f<1>", {90, false}));
  KW_EXPECT(key != kernel_key(compiler, source_set_of_text("t/b.cuh", "int a;"), "f<1>", {90, false}));
  KW_EXPECT(key != kernel_key(compiler, text, "f<2>", {90, false}));
  KW_EXPECT(key != kernel_key(compiler, text, "f<1>", {80, false}));
  KW_EXPECT(key != kernel_key(compiler, text, "f<1>", {90, true}));
  KW_EXPECT(key != kernel_key(newer, text, "f<1>", {90, false}));

  // A copy of our own device words below KW_KERNEL_PATH: an edit to a word changes the key of the kernel that uses it. Files that are
  // not there come from the library.
  fs::remove_all(root);
  KW_EXPECT_THROWS(source_set("t/a.cuh"), "which is not a folder that can be read");  // lest a typo seem a checked edit
  fs::create_directories(root / "t/a.cuh");
  KW_EXPECT_THROWS(source_set("t/a.cuh"), "t/a.cuh (of KW_KERNEL_PATH) is not a regular file");
  for (const kw_source* s = kw_device_sources; s->path; s++) {
    set_kernel_path("");
    auto embedded = source_set(s->path);
    set_kernel_path(root);
    KW_EXPECT(source_set(s->path)->digest == embedded->digest);
    spit(root / s->path, std::string(s->text) + "\n");
    KW_EXPECT(source_set(s->path)->digest != embedded->digest);
    KW_EXPECT(source_set(s->path)->files[0].on_disk);
    fs::remove(root / s->path);
    KW_EXPECT(source_set(s->path)->digest == embedded->digest);
  }
  fs::remove_all(root);
  return kw::test::finish();
}
