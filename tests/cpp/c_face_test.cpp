#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "faces/c/kernelwright.h"
#include "testing/expect.h"
#include "tests/cpp/rooms_for_tests.h"

using namespace kw;

namespace {

// y = x * factor; throws what a room may throw.
void scale(const Call& c) {
  if (c.attr("factor") == 13) throw std::runtime_error("thirteen");
  if (c.attr("factor") == 14) throw 14;
  if (c.attr("factor") == 15) throw Error(KW_ERROR_UNSUPPORTED, "face_scale: fifteen is not supported");
  const auto* x = static_cast<const float*>(c.data("x"));
  auto* y = static_cast<float*>(c.data("y"));
  for (int64_t i = 0; i < c.dim("N"); i++) y[i] = x[i] * static_cast<float>(c.attr("factor"));
}

struct Scale {
  float x[4] = {1, 2, 3, 4}, y[4] = {-1, -1, -1, -1};
  int64_t sizes[1] = {4}, strides[1] = {1};
  kw_tensor tensors[2] = {{x, sizes, strides, 1, KW_F32, KW_CPU, 0}, {y, sizes, strides, 1, KW_F32, KW_CPU, 0}};
  kw_argument input{&tensors[0], 1}, result{&tensors[1], 1};
  kw_attribute factor{.f = 2};
  kw_call call{&input, &result, &factor, nullptr};
  int run() const { return kw_run(kw_op_find("face_scale"), &call); }
  bool untouched() const { return y[0] == -1 && y[1] == -1 && y[2] == -1 && y[3] == -1; }
};

void test_look_up() {
  const kw_op* op = kw_op_find("face_scale");
  KW_EXPECT(op && kw_op_at(kw_op_index(op)) == op && kw_op_count() > kw_op_index(op));
  KW_EXPECT_EQ(std::string(kw_op_signature(op)->attributes[0]), "factor");
  KW_EXPECT(!kw_op_find("nowhere") && !kw_op_find(nullptr) && !kw_op_at(-1) && !kw_op_at(kw_op_count()));
  KW_EXPECT(kw_op_index(nullptr) == -1 && !kw_op_signature(nullptr) && kw_op_calls(nullptr) == 0);
  KW_EXPECT(std::string_view(kw_version()).find('.') != std::string_view::npos);
}

void test_run() {
  Scale s;
  const kw_op* op = kw_op_find("face_scale");
  KW_EXPECT_EQ(kw_op_calls(op), 0u);
  KW_EXPECT_EQ(s.run(), KW_OK);
  KW_EXPECT(s.y[0] == 2 && s.y[3] == 8);
  KW_EXPECT_EQ(kw_op_calls(op), 1u);
  kw_spec specs[1];
  Scale unknown;
  unknown.tensors[0].data = nullptr;
  unknown.call.results = nullptr;
  KW_EXPECT_EQ(kw_infer(op, &unknown.call, specs), KW_OK);
  KW_EXPECT(specs[0].present == 1 && specs[0].dtype == KW_F32 && specs[0].rank == 1 && specs[0].sizes[0] == 4);
  KW_EXPECT_EQ(kw_op_calls(op), 1u);
}

void test_errors() {
  KW_EXPECT_EQ(std::string(kw_last_error()), "");
  KW_EXPECT_EQ(kw_last_error_status(), KW_OK);
  Scale s;
  s.factor.f = -1;
  KW_EXPECT_EQ(s.run(), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(std::string(kw_last_error()), "face_scale: factor is -1, but must be >= 0");
  KW_EXPECT_EQ(kw_last_error_status(), KW_ERROR_ARGUMENT);
  std::thread([] { KW_EXPECT_EQ(std::string(kw_last_error()), ""); }).join();  // of this thread
  s.factor.f = 15;
  KW_EXPECT_EQ(s.run(), KW_ERROR_UNSUPPORTED);
  KW_EXPECT_EQ(std::string(kw_last_error()), "face_scale: fifteen is not supported");
  s.factor.f = 13;
  KW_EXPECT_EQ(s.run(), KW_ERROR_INTERNAL);
  KW_EXPECT(std::string(kw_last_error()).find("thirteen") != std::string::npos);
  s.factor.f = 14;
  KW_EXPECT_EQ(s.run(), KW_ERROR_INTERNAL);
  s.factor.f = 2;
  s.tensors[1].dtype = KW_F64;
  KW_EXPECT_EQ(s.run(), KW_ERROR_ARGUMENT);
  KW_EXPECT(s.untouched());
  KW_EXPECT_EQ(kw_op_calls(kw_op_find("face_scale")), 1u);

  kw_spec spec;
  KW_EXPECT_EQ(kw_run(nullptr, &s.call), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(kw_run(kw_op_find("face_scale"), nullptr), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(kw_infer(kw_op_find("face_scale"), &s.call, nullptr), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(kw_infer(nullptr, &s.call, &spec), KW_ERROR_ARGUMENT);
  kw_call empty{};
  KW_EXPECT_EQ(kw_run(kw_op_find("face_scale"), &empty), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(kw_register_room(nullptr), KW_ERROR_CONTRACT);
  // A text longer than the buffer is cut, not overrun.
  KW_EXPECT_EQ(kw_load_library(std::string(5000, 'x').c_str()), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(std::strlen(kw_last_error()), sizeof(kw_message::text) - 1);
}

void test_needs_copy() {
  const kw_op* op = kw_op_find("face_rows");
  int64_t sizes[] = {3, 4}, rows[] = {9, 1}, columns[] = {1, 3};
  kw_tensor t{nullptr, sizes, rows, 2, KW_F32, KW_CPU, 0};
  KW_EXPECT_EQ(kw_needs_copy(op, 0, &t), 0);
  KW_EXPECT_EQ(kw_needs_copy(op, 1, &t), 1);  // there the whole tensor is one row
  t.strides = columns;
  KW_EXPECT_EQ(kw_needs_copy(op, 0, &t), 1);
  KW_EXPECT_EQ(kw_needs_copy(op, 2, &t), -1);
  KW_EXPECT_EQ(kw_needs_copy(op, -1, &t), -1);
  KW_EXPECT_EQ(kw_needs_copy(nullptr, 0, &t), -1);
  KW_EXPECT_EQ(kw_needs_copy(op, 0, nullptr), -1);
  t.rank = 9;
  KW_EXPECT_EQ(kw_needs_copy(op, 0, &t), -1);
  t.rank = 2, t.sizes = nullptr;
  KW_EXPECT_EQ(kw_needs_copy(op, 0, &t), -1);
}

// Somebody else's library, built by itself from the headers alone.
std::string build(const char* name, const std::string& text) {
  const std::string base = std::string(KW_BINARY_DIR) + "/" + name, source = base + ".cpp", library = base + ".so";
  std::ofstream(source) << text;
  const std::string command = "c++ -std=c++20 -shared -fPIC -I'" KW_SOURCE_DIR "' -o '" + library + "' '" + source + "'";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("a library for the test does not build: " + command);
  return library;
}

std::string user_room(const std::string& name, const std::string& contract, const std::string& edit = "") {
  return "#include \"kw/core/room.h\"\nusing namespace kw;\n"
         "static void choose(const Problem&, const kw_device_facts&, Choice&) {}\n"
         "static void fill(const Call&, const kw_device_facts&, const kw_choice&, Launches&) {}\n"
         "static void cpu(const Call& c) { *static_cast<float*>(c.data(\"y\")) = static_cast<float>(c.dim(\"N\")); }\n"
         "static const kw_op_def op = make_op<choose, fill, cpu, cpu>(\"" +
         contract +
         "\");\n"
         "extern \"C\" const kw_source kw_room_" +
         name + "_sources[] = {{\"" + name +
         "/a.cuh\", \"// text\"}, {nullptr, nullptr}};\n"
         "KW_ROOM(" +
         name + ", &op);\n" + edit +
         "extern \"C\" const kw_room* const* kw_rooms(int32_t* count) {\n"
         "  static const kw_room* const rooms[] = {&kw_room_" +
         name + "};\n  *count = 1;\n  return rooms;\n}\n";
}

void test_load_library() {
  const int32_t before = kw_op_count();
  KW_EXPECT_EQ(kw_load_library(nullptr), KW_ERROR_ARGUMENT);
  KW_EXPECT_EQ(kw_load_library("/nowhere/at/all.so"), KW_ERROR_ARGUMENT);
  KW_EXPECT(std::string(kw_last_error()).find("/nowhere/at/all.so cannot be loaded") == 0);
  KW_EXPECT_EQ(kw_load_library("libm.so.6"), KW_ERROR_CONTRACT);
  KW_EXPECT(std::string(kw_last_error()).find("exports no kw_rooms") != std::string::npos);
  KW_EXPECT_EQ(kw_load_library(build("user_bad", user_room("user_bad", "user_bad(x: f32[N) -> y: f32[]")).c_str()), KW_ERROR_CONTRACT);
  KW_EXPECT(std::string(kw_last_error()).find("expected ']'") != std::string::npos);
  KW_EXPECT_EQ(kw_load_library(build("user_none", "extern \"C\" const void* const* kw_rooms(int* n) { *n = 0; return nullptr; }").c_str()),
               KW_ERROR_CONTRACT);
  KW_EXPECT_EQ(kw_op_count(), before);
  const char* old_manifest = kw_manifest();
  const std::string old_text = old_manifest;

  const std::string good = build("user_good", user_room("user_good", "user_count(x: f32[N]) -> y: f32[]"));
  KW_EXPECT_EQ(kw_load_library(good.c_str()), KW_OK);
  KW_EXPECT_EQ(kw_load_library(good.c_str()), KW_OK);  // again: nothing to do
  KW_EXPECT_EQ(kw_op_count(), before + 1);
  Scale s;
  s.tensors[1].rank = 0;
  KW_EXPECT_EQ(kw_run(kw_op_find("user_count"), &s.call), KW_OK);
  KW_EXPECT_EQ(s.y[0], 4.0f);
  KW_EXPECT_EQ(std::string(old_manifest), old_text);  // a manifest handed out stays good
  KW_EXPECT(std::string(kw_manifest()).find("\"name\": \"user_count\", \"room\": \"user_good\"") != std::string::npos);
  KW_EXPECT(kw_manifest() == kw_manifest());
}

// An interrupted copy is refused at whatever byte it ends. (The system's loader maps what is missing, and dies touching it.)
void test_a_library_cut_short() {
  const std::string whole = build("user_cut", user_room("user_cut", "user_cut(x: f32[N]) -> y: f32[]")), cut = whole + ".part";
  std::filesystem::copy_file(whole, cut, std::filesystem::copy_options::overwrite_existing);
  const int32_t before = kw_op_count();
  const auto size = static_cast<int64_t>(std::filesystem::file_size(whole));
  int wrong = 0, named = 0;
  for (int64_t length = size - 1; length >= 0; length = length > size - 8 || length < 8 ? length - 1 : length * 15 / 16) {
    std::filesystem::resize_file(cut, static_cast<uintmax_t>(length));
    wrong += kw_load_library(cut.c_str()) != KW_ERROR_ARGUMENT || std::string(kw_last_error()).find(cut + " cannot be loaded: ") != 0;
    named += std::string(kw_last_error()).find("the file is cut short, it has " + std::to_string(length) + " bytes") != std::string::npos;
  }
  KW_EXPECT_EQ(wrong, 0);
  KW_EXPECT(named > 40);  // down to where there is no ELF header
  KW_EXPECT_EQ(kw_op_count(), before);
  KW_EXPECT_EQ(kw_load_library(whole.c_str()), KW_OK);
}

}  // namespace

int main() {
  auto& room = test::make_room<scale>("face", {"face_scale(x: f32[N], *, factor: float >= 0) -> y: f32[N]"});
  KW_EXPECT_EQ(kw_register_room(&room.room), KW_OK);
  auto& rows = test::make_room("face_rows", {"face_rows(x: f32[*B, N], z: f32[M, N]) -> y: f32[*B, N]"});
  KW_EXPECT_EQ(kw_register_room(&rows.room), KW_OK);
  test_look_up();
  test_run();
  test_errors();
  test_needs_copy();
  test_load_library();
  test_a_library_cut_short();
  for (int n : {-1, 3, 0}) kw_set_threads(n);
  return test::finish();
}
