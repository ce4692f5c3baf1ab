// A library of ops as a user would write one, for the tests of the Python faces: all that the contract language knows and the built-in
// rooms do not use. Naive loops over f32 and f64, so that torch.autograd.gradcheck can judge the gradients; CPU only.
#include <cmath>

#include "kw/core/room.h"

namespace {

using namespace kw;

double get(const kw_tensor& t, int64_t i) { return t.dtype == KW_F64 ? static_cast<double*>(t.data)[i] : static_cast<float*>(t.data)[i]; }
void put(const kw_tensor& t, int64_t i, double v) {
  if (t.dtype == KW_F64)
    static_cast<double*>(t.data)[i] = v;
  else
    static_cast<float*>(t.data)[i] = static_cast<float>(v);
}

void no_choose(const Problem&, const kw_device_facts&, Choice&) { throw Error(KW_ERROR_UNSUPPORTED, "the test room has no GPU kernels"); }
void no_fill(const Call&, const kw_device_facts&, const kw_choice&, Launches&) {}

// ---- an enumeration, an optional weight, two outputs of which one is whole numbers -----------------------------------------------
constexpr const char* blend_contract = R"(
  test_blend(x: T[*B, N], weight: T[N]?, *, factor: float > 0 = 2, kind: plain|squared = plain) -> (y: T[*B, N], count: i64[*B])
    where T: f32 f64
    gradient dx, dweight = test_blend_backward(dy, x, weight, factor, kind))";

void blend(const Call& c) {
  const kw_tensor &x = *c.tensor("x"), *w = c.tensor("weight"), &y = *c.tensor("y"), &count = *c.tensor("count");
  for (int64_t r = 0; r < c.dim("B"); r++) {
    for (int64_t i = 0; i < c.dim("N"); i++) {
      double v = get(x, c.rows("x").at(r) + i);
      put(y, c.rows("y").at(r) + i, c.attr("factor") * (c.choice("kind") ? v * v : v) * (w ? get(*w, i) : 1));
    }
    static_cast<int64_t*>(count.data)[r] = c.dim("N");
  }
}

constexpr const char* blend_backward_contract = R"(
  test_blend_backward(dy: T[*B, N], x: T[*B, N], weight: T[N]?, *, factor: float, kind: plain|squared) -> (dx: T[*B, N], dweight: sum T[N]?)
    where T: f32 f64)";

void blend_backward(const Call& c) {
  const kw_tensor &dy = *c.tensor("dy"), &x = *c.tensor("x"), *w = c.tensor("weight"), &dx = *c.tensor("dx");
  bool squared = c.choice("kind");
  for (int64_t i = 0; w && i < c.dim("N"); i++) put(*c.tensor("dweight"), i, 0);
  for (int64_t r = 0; r < c.dim("B"); r++)
    for (int64_t i = 0; i < c.dim("N"); i++) {
      double g = get(dy, c.rows("dy").at(r) + i) * c.attr("factor"), v = get(x, c.rows("x").at(r) + i);
      put(dx, c.rows("dx").at(r) + i, g * (squared ? 2 * v : 1) * (w ? get(*w, i) : 1));
      if (w) put(*c.tensor("dweight"), i, get(*c.tensor("dweight"), i) + g * (squared ? v * v : v));
    }
}

// ---- a result that only autograd sees ------------------------------------------------------------------------------------------
constexpr const char* grow_contract = R"(
  test_grow(x: T[*B, N]) -> y: T[*B, N]
    where T: f32 f64
    saved e: T[*B, N]
    gradient dx = test_grow_backward(dy, e))";

void grow(const Call& c) {  // y = exp(x) + x; e = exp(x) + 1
  for (int64_t r = 0; r < c.dim("B"); r++)
    for (int64_t i = 0; i < c.dim("N"); i++) {
      double v = get(*c.tensor("x"), c.rows("x").at(r) + i);
      put(*c.tensor("y"), c.rows("y").at(r) + i, std::exp(v) + v);
      if (c.has("e")) put(*c.tensor("e"), c.rows("e").at(r) + i, std::exp(v) + 1);
    }
}

constexpr const char* grow_backward_contract = R"(
  test_grow_backward(dy: T[*B, N], e: T[*B, N]) -> dx: T[*B, N]
    where T: f32 f64)";

void grow_backward(const Call& c) {
  for (int64_t r = 0; r < c.dim("B"); r++)
    for (int64_t i = 0; i < c.dim("N"); i++)
      put(*c.tensor("dx"), c.rows("dx").at(r) + i,
          get(*c.tensor("dy"), c.rows("dy").at(r) + i) * get(*c.tensor("e"), c.rows("e").at(r) + i));
}

// ---- a saved result that the backward turns into the gradient, in place -----------------------------------------------------------
constexpr const char* square_contract = R"(
  test_square(x: T[*B, N]) -> y: T[*B]
    where T: f32 f64
    saved slope: T[*B, N]
    gradient dx = test_square_backward(dy, slope))";

void square(const Call& c) {
  for (int64_t r = 0; r < c.dim("B"); r++) {
    double sum = 0;
    for (int64_t i = 0; i < c.dim("N"); i++) {
      double v = get(*c.tensor("x"), c.rows("x").at(r) + i);
      sum += v * v;
      if (c.has("slope")) put(*c.tensor("slope"), c.rows("slope").at(r) + i, 2 * v);
    }
    put(*c.tensor("y"), c.rows("y", 0).at(r), sum);
  }
}

constexpr const char* square_backward_contract = R"(
  test_square_backward(dy: T[*B], slope: T[*B, N]!) -> ()
    where T: f32 f64)";

void square_backward(const Call& c) {
  for (int64_t r = 0; r < c.dim("B"); r++)
    for (int64_t i = 0; i < c.dim("N"); i++) {
      int64_t at = c.rows("slope").at(r) + i;
      put(*c.tensor("slope"), at, get(*c.tensor("slope"), at) * get(*c.tensor("dy"), c.rows("dy", 0).at(r)));
    }
}

// ---- written in place ----------------------------------------------------------------------------------------------------------
constexpr const char* add_contract = R"(
  test_add(into: T[*B, N]!, x: T[*B, N], *, factor: float = 1, times: int >= 1 = 1) -> ()
    where T: f32 f64)";

void add(const Call& c) {
  for (int64_t k = 0; k < c.choice("times"); k++)
    for (int64_t r = 0; r < c.dim("B"); r++)
      for (int64_t i = 0; i < c.dim("N"); i++) {
        int64_t at = c.rows("into").at(r) + i;
        put(*c.tensor("into"), at, get(*c.tensor("into"), at) + c.attr("factor") * get(*c.tensor("x"), c.rows("x").at(r) + i));
      }
}

// ---- a list, texts, arithmetic in shapes -----------------------------------------------------------------------------------------
constexpr const char* total_contract = R"(
  test_total(xs: T[*B, N]..., like: T[2*M], *, negate: bool = false, note: str = "plain") -> y: T[M+1]
    where T: f32 f64)";

int32_t total(const kw_bound* b, kw_message* m) {  // the sum of all elements, in every place; the note's length in the last
  return detail::guarded(m, [&] {
    double sum = 0;
    for (int32_t k = 0; k < b->inputs[0].count; k++) {
      const kw_tensor& t = b->inputs[0].tensors[k];
      int64_t length = t.sizes[t.rank - 1], rows = 1, stride = 0;
      for (int32_t d = t.rank - 2; d >= 0; d--) {
        if (t.sizes[d] > 1 && !stride) stride = t.strides[d];
        rows *= t.sizes[d];
      }
      for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < length; i++) sum += get(t, r * stride + i);
    }
    const kw_tensor& y = *b->results[0].tensors;
    for (int64_t i = 0; i < y.sizes[0]; i++) put(y, i, b->attributes[0].i ? -sum : sum);
    put(y, y.sizes[0] - 1, static_cast<double>(std::strlen(b->attributes[1].s)));
  });
}

constexpr kw_op_def list_op() {
  kw_op_def op = make_op<no_choose, no_fill, blend, blend>(total_contract);
  op.cpu = total;
  return op;
}

constexpr kw_op_def blend_op = make_op<no_choose, no_fill, blend, blend>(blend_contract);
constexpr kw_op_def blend_backward_op = make_op<no_choose, no_fill, blend_backward, blend_backward>(blend_backward_contract);
constexpr kw_op_def grow_op = make_op<no_choose, no_fill, grow, grow>(grow_contract);
constexpr kw_op_def grow_backward_op = make_op<no_choose, no_fill, grow_backward, grow_backward>(grow_backward_contract);
constexpr kw_op_def square_op = make_op<no_choose, no_fill, square, square>(square_contract);
constexpr kw_op_def square_backward_op = make_op<no_choose, no_fill, square_backward, square_backward>(square_backward_contract);
constexpr kw_op_def add_op = make_op<no_choose, no_fill, add, add>(add_contract);
constexpr kw_op_def total_op = list_op();

}  // namespace

extern "C" const kw_source kw_room_test_room_sources[];
const kw_source kw_room_test_room_sources[] = {{nullptr, nullptr}};
KW_ROOM(test_room, &blend_op, &blend_backward_op, &grow_op, &grow_backward_op, &square_op, &square_backward_op, &add_op, &total_op);

extern "C" __attribute__((visibility("default"))) const kw_room* const* kw_rooms(int32_t* count) {
  static const kw_room* const rooms[] = {&kw_room_test_room};
  *count = 1;
  return rooms;
}
