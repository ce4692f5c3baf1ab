// y = x / sqrt(mean(x^2) + eps) * (weight + offset); with a residual, total = x + residual stands for x. Here for rows that fit into the
// registers of the threads that share one; rms_norm_long.cuh takes longer rows.
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/rms_norm/rms_norm_params.cuh"

namespace kw::ops::rms_norm {

// One element of y. `twice`: the models of the Llama family round the normalised x to its type before they multiply.
template <class T, bool twice, class A>
KW_WORD A scaled(A x, A scale, A weight) {
  return (twice ? rounded<T>(x * scale) : x * scale) * weight;
}

// W: the weight's type, or One. R: the residual's, which is T, or Zero. The rounded total goes on, so y has the bits that it has for total
// alone.
template <class T, class W, class R, class Tile, bool twice>
__global__ void __launch_bounds__(Tile::block) forward(const ForwardParams p) {
  using A = acc_t<T>;
  Tile tile;
  const int64_t row = int64_t{blockIdx.x} * Tile::rows + tile.group();
  const int64_t n = row < p.rows ? p.length : 0;  // a thread beyond the last row reads and writes nothing

  const T* x_row = as<T>(p.x, row);
  T* y_row = as<T>(p.y, row);  // here, while few registers are in use: at its use it took 20 more
  T* total_row = is_present<R> ? as<T>(p.total, row) : nullptr;
  const R* residual_row = is_present<R> ? as<R>(p.residual, row) : nullptr;
  auto x = tile.load(x_row, n);
  if constexpr (is_present<R>) {
    tile.update(x, [](A x, A residual) { return x + residual; }, tile.load(residual_row, n));
    tile.store(total_row, n, [](A total) { return total; }, x);
  }
  // A weight wider than x comes from the L1 cache when it is used: in registers it would leave too few for the row (23 % slower at 8192).
  const auto weight = [&] {
    if constexpr (sizeof(W) > sizeof(T)) {
      return tile.view(as<W>(p.weight), n);
    } else {
      return tile.load(as<W>(p.weight), n);
    }
  }();
  const A squares = tile.sum(A(0), [](A s, A x) { return fused(x, x, s); }, x);
  const A scale = inverse_sqrt(fused(squares, A(p.inverse_length), A(p.eps))), offset = A(p.offset);
  const auto y = [=](A x, A weight) { return scaled<T, twice>(x, scale, weight + offset); };
  tile.store(y_row, n, y, x, weight);
}

}  // namespace kw::ops::rms_norm
