// The access report on kernels of known cost: sectors and wavefronts a request, against the fewest that would do; traffic; places; and that
// what a room states about its kernels fails when it is not so.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "testing/access.h"
#include "testing/expect.h"
#include "tests/cpp/emulator_fixture.h"

namespace {
using kw::test::AccessReport;
using kw::test::AccessSite;

struct Case {
  const char *kernel, *what;
  int64_t requests, lanes, pieces, least;  // of one warp: over all its requests
};
const Case cases[] = {
    {"coalesced", "global load", 1, 32, 4, 4},        {"coalesced", "global store", 1, 32, 4, 4},
    {"stride_2", "global load", 1, 32, 8, 4},         {"stride_32", "global load", 1, 32, 32, 4},
    {"one_off", "global load", 1, 32, 5, 4},          {"broadcast", "global load", 1, 32, 1, 1},
    {"backwards", "global load", 1, 32, 4, 4},        {"float2s", "global load", 1, 32, 8, 8},
    {"float4s", "global load", 1, 32, 16, 16},        {"float4s", "global store", 1, 32, 16, 16},
    {"bytes", "global store", 1, 32, 1, 1},           {"odd_lanes", "global load", 1, 16, 4, 2},
    {"eight_rows", "global load", 8, 256, 32, 32},    {"read_twice", "global load", 2, 64, 8, 8},
    {"leave_early", "global load", 4, 96, 16, 12},    {"add_to_one", "global atomic", 1, 32, 1, 1},
    {"of_variable", "global store", 2, 64, 8, 8},     {"shared_row", "shared store", 1, 32, 1, 1},
    {"shared_column", "shared store", 1, 32, 32, 1},  {"shared_padded", "shared store", 1, 32, 1, 1},
    {"shared_stride_2", "shared store", 1, 32, 2, 1}, {"shared_bytes", "shared store", 1, 32, 1, 1},
    {"shared_doubles", "shared store", 1, 32, 2, 2},  {"shared_doubles_stride_2", "shared store", 1, 32, 4, 2},
    {"shared_float4s", "shared store", 1, 32, 4, 4},  {"shared_float4s_stride_2", "shared store", 1, 32, 8, 4},
    {"shared_broadcast", "shared load", 1, 32, 1, 1}, {"shared_double_pairs", "shared load", 1, 32, 1, 1},
    {"shared_atomic", "shared atomic", 1, 32, 1, 1},  {"shared_float4_pairs", "shared load", 1, 32, 2, 2},
    {"copy_async", "copy from global", 1, 16, 8, 8},  {"copy_async", "copy to shared", 1, 32, 4, 4},
    {"copy_bulk", "bulk load", 1, 1, 16, 16},
};

std::string kernels_text() {
  std::ifstream f(KW_SOURCE_DIR "/tests/cpp/emulator_access_kernels.cuh");
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

struct Kernels {
  emu::Program program{kernels_text()};
  emu::Library library{program};
  emu::Buffer<float> x{std::vector<float>(1024, 1.f)}, y{1024};
  emu::Buffer<unsigned> counter{std::vector<unsigned>(1, 0u)};

  AccessReport report(const std::string& kernel, unsigned blocks = 1) {
    emu::function<void()>("kwemu_clear_access")();
    KW_EXPECT_EQ(emu::launch(library.kernel(kernel), blocks, 32, 0, x.at, y.at, counter.at), CUDA_SUCCESS);
    return name(kw::test::read_access(emu::library()));
  }
  AccessReport name(AccessReport r) const {  // as observe_access does for a call's tensors
    for (auto& b : r.buffers) b.name = b.at == (void*)x.at ? "x" : b.at == (void*)y.at ? "y" : b.name;
    return r;
  }
};

AccessSite sum(const AccessReport& report, const std::string& what) {
  AccessSite all;
  for (const AccessSite& s : report.sites)
    if (s.what == what) {
      all.requests += s.requests, all.lanes += s.lanes, all.pieces += s.pieces, all.least += s.least, all.dropped += s.dropped;
    }
  return all;
}

void costs(Kernels& kernels) {
  for (const char* schedule : {"inorder", "reverse", "shuffle", "greedy"}) {
    emu::set("schedule", schedule);
    for (const Case& c : cases)
      for (unsigned blocks : {1u, 3u}) {
        emu::set("detect", blocks == 1 ? "1" : "0");  // the blocks all write the same elements
        const AccessSite s = sum(kernels.report(c.kernel, blocks), c.what);
        const std::string name = std::string(c.kernel) + ", " + schedule + ": " + c.what + " ";
        const auto same = [&](const char* what, int64_t got, int64_t want) {
          KW_EXPECT_EQ(name + what + " " + std::to_string(got), name + what + " " + std::to_string(want * blocks));
        };
        same("requests", s.requests, c.requests);
        same("lanes", s.lanes, c.lanes);
        same("pieces", s.pieces, c.pieces);
        same("least", s.least, c.least);
        same("dropped", s.dropped, 0);
      }
  }
  emu::set("schedule", "inorder");
  emu::set("detect", "1");
}

void traffic(Kernels& kernels) {
  const auto of = [](const AccessReport& r, const std::string& name) {
    return *std::find_if(r.buffers.begin(), r.buffers.end(), [&](auto& b) { return b.name == name; });
  };
  const AccessReport twice = kernels.report("read_twice");
  KW_EXPECT_EQ(of(twice, "x").read, 256);
  KW_EXPECT_EQ(of(twice, "x").written, 0);
  KW_EXPECT_EQ(of(twice, "y").written, 128);
  KW_EXPECT_EQ(of(twice, "x").times_read(), 256.0 / 4096);
  KW_EXPECT_EQ(of(kernels.report("stride_32"), "x").read_sectors, 32);
  KW_EXPECT_EQ(of(kernels.report("stride_32"), "x").read, 128);
  KW_EXPECT_EQ(of(kernels.report("of_variable"), "variable kept").times_written(), 1.0);
  KW_EXPECT_EQ(of(kernels.report("copy_bulk"), "x").read, 512);
  const AccessSite endless = sum(kernels.report("for_long"), "global load");
  KW_EXPECT_EQ(endless.requests, 32768);
  KW_EXPECT_EQ(endless.dropped, (40000 - 32768) * 32);
  // Launches add up, and the multiple is of one launch.
  kernels.report("eight_rows");
  emu::launch(kernels.library.kernel("eight_rows"), 1, 32, 0, kernels.x.at, kernels.y.at, kernels.counter.at);
  const AccessReport both = kernels.name(kw::test::read_access(emu::library()));
  KW_EXPECT_EQ(of(both, "x").launches, 2);
  KW_EXPECT_EQ(of(both, "x").times_read(), 0.25);
}

void places(Kernels& kernels) {
  const std::string text = kernels_text();
  const auto line = [&](const char* code) {
    return "folder/test.cu:" + std::to_string(std::count(text.begin(), text.begin() + (long)text.find(code), '\n') + 1);
  };
  const AccessReport r = kernels.report("through_functions");
  const auto load = std::find_if(r.sites.begin(), r.sites.end(), [](auto& s) { return s.what == "global load"; });
  if (!KW_EXPECT(load != r.sites.end())) return;
  KW_EXPECT_EQ(load->kernel, "through_functions");
  KW_EXPECT_EQ(load->bytes, 4);
  if (KW_EXPECT_EQ(load->frames.size(), 3u)) {
    KW_EXPECT_EQ(load->frames[0], line("return p[lane()]"));
    KW_EXPECT_EQ(load->frames[1], line("return 2 * inner"));
    KW_EXPECT_EQ(load->frames[2], line("y[lane()] = outer"));
  }
  AccessSite word{.frames = {"kw/device/vector.cuh:66", "kw/device/row.cuh:8", "kw/ops/a/a.cuh:7", "kw/ops/a/a.cuh:90"}};
  KW_EXPECT_EQ(word.place(), "kw/ops/a/a.cuh:7");  // device words are not where a reader looks
}

void faults(Kernels& kernels) {
  const auto said = [&](const std::string& kernel, std::vector<kw::test::Traffic> stated) {
    std::string all;
    for (const std::string& fault : kw::test::access_faults(kernels.report(kernel), stated)) all += fault + "\n";
    return all;
  };
  const auto has = [](const std::string& text, const char* part) {
    return KW_EXPECT(text.find(part) != text.npos) || (std::cerr << text, false);
  };
  const double once = 1.0 / 32;  // of buffers of 4 KB
  KW_EXPECT_EQ(said("coalesced", {{"x", once}, {"y", 0, once}}), "");
  KW_EXPECT_EQ(said("float4s", {{"x", 4 * once}, {"y", 0, 4 * once}}), "");
  has(said("read_twice", {{"x", once}, {"y", 0, once}}), "x is read 0.0625 times, not 0.03125\n");
  has(said("coalesced", {{"x", once}}), "y is written 0.03125 times, not 0\n");
  has(said("coalesced", {{"x", once}, {"y", 0, once}, {"weight", 1}}), "weight is read 0 times, not 1\n");
  has(said("stride_2", {{"x", once}, {"y", 0, once}}), "8 sectors a request where 4 would do\n");
  has(said("one_off", {{"x", once}, {"y", 0, once}}), "global load at folder/test.cu:");
  has(said("for_long", {{"x", 32768 * once}, {"y", 0, once}}), "231424 accesses were not counted\n");
  has(said("shared_column", {{"y", 0, once}}), "32 wavefronts a request where 1 would do\n");
  KW_EXPECT_EQ(said("shared_padded", {{"y", 0, once}}), "");
}
}  // namespace

int main() {
  emu::start();
  Kernels kernels;
  KW_EXPECT_EQ(kernels.program.log, "");
  if (!kernels.library.kernel("coalesced")) return kw::test::finish();
  KW_EXPECT(kernels.report("coalesced").sites.empty());  // nothing is counted unless asked
  KW_EXPECT_EQ(emu::set("access", "1"), 0);
  costs(kernels);
  traffic(kernels);
  places(kernels);
  faults(kernels);
  KW_EXPECT_EQ(emu::report_count(), 0);
  emu::set("access", "0");
  return kw::test::finish();
}
