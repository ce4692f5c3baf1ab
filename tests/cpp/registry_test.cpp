#include "kw/core/registry.h"

#include <cstdio>
#include <mutex>
#include <thread>

#include "kw/core/error.h"
#include "kw/core/manifest.h"
#include "kw/core/op.h"
#include "testing/expect.h"
#include "tests/cpp/dozen.h"
#include "tests/cpp/rooms_for_tests.h"

using namespace kw;
using test::make_room;
using Room = test::TestRoom;

namespace {

template <class Edit>
void refuse(const char* sentence, Edit&& edit, int line = __builtin_LINE()) {
  Room& r = make_room("spoilt", {"spoilt(x: f32[N]) -> y: f32[N]", "spoilt_too(x: f32[N]) -> y: f32[N]"});
  edit(r);
  size_t before = ops().size();
  try {
    register_room(&r.room);
    test::record(false, __FILE__, line, "registered");
  } catch (const Error& e) {
    test::record(std::string(e.what()).find(sentence) != std::string::npos, __FILE__, line, e.what());
    test::record(e.status() == KW_ERROR_CONTRACT, __FILE__, line, "another status");
  }
  test::record(ops().size() == before && !find_op("spoilt") && !find_op("spoilt_too"), __FILE__, line, "something was added");
}

void test_registration() {
  const size_t before = ops().size();
  Room& r = make_room(
      "norms", {"first(x: T[*B, N], w: f32[N]?, *, eps: float = 1) -> y: T[*B, N] where T: f32 bf16", "second(x: f32[N]) -> y: f32[N]"},
      {{"norms/first.cuh", "struct Params {};"}});
  register_room(&r.room);
  KW_EXPECT_EQ(ops().size(), before + 2);
  const Op* op = find_op("first");
  KW_EXPECT(op && op == &get_op("first") && op == ops()[before]);
  KW_EXPECT_EQ(op->index, static_cast<int>(before));
  KW_EXPECT(op->room == &r.room && op->def == &r.defs[0]);
  const kw_signature& s = op->signature;
  KW_EXPECT_EQ(std::string(s.name), "first");
  KW_EXPECT(s.input_count == 2 && s.result_count == 1 && s.attribute_count == 1 && s.dim_count == 2 && s.type_count == 1);
  KW_EXPECT_EQ(std::string(s.inputs[1]), "w");
  KW_EXPECT_EQ(std::string(s.results[0]), "y");
  KW_EXPECT_EQ(std::string(s.attributes[0]), "eps");
  KW_EXPECT_EQ(std::string(s.dims[1]), "N");
  KW_EXPECT_EQ(std::string(s.types[0]), "T");
  KW_EXPECT_EQ(std::string(find_source("norms/first.cuh")->text), "struct Params {};");
  KW_EXPECT(!find_source("norms/second.cuh") && !find_op("third"));
  KW_EXPECT_THROWS(get_op("third"), "there is no op 'third'; there are: ");
  register_room(&r.room);  // again: nothing to do
  KW_EXPECT_EQ(ops().size(), before + 2);
}

void test_refusals() {
  KW_EXPECT_THROWS(register_room(nullptr), "the room is null");
  refuse("smaller kw_room (8 bytes", [](Room& r) { r.room.struct_size = 8; });
  refuse("built for ABI version 1, but this library has 2", [](Room& r) { r.room.abi_version = 1; });
  refuse("a room has no name", [](Room& r) { r.room.name = nullptr; });
  refuse("the name of the room 'Spoilt Room' must be lower-case", [](Room& r) { r.room.name = "Spoilt Room"; });
  refuse("there is a room norms already", [](Room& r) { r.room.name = "norms"; });
  refuse("has no ops", [](Room& r) { r.room.op_count = 0; });
  refuse("has no ops", [](Room& r) { r.room.ops = nullptr; });
  refuse("op 1 of the room spoilt is null", [](Room& r) { r.ops[1] = nullptr; });
  refuse("op 1 of the room spoilt was built for a smaller kw_op_def", [](Room& r) { r.defs[1].struct_size = 4; });
  refuse("op 1 of the room spoilt was built for ABI version 7", [](Room& r) { r.defs[1].abi_version = 7; });
  refuse("op 1 of the room spoilt has no contract", [](Room& r) { r.defs[1].contract = nullptr; });
  refuse("spoilt_too: the room gives no function 'cpu'", [](Room& r) { r.defs[1].cpu = nullptr; });
  refuse("spoilt_too: the room gives no bench cases", [](Room& r) { r.defs[1].bench_count = 1; });
  refuse("expected ']'", [](Room& r) { r.defs[1].contract = "spoilt_too(x: f32[N"; });
  refuse("first: the room spoilt brings an op of this name, but the room norms has one",
         [](Room& r) { r.defs[1].contract = "first(x: f32[N]) -> y: f32[N]"; });
  refuse("spoilt: the room spoilt brings an op of this name", [](Room& r) { r.defs[1].contract = r.defs[0].contract; });
  refuse("brings a source norms/first.cuh, which is there already", [](Room& r) {
    r.sources = {{"norms/first.cuh", "another"}, {nullptr, nullptr}};
    r.room.sources = r.sources.data();
  });
  refuse("has a source a.cuh without text", [](Room& r) {
    r.sources = {{"a.cuh", nullptr}, {nullptr, nullptr}};
    r.room.sources = r.sources.data();
  });
  // Several rooms are added as one.
  Room &good = make_room("good", {"good_op(x: f32[N]) -> y: f32[N]"}), &bad = make_room("bad", {"good_op(x: f32[N]) -> y: f32[N]"});
  KW_EXPECT_THROWS(register_rooms({&good.room, &bad.room}), "good_op");
  KW_EXPECT(!find_op("good_op"));
  register_rooms({&good.room});
  KW_EXPECT(find_op("good_op"));
}

void test_gradients() {
  const std::string forward =
      "f(x: T[*B, N], w: W[N]?, *, eps: float) -> y: T[*B, N] where T: f32, W: f32 gradient dx, dw = g(dy, x, w, eps)";
  auto check = [&](const char* backward) { check_backward(parse_contract(forward), parse_contract(backward)); };
  check("g(dy: T[*B, N], x: T[*B, N], w: W[N]?, *, eps: float) -> (dx: T[*B, N], dw: sum W[N]?) where T: f32, W: f32");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], *, eps: float) -> (a: f32[*B, N], b: sum f32[N])"),
                   "f: its gradient g is given 4 arguments, but takes 3: dy, x, eps");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], w: f32[N], *, eps: float) -> (a: f32[*B, N], b: sum f32[N])"),
                   "f: its gradient g always needs w, but w is optional");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[N], w: f32[N]?, *, eps: float) -> (a: f32[*B, N], b: sum f32[N]?)"),
                   "takes x: f32[N], but is given x with T[*B, N]");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], w: f32[N]?, e: f32[]) -> (a: f32[*B, N], b: sum f32[N]?)"),
                   "takes the tensor e, but is given the attribute eps");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], *, w: int, eps: float) -> (a: f32[*B, N], b: sum f32[N])"),
                   "takes the attribute w, but is given the tensor w");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], w: f32[N]?, *, eps: int) -> (a: f32[*B, N], b: sum f32[N]?)"),
                   "takes the attribute eps, but eps has another type");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], w: f32[N]?, *, eps: float) -> a: f32[*B, N]"),
                   "gives 1 gradients, but 2 are named");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], w: f32[N]?, *, eps: float) -> (a: f32[*B, N], b: f32[*B, N]?)"),
                   "gives dw as f32[*B, N], but the input is W[N]");
  KW_EXPECT_THROWS(check("g(dy: f32[*B, N], x: f32[*B, N], w: f32[N]?, *, eps: float) -> (a: f32[*B, N], b: sum f32[N])"),
                   "gives dw always, but the input is optional");
  check_backward(parse_contract(test::dozen[7]), parse_contract(test::dozen[8]));  // written in place
  refuse("spoilt: its gradient is nowhere, but there is no such op",
         [](Room& r) { r.defs[0].contract = "spoilt(x: f32[N]) -> y: f32[N] gradient dx = nowhere(dy)"; });
}

void test_manifest() {
  Room& r = make_room(
      "page", {"page(x: T[*B, 2*N], w: W[N]?, i: i64[R+1], *, eps: float >= 0 = 1e-6, k: int > 0 <= 9 = 3, b: bool = true, s: str = "
               "\"a'b\", m: mean|sum = sum, q: float) -> (y: T[*B, N], dw: sum W[N]?) where T: f16 f32, W: T f32 scratch part: "
               "acc(T)[min(B, 7), N] not capturable"});
  register_room(&r.room);
  const std::string text = manifest();
  for (
      const char* part :
      {"\"name\": \"page\", \"room\": \"page\", \"contract\": \"page(x: T[*B, 2*N], ", "s: str = \\\"a'b\\\"",
       "\"capturable\": false, \"backward_of\": null",
       R"("dims": [{"name": "B", "variadic": true}, {"name": "N", "variadic": false}, {"name": "R", "variadic": false}])",
       R"("types": [{"name": "T", "options": ["f16", "f32"]}, {"name": "W", "options": [{"variable": "T"}, "f32"]}])",
       R"({"name": "x", "element": {"variable": "T"}, "shape": ["*B", ["mul", 2, "N"]], "optional": false, "list": false, "written": false})",
       R"({"name": "w", "element": {"variable": "W"}, "shape": ["N"], "optional": true, "list": false, "written": false})",
       R"("shape": [["add", "R", 1]])", R"({"name": "eps", "type": "float", "default": 1e-06, "at_least": 0.0})",
       R"({"name": "k", "type": "int", "default": 3, "above": 0, "at_most": 9})", R"({"name": "b", "type": "bool", "default": true})",
       R"({"name": "s", "type": "str", "default": "a'b"})", R"({"name": "m", "type": "enum", "values": ["mean", "sum"], "default": "sum"})",
       R"({"name": "q", "type": "float"})",
       R"({"name": "dw", "element": {"variable": "W"}, "shape": ["N"], "kind": "output", "fold": "sum", "present_with": "w"})",
       R"({"name": "part", "element": {"accumulator": "T"}, "shape": [["min", "B", 7], "N"], "kind": "scratch", "fold": null, "present_with": null})",
       "\"gradient\": null"})
    test::record(text.find(part) != std::string::npos, __FILE__, __LINE__, std::string("the manifest lacks ") + part);
  FILE* python = popen(
      "python3 -c 'import json, sys; m = json.load(sys.stdin); assert all(o[\"index\"] == i for i, o in enumerate(m[\"ops\"]))'", "w");
  std::fwrite(text.data(), 1, text.size(), python);
  KW_EXPECT_EQ(pclose(python), 0);
}

void test_threads() {
  std::vector<std::thread> threads;
  std::atomic<int> seen{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([t, &seen] {
      for (int i = 0; i < 50; i++) {
        std::string name = "thread" + std::to_string(t) + "_" + std::to_string(i);
        const std::string contract = name + "(x: f32[N]) -> y: f32[N]";  // the parsed form keeps its own copy
        static std::mutex making;
        std::unique_lock lock(making);
        auto& room = make_room(name, {contract.c_str()});
        lock.unlock();
        register_room(&room.room);
        if (find_op(name)) seen++;
        size_t count = 0;
        for (const Op* op : ops()) count += op->contract.inputs.size();
        if (count < 1) seen = -1000000;
      }
    });
  for (auto& t : threads) t.join();
  KW_EXPECT_EQ(seen.load(), 200);
  for (size_t i = 0; i < ops().size(); i++) KW_EXPECT_EQ(ops()[i]->index, static_cast<int>(i));
}

}  // namespace

int main() {
  test_registration();
  test_refusals();
  test_gradients();
  test_manifest();
  test_threads();
  return test::finish();
}
