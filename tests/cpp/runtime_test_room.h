// A room for the runtime's tests: z = a x + b y on rows, one element per thread. `fault` makes it misbehave on demand.
#pragma once
#include <atomic>
#include <vector>

#include "kw/core/bind.h"
#include "kw/core/room.h"

namespace test_room {

inline constexpr const char* contract = R"(
test_axpby(x: T[*B, N], y: T[*B, N]?, *, a: float = 1, b: float = 1, threads: int >= 1 = 128, fault: int = 0) -> z: T[*B, N]
  where T: f32 f64)";

enum Fault : int64_t {
  none = 0,
  choose_throws,
  fill_throws,
  grid_too_large,
  shared_too_large,
  bad_cluster,
  wrong_params,
  out_of_bounds,
  no_such_kernel
};

struct Params {
  const void *x, *y;
  void* z;
  int64_t rows, length, x_stride, y_stride, z_stride;
  double a, b;
};

inline constexpr const char* source = R"(#pragma once
#include "test/word.cuh"
namespace test {
struct Params { const void *x, *y; void* z; long long rows, length, x_stride, y_stride, z_stride; double a, b; };

template <class T, int threads>
__global__ void axpby(Params p) {
  long long i = (long long)blockIdx.x * threads + threadIdx.x;
  if (i >= p.rows * p.length) return;
  long long row = i / p.length, column = i % p.length;
  T x = static_cast<const T*>(p.x)[row * p.x_stride + column];
  T y = p.y ? static_cast<const T*>(p.y)[row * p.y_stride + column] : T(0);
  static_cast<T*>(p.z)[row * p.z_stride + column] = blend(x, T(p.a), y, T(p.b));
}
}  // namespace test
)";
inline constexpr const char* word = R"(#pragma once
namespace test {
template <class T>
__device__ T blend(T x, T a, T y, T b) { return a * x + b * y; }
}  // namespace test
)";
inline const kw_source sources[] = {{"test/axpby.cuh", source}, {"test/word.cuh", word}, {nullptr, nullptr}};

inline std::atomic<int> chosen{0}, computed{0};

inline void choose(const kw::Problem& p, const kw_device_facts&, kw::Choice& out) {
  chosen++;
  if (p.choice("fault") == choose_throws) throw kw::Error(KW_ERROR_UNSUPPORTED, "there is no kernel for this");
  const char* name = p.choice("fault") == no_such_kernel ? "test::nothing" : "test::axpby";
  out.kernel("test/axpby.cuh", kw::format("%s<%s, %lld>", name, p.type("T"), static_cast<long long>(p.choice("threads"))));
  out.tile(static_cast<uint32_t>(p.choice("threads")));
}

inline void fill(const kw::Call& c, const kw_device_facts&, const kw_choice& choice, kw::Launches& out) {
  int64_t rows = c.dim("B"), n = c.dim("N"), fault = c.choice("fault");
  if (fault == fill_throws) throw kw::Error(KW_ERROR_ARGUMENT, "this cannot be filled");
  Params p{c.data("x"),           c.data("y"),           c.data("z"),           rows,        n,
           c.rows("x").stride[0], c.rows("y").stride[0], c.rows("z").stride[0], c.attr("a"), c.attr("b")};
  auto threads = kw::tile_of<uint32_t>(choice);
  kw::Grid grid{static_cast<uint32_t>((rows * n + threads - 1) / threads)};
  if (fault == out_of_bounds) p.rows++, grid.x += static_cast<uint32_t>(n);
  if (fault == grid_too_large) grid.y = 70000;
  if (fault == wrong_params)
    out.add(0, grid, threads, p.rows);
  else
    out.add(0, grid, threads, p, fault == shared_too_large ? 1u << 20 : 0, fault == bad_cluster ? 5 : 0);
}

inline void cpu(const kw::Call& c) {
  computed++;
  if (c.choice("fault") == fill_throws) throw kw::Error(KW_ERROR_ARGUMENT, "this cannot be computed");
  auto* x = static_cast<const float*>(c.data("x"));
  auto* z = static_cast<float*>(c.data("z"));
  for (int64_t i = 0; i < c.dim("B") * c.dim("N"); i++) z[i] = static_cast<float>(c.attr("a")) * x[i];
}

inline constexpr kw_op_def op = kw::make_op<choose, fill, cpu, cpu>(contract);
inline constexpr const kw_op_def* room_ops[] = {&op};
inline const kw_room room = {sizeof(kw_room), KW_ABI_VERSION, "test", room_ops, 1, sources};

struct Attributes {
  double a = 1, b = 1;
  int64_t threads = 128, fault = none;
};

// A bound call on tensors that somebody else owns.
struct TestCall {
  std::vector<int64_t> sizes, x_strides, strides;
  kw_tensor x{}, y{}, z{};
  kw_argument inputs[2], results[1];
  kw_attribute attributes[4];
  kw::Bound bound;

  TestCall(const void* x_data, const void* y_data, void* z_data, std::vector<int64_t> shape, Attributes values = {},
           int32_t device_type = KW_CPU, int32_t dtype = KW_F32, std::vector<int64_t> x_stride = {}, int32_t device_index = 0)
      : sizes(std::move(shape)), x_strides(std::move(x_stride)), strides(sizes.size()) {
    int64_t step = 1;
    for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
    if (x_strides.empty()) x_strides = strides;
    x = {const_cast<void*>(x_data), sizes.data(), x_strides.data(), static_cast<int32_t>(sizes.size()), dtype, device_type, device_index};
    y = {const_cast<void*>(y_data), sizes.data(), strides.data(), x.rank, dtype, device_type, device_index};
    z = {z_data, sizes.data(), strides.data(), x.rank, dtype, device_type, device_index};
    inputs[0] = {&x, 1}, inputs[1] = {&y, y_data ? 1 : 0}, results[0] = {&z, 1};
    attributes[0].f = values.a, attributes[1].f = values.b, attributes[2].i = values.threads, attributes[3].i = values.fault;
    kw::bind_inputs(kw::get_op("test_axpby"), inputs, attributes, bound);
    kw::bind_results(results, bound);
  }
  TestCall(const TestCall&) = delete;
};

}  // namespace test_room
