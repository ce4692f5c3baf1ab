// y = silu(gate) * up, element by element, where silu(g) = g * s and s = 1 / (1 + exp(-g)).
//   dup = dy * silu(gate)          dgate = dy * up * silu'(gate), silu'(g) = s + g * s * (1 - s)
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/swiglu/swiglu_params.cuh"

namespace kw::ops::swiglu {

// Only exp(-|g|) is taken: it never overflows, and s and 1 - s keep full relative precision on both sides.
template <class A>
struct Silu {
  A value, slope;
  KW_WORD explicit Silu(A g) {
    const A e = exponential(g < 0 ? g : -g);
    const A q = reciprocal(A(1) + e);  // of 1 to 2
    const A s = g < 0 ? e * q : q;
    const A b = e * q * q;  // s * (1 - s)
    // Where s or b has vanished, the limit: the product could be infinity * 0.
    value = s == 0 ? A(-0.0f) : g * s;
    slope = b == 0 ? s : fused(g, b, s);
  }
};

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::block) forward(const ForwardParams p) {
  using A = acc_t<T>;
  const Tile tile;
  const int64_t row = blockIdx.x / p.pieces, at = (blockIdx.x % p.pieces) * int64_t{Tile::length}, n = p.length - at;

  auto gate = tile.load(as<T>(p.gate, row) + at, n);
  auto up = tile.load(as<T>(p.up, row) + at, n);
  tile.store(as<T>(p.y, row) + at, n, [](A gate, A up) { return Silu<A>(gate).value * up; }, gate, up);
}

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::block) backward(const BackwardParams p) {
  using A = acc_t<T>;
  const Tile tile;
  const int64_t row = blockIdx.x / p.pieces, at = (blockIdx.x % p.pieces) * int64_t{Tile::length}, n = p.length - at;

  auto dy = tile.load(as<T>(p.dy, row) + at, n);
  auto gate = tile.load(as<T>(p.gate, row) + at, n);
  auto up = tile.load(as<T>(p.up, row) + at, n);
  tile.store(as<T>(p.dgate, row) + at, n, [](A dy, A gate, A up) { return dy * up * Silu<A>(gate).slope; }, dy, gate, up);
  tile.store(as<T>(p.dup, row) + at, n, [](A dy, A gate) { return dy * Silu<A>(gate).value; }, dy, gate);
}

}  // namespace kw::ops::swiglu
