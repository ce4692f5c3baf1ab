// With r = 1 / sqrt(mean(x^2) + eps) and g = dy * (weight + offset):
//   dx = r * g - x * r^3 * mean(x * g)  (+ dtotal, after a forward that added a residual: x is the total then)
//   dweight = sum over rows of dy * x * r
// for rows that fit into the registers of the threads that share one. A block takes every gridDim.x-th row (or group of rows), adds up its
// share of dweight in registers and writes it to part; sum_parts then adds the blocks' shares in order. r is computed again from x, which
// has to be read anyway, so the forward need not save it.
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/rms_norm/rms_norm_params.cuh"

namespace kw::ops::rms_norm {

// Adds an element to the two sums of a row: x^2 and x g.
template <class A>
KW_WORD auto add_to_sums(A offset) {
  return [offset](Vec<A, 2> s, A x, A dy, A weight) { return Vec<A, 2>{fused(x, x, s[0]), fused(x, dy * (weight + offset), s[1])}; };
}
// An element of dx, where k = -r^3 mean(x g).
template <class A>
KW_WORD auto gradient(A r, A k, A offset) {
  return [=](A x, A dy, A weight, A dtotal) { return fused(x, k, r * (dy * (weight + offset))) + dtotal; };
}

// W: the weight's type, or One. D: dtotal's, which is T, or Zero. ahead: the next row is on its way while this one is worked on.
template <class T, class W, class D, class Tile, int blocks, bool ahead>
__global__ void __launch_bounds__(Tile::block, blocks) backward(const BackwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const auto length_of = [&](int64_t row) { return row < p.rows ? p.length : 0; };  // a thread beyond the last row only comes along
  const auto load_x = [&](int64_t row) { return tile.load(as<T>(p.x, row), length_of(row)); };
  const auto load_dy = [&](int64_t row) { return tile.load(as<T>(p.dy, row), length_of(row)); };

  const A offset = A(p.offset);
  const auto weight = tile.view(as<W>(p.weight), p.length);
  typename Tile::template Share<A> dweight = {};
  int64_t first = int64_t{blockIdx.x} * Tile::rows;
  auto x = load_x(first + tile.group());
  auto dy = load_dy(first + tile.group());
  while (first < p.rows) {
    const int64_t row = first + tile.group(), n = length_of(row);
    T* dx = as<T>(p.dx, row);  // an address at its use takes more registers
    first += int64_t{gridDim.x} * Tile::rows;
    auto next_x = x, next_dy = dy;
    if constexpr (ahead) next_x = load_x(first + tile.group()), next_dy = load_dy(first + tile.group());

    const auto dtotal = tile.load(as<D>(p.dtotal, row), n);  // on its way while the sums are awaited
    const auto sums = tile.sum(Vec<A, 2>{}, add_to_sums(offset), x, dy, weight);
    const A r = inverse_sqrt(fused(sums[0], A(p.inverse_length), A(p.eps)));
    const A k = -r * r * r * (sums[1] * A(p.inverse_length));
    tile.store(dx, n, gradient(r, k, offset), x, dy, weight, dtotal);
    if (is_present<W> && n > 0) tile.update(dweight, [=](A sum, A x, A dy) { return fused(dy, x * r, sum); }, x, dy);

    if constexpr (!ahead) next_x = load_x(first + tile.group()), next_dy = load_dy(first + tile.group());
    x = next_x, dy = next_dy;
  }
  if constexpr (is_present<W>) {
    tile.fold_groups(dweight);
    tile.store(as<A>(p.part) + blockIdx.x * p.length, tile.group() == 0 ? p.length : 0, [](A sum) { return sum; }, dweight);
  }
}

// dweight = the sum of part's rows, in an order that their number alone decides: slice s of a block adds rows s, s + slices, ..., and the
// slices meet in a tree. Many slices for many parts, many columns for few: reading part is all there is to do.
template <class A, class W>
__global__ void __launch_bounds__(1024) sum_parts(const ColumnParams p) {
  __shared__ A sums[1024];
  const int columns = p.columns, slices = blockDim.x / columns;
  const int slice = threadIdx.x / columns;
  const int64_t column = int64_t{blockIdx.x} * columns + threadIdx.x % columns;

  A sum = 0;
  if (column < p.length) {
#pragma unroll 8
    for (int64_t i = slice; i < p.parts; i += slices) sum += as<A>(p.part)[i * p.length + column];
  }
  sums[threadIdx.x] = sum;
  for (int half = slices / 2; half > 0; half /= 2) {
    __syncthreads();
    if (slice < half) sums[threadIdx.x] += sums[threadIdx.x + half * columns];
  }
  if (slice == 0 && column < p.length) from_acc(sums[threadIdx.x], as<W>(p.dweight)[column]);
}

}  // namespace kw::ops::rms_norm
