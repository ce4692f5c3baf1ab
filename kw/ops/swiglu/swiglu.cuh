// y = a(gate) * up, element by element, with a(g) = g * s and s = 1 / (1 + exp(-z)); z is g for silu, a cubic of g for gelu_tanh.
//   dup = dy * a(gate)          dgate = dy * up * a'(gate), a'(g) = s + g * s * (1 - s) * z'(g)
#pragma once
#include "kw/device/row.cuh"
#include "kw/ops/swiglu/swiglu_params.cuh"

namespace kw::ops::swiglu {

struct Silu {
  template <class A>
  KW_WORD static A z(A g) {
    return g;
  }
  template <class A>
  KW_WORD static A slope(A) {
    return 1;
  }
};
struct GeluTanh {  // g (1 + tanh(z / 2)) / 2 is g s; z = 2 sqrt(2 / pi) (g + 0.044715 g^3)
  static constexpr double linear = 1.5957691216057308, cubic = 0.07135481627260025;
  template <class A>
  KW_WORD static A z(A g) {
    return g * fused(g * g, A(cubic), A(linear));
  }
  template <class A>
  KW_WORD static A slope(A g) {
    return fused(g * g, A(3 * cubic), A(linear));
  }
};

// Only exp(-|z|) is taken: it never overflows, and s and 1 - s keep full relative precision on both sides.
template <class Activation, class A>
struct Activated {
  A value, slope;
  KW_WORD explicit Activated(A g) {
    const A z = Activation::z(g);
    const A e = exponential(z < 0 ? z : -z);
    const A q = reciprocal(A(1) + e);  // of 1 to 2
    const A s = z < 0 ? e * q : q;
    const A b = e * q * q;  // s * (1 - s)
    // Where s or b has vanished, the limit: the product could be infinity * 0.
    value = s == 0 ? A(-0.0f) : g * s;
    slope = b == 0 ? s : fused(g * Activation::slope(g), b, s);
  }
};

// The piece of a row that a group of threads works on. A group beyond the last row has n <= 0 and touches nothing.
struct Piece {
  int64_t row, at, n;
  template <class Tile, class Params>
  KW_WORD Piece(const Tile&, const Params& p) {
    const uint32_t index = blockIdx.x * Tile::rows + Tile::group();
    row = index / p.pieces, at = (index % p.pieces) * int64_t{Tile::length};
    n = Tile::rows == 1 || row < p.rows ? p.length - at : 0;
  }
};

template <class T, class Activation, class Tile>
__global__ void __launch_bounds__(Tile::block) forward(const ForwardParams p) {
  using A = acc_t<T>;
  const Tile tile;
  const auto [row, at, n] = Piece(tile, p);

  auto gate = tile.load(as<T>(p.gate, row) + at, n);
  auto up = tile.load(as<T>(p.up, row) + at, n);
  tile.store(as<T>(p.y, row) + at, n, [](A gate, A up) { return Activated<Activation, A>(gate).value * up; }, gate, up);
}

template <class T, class Activation, class Tile>
__global__ void __launch_bounds__(Tile::block) backward(const BackwardParams p) {
  using A = acc_t<T>;
  const Tile tile;
  const auto [row, at, n] = Piece(tile, p);

  auto dy = tile.load(as<T>(p.dy, row) + at, n);
  auto gate = tile.load(as<T>(p.gate, row) + at, n);
  auto up = tile.load(as<T>(p.up, row) + at, n);
  const auto gate_gradient = [](A dy, A gate, A up) { return dy * up * Activated<Activation, A>(gate).slope; };
  tile.store(as<T>(p.dgate, row) + at, n, gate_gradient, dy, gate, up);
  tile.store(as<T>(p.dup, row) + at, n, [](A dy, A gate) { return dy * Activated<Activation, A>(gate).value; }, dy, gate);
}

}  // namespace kw::ops::swiglu
