// Packs, end to end on the emulator: found, used in place of a compile, refused with a sentence, and never hiding an edit.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "kw/core/log.h"
#include "kw/runtime/device.h"
#include "kw/runtime/device_buffer.h"
#include "kw/runtime/dispatch.h"
#include "kw/runtime/kernel_cache.h"
#include "kw/runtime/library.h"
#include "kw/runtime/packs.h"
#include "testing/expect.h"
#include "tests/cpp/runtime_test_room.h"

namespace fs = std::filesystem;
using namespace kw;
using test_room::Attributes;
using test_room::TestCall;

static std::vector<std::string> warnings;
static CacheCounts before;  // the parent compiled what it packs
static uint64_t compiled() { return cache_counts().compiled - before.compiled; }
static const char* const expression = "test::axpby<float, 128>";

static std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
static void spit(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// z = 2 x + 1 y on the emulator; true when all is right. `sign` is what an edited kernel makes of y.
static bool call_is_right(float sign = 1) {
  constexpr size_t n = 64;
  std::vector<float> x(n, 3), y(n, 5), z(n, 0);
  DeviceBuffer dx(0, n * 4), dy(0, n * 4), dz(0, n * 4);
  dx.upload(x.data(), n * 4), dy.upload(y.data(), n * 4);
  execute(TestCall(dx.data(), dy.data(), dz.data(), {2, 32}, {.a = 2}, KW_CUDA).bound);
  check(driver(), driver().cuStreamSynchronize(nullptr), "waiting");
  dz.download(z.data(), n * 4);
  for (float v : z)
    if (v != 6 + sign * 5) return false;
  return true;
}

// What a fresh process with KW_PACK=path finds: its exit status is the number of the check that failed.
static int in_a_child(const fs::path& pack, const std::function<int()>& body) {
  before = cache_counts();
  const pid_t child = fork();
  if (child == 0) {
    setenv("KW_PACK", pack.c_str(), 1);
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    for (const std::string& w : warnings) std::fprintf(stderr, "(warned: %s)\n", w.c_str());
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

// A call comes from the pack, silently, and nothing is compiled.
static int comes_from_the_pack() {
  if (!call_is_right()) return 1;
  deliver_warnings();
  return cache_counts().pack == 1 && compiled() == 0 && warnings.empty() ? 0 : 2;
}

// A call is right all the same, compiled, and one warning says `part`.
static int compiles_and_says(const std::string& part) {
  if (!call_is_right()) return 1;
  deliver_warnings();
  if (cache_counts().pack != 0 || compiled() != 1) return 2;
  return warnings.size() == 1 && warnings[0].find(part) != std::string::npos ? 0 : 3;
}

struct PackFile {
  PackHeader header;
  std::vector<PackedKernel> kernels;
  void write(const fs::path& path) const { write_pack(path.string(), header, kernels); }
};

static PackFile make_pack() {
  PackFile file;
  file.header.emulator = 1;
  file.header.compiler_major = static_cast<uint32_t>(nvrtc().major);
  std::snprintf(file.header.compiler, sizeof file.header.compiler, "%s", nvrtc().identity.c_str());
  const auto sources = source_set("test/axpby.cuh");
  for (const char* name : {expression, "test::axpby<double, 64>"})
    file.kernels.push_back({name, 90, pack_key(*sources, name, 90), sources->digest, find_code(*sources, name, 90, true)});
  return file;
}

// Header fields changed, and the checksum made to fit: what a pack of another version looks like.
static void rewrite(const fs::path& from, const fs::path& to, const std::function<void(PackHeader&)>& change) {
  std::string text = slurp(from);
  PackHeader header;
  std::memcpy(&header, text.data(), sizeof header);
  change(header);
  header.content = {};
  Sha256 sha;
  sha.update(&header, sizeof header);
  sha.update(text.data() + sizeof header, header.kernel_count * sizeof(PackEntry));
  header.content = sha.finish();
  std::memcpy(text.data(), &header, sizeof header);
  spit(to, text);
}

static void files(const fs::path& root, const PackFile& file) {
  const fs::path good = root / "good.pack", bad = root / "bad.pack";
  file.write(good);
  const std::string text = slurp(good);
  {
    const Pack pack(good.string());
    KW_EXPECT_EQ(pack.entries().size(), 2u);
    KW_EXPECT_EQ(pack.archs_text(), "sm_90");
    const PackEntry* entry = find_in_pack(pack, *source_set("test/axpby.cuh"), expression, 90);
    KW_EXPECT(entry && pack.read(*entry) && pack.read(*entry)->expression == expression);
    KW_EXPECT(!find_in_pack(pack, *source_set("test/axpby.cuh"), expression, 80));
    KW_EXPECT(!find_in_pack(pack, *source_set("test/axpby.cuh"), expression, 100));
    KW_EXPECT(!find_in_pack(pack, source_set_of_text("test/axpby.cuh", "edited"), expression, 90));
  }
  // Cut anywhere, and every byte of header and index changed: refused. Behind them: that kernel alone is not read.
  const size_t index_end = sizeof(PackHeader) + 2 * sizeof(PackEntry);
  for (size_t length = 0; length < text.size(); length += length < index_end ? 7 : 997) {
    spit(bad, text.substr(0, length));
    KW_EXPECT_THROWS(Pack(bad.string()), "bad.pack ");
  }
  for (size_t at = 0; at < index_end; at++) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    spit(bad, changed);
    KW_EXPECT_THROWS(Pack(bad.string()), "bad.pack ");
  }
  for (size_t at = index_end; at < text.size(); at += 4999) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    spit(bad, changed);
    const Pack pack(bad.string());
    int unreadable = 0;
    for (const PackEntry& e : pack.entries()) unreadable += !pack.read(e);
    KW_EXPECT_EQ(unreadable, 1);
  }
  spit(bad, "MZ, a file of somebody else");
  KW_EXPECT_THROWS(Pack(bad.string()), "is no pack of Kernelwright");
  KW_EXPECT_THROWS(Pack((root / "none.pack").string()), "cannot be read: No such file or directory");
  KW_EXPECT_THROWS(Pack(root.string()), "is not a file");
  fs::remove(bad);
  KW_EXPECT_EQ(mkfifo(bad.c_str(), 0600), 0);
  KW_EXPECT_THROWS(Pack(bad.string()), "is not a file");
  fs::remove(bad);
  spit(bad, text);
  chmod(bad.c_str(), 0666);
  KW_EXPECT_THROWS(Pack(bad.string()), "may be written by everybody");
  fs::remove(bad);
  rewrite(good, bad, [](PackHeader& h) { h.format = 2; });
  KW_EXPECT_THROWS(Pack(bad.string()), "has format 2, but this version reads format 1");
  rewrite(good, bad, [](PackHeader& h) { std::strcpy(h.version, "0.0.9"); });
  KW_EXPECT_THROWS(Pack(bad.string()), "was made by Kernelwright 0.0.9, but this is " KW_VERSION);
  KW_EXPECT_THROWS(write_pack((root / "no/such/folder.pack").string(), file.header, file.kernels), "cannot be written: No such file");
}

static void calls(const fs::path& root, const PackFile& file) {
  const fs::path good = root / "good.pack", bad = root / "bad.pack";
  KW_EXPECT_EQ(in_a_child(good, comes_from_the_pack), 0);
  const auto refused = [&](const std::string& part) { return in_a_child(bad, [&] { return compiles_and_says(part); }); };
  spit(bad, slurp(good).substr(0, 5000));
  KW_EXPECT_EQ(refused("is damaged: it has 5000 bytes"), 0);
  rewrite(good, bad, [](PackHeader& h) { std::strcpy(h.version, "0.0.9"); });
  KW_EXPECT_EQ(refused("was made by Kernelwright 0.0.9"), 0);
  rewrite(good, bad, [](PackHeader& h) { std::strcpy(h.compiler, "nvrtc 13.7"); });
  KW_EXPECT_EQ(refused("was made by another build of the emulator"), 0);
  rewrite(good, bad, [](PackHeader& h) { h.emulator = 0; });
  KW_EXPECT_EQ(refused("is for GPUs, but the driver is the emulator"), 0);
  PackFile other = file;
  for (PackedKernel& k : other.kernels) k.arch = 80, k.key = pack_key(*source_set("test/axpby.cuh"), k.expression, 80);
  other.write(bad);
  KW_EXPECT_EQ(refused("holds kernels for sm_80 and none that an sm_90 GPU runs"), 0);
  other = file;
  for (PackedKernel& k : other.kernels) k.kernel.code = "no code at all, with a right checksum";
  other.write(bad);
  KW_EXPECT_EQ(refused("the driver does not load a kernel of the pack"), 0);
  std::string text = slurp(good);
  for (size_t at = sizeof(PackHeader) + 2 * sizeof(PackEntry) + 600; at < text.size(); at += 1000) text[at]++;
  spit(bad, text);
  KW_EXPECT_EQ(refused("the checksum of a kernel does not agree"), 0);
  KW_EXPECT_EQ(in_a_child("0", [] { return call_is_right() && compiled() == 1 && warnings.empty() ? 0 : 1; }), 0);

  // An edit is another kernel; the untouched one still comes from the pack.
  std::string word = test_room::word;
  spit(root / "edited/test/word.cuh", word.replace(word.find("a * x + b * y"), 13, "a * x - b * y"));
  KW_EXPECT_EQ(in_a_child(good,
                          [&] {
                            set_kernel_path((root / "edited").string());
                            if (!call_is_right(-1) || compiled() != 1) return 1;
                            set_kernel_path("");
                            return call_is_right(1) && cache_counts().pack == 1 && compiled() == 1 ? 0 : 2;
                          }),
               0);
  // Beside the library, which is this program here.
  const fs::path beside = fs::path(own_dir()) / "kernelwright.pack";
  KW_EXPECT(!fs::exists(beside));
  fs::copy_file(good, beside);
  KW_EXPECT_EQ(in_a_child("", comes_from_the_pack), 0);
  fs::remove(beside);
  // The plan says where the code is.
  KW_EXPECT_EQ(
      in_a_child(good,
                 [&] {
                   alignas(64) static float x[64], y[64], z[64];
                   const TestCall call(x, y, z, {2, 32}, {.a = 2}, KW_CUDA);
                   if (describe_plan(call.bound, facts_of_arch("sm_90")).find("in the pack " + good.string()) == std::string::npos)
                     return 1;
                   return describe_plan(call.bound, facts_of_arch("sm_80")).find("compiled at the first call") != std::string::npos ? 0 : 2;
                 }),
      0);
}

// Rules that need a GPU's driver: one is pretended.
static void drivers(const fs::path& good, const fs::path& other) {
  const Pack pack(good.string());
  Driver gpu = driver();
  gpu.emulator = false;
  KW_EXPECT(trouble_with(pack, gpu).find("is for the emulator, but the driver is a GPU's") != std::string::npos);
  rewrite(good, other, [](PackHeader& h) { h.emulator = 0, h.compiler_major = 13, std::strcpy(h.compiler, "nvrtc 13.0"); });
  const Pack real(other.string());
  gpu.version = 12080;
  KW_EXPECT(trouble_with(real, gpu).find("was compiled by nvrtc 13.0, but the driver is for CUDA 12.8") != std::string::npos);
  gpu.version = 13000;
  KW_EXPECT_EQ(trouble_with(real, gpu), "");
  KW_EXPECT_EQ(trouble_with(real, 90), "");
  KW_EXPECT(!trouble_with(real, 86).empty() && !trouble_with(real, 100).empty() && !trouble_with(real, 89).empty());
}

int main() {
  for (const char* name : {"KW_DRIVER", "KW_NVRTC", "KW_KERNEL_PATH", "KW_PACK"}) unsetenv(name);
  setenv("KW_CACHE", "0", 1);
  setenv("KW_EMULATOR", KW_BINARY_DIR "/libkwemu.so", 1);
  setenv("KW_DRIVER", "emulator", 1);  // opened by each child for itself
  register_room(&test_room::room);
  set_log([](const char* sentence, void*) { warnings.emplace_back(sentence); }, nullptr);
  char temporary[] = "/tmp/kw_pack_test_XXXXXX";
  const fs::path root = mkdtemp(temporary);
  const PackFile file = make_pack();
  files(root, file);
  calls(root, file);
  drivers(root / "good.pack", root / "bad.pack");
  fs::remove_all(root);
  return kw::test::finish();
}
