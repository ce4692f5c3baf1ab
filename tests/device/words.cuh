// Conformance kernels of the device words (kw/device): each gives results that tests/cpp/device_words_test.cpp computes on the host.
#pragma once
#include "kw/device/ring.cuh"
#include "kw/device/row.cuh"
#include "kw/device/softmax.cuh"
#include "kw/device/window.cuh"

namespace words {

struct Params {
  const void* in;
  const void* in2;
  void* out;
  int64_t count, length;
};

// ---- types ----
__global__ void widen_bf16(const Params p) {  // all 65536 of them
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  kw::as<float>(p.out)[i] = kw::to_acc(kw::bf16{static_cast<unsigned short>(i)});
}
__global__ void widen_f16(const Params p) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  kw::as<float>(p.out)[i] = kw::to_acc(kw::f16{static_cast<unsigned short>(i)});
}
__global__ void narrow(const Params p) {  // per number: bf16 alone, bf16 of a pair (with its negative above), f16
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= p.count) return;
  const float x = kw::as<float>(p.in)[i];
  unsigned* out = kw::as<unsigned>(p.out) + 3 * i;
  out[0] = kw::bf16_bits(x);
  out[1] = kw::bf16_pair(x, -x);
  out[2] = kw::f16_bits(x);
}
__global__ void arithmetic(const Params p) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= p.count) return;
  const float x = kw::as<float>(p.in)[i];
  float* out = kw::as<float>(p.out) + 4 * i;
  out[0] = kw::fused(x, x, -1.0f);
  out[1] = kw::inverse_sqrt(x);
  out[2] = kw::reciprocal(x);
  out[3] = kw::exponential(-x);
}

// ---- vectors: out[i] = in[i] below count, and nothing above ----
template <class T, int N, int align>
__global__ void copy(const Params p) {
  const int start = threadIdx.x * N;
  const auto v = kw::load<N, align>(kw::as<T>(p.in) + start, static_cast<int>(p.count) - start);
  kw::store<align>(kw::as<T>(p.out) + start, v, static_cast<int>(p.count) - start);
}

// ---- sums: `count` rounds, to see the buffers alternate ----
template <int threads, int groups>
__global__ void __launch_bounds__(threads* groups) sum(const Params p) {
  for (int round = 0; round < static_cast<int>(p.count); round++) {
    const int i = round * threads * groups + threadIdx.x;
    const float x = kw::as<float>(p.in)[i];
    const auto both = kw::block_sum<threads, groups>(kw::Vec<float, 2>{x, 3.0f - x}, round % 2);
    kw::as<float>(p.out)[2 * i] = both[0];
    kw::as<float>(p.out)[2 * i + 1] = both[1];
  }
}

// ---- rows, one block or cluster for all: per row its sum of squares, written by every thread of it, and twice each element plus the
// column's factor
// ----
template <class T, class W, class Tile>
__global__ void __launch_bounds__(Tile::block) row(const Params p) {
  Tile tile;
  tile.begin();
  for (int64_t first = 0; first < p.count; first += Tile::rows) {
    const int64_t row = first + tile.group(), n = row < p.count ? p.length : 0;
    auto x = tile.load(kw::as<T>(p.in) + row * p.length, n);
    auto factor = tile.view(kw::as<W>(p.in2), n);
    const float squares = tile.sum(0.0f, [](float s, float x) { return kw::fused(x, x, s); }, x);
    float* sums = kw::as<float>(p.out);
    if (n > 0) sums[row * Tile::threads + tile.thread()] = squares;
    T* out = reinterpret_cast<T*>(sums + p.count * Tile::threads);
    tile.store(out + row * p.length, n, [](float x, float factor) { return kw::fused(2.0f, x, factor); }, x, factor);
  }
}
// A row in pieces: the same sum.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::block) long_row(const Params p) {
  Tile tile;
  auto sums = tile.sums(0.0f);
  for (int64_t at = 0; at < p.length; at += Tile::length)
    tile.fold(
        sums, [](float s, float x) { return kw::fused(x, x, s); }, tile.load(kw::as<T>(p.in) + blockIdx.x * p.length + at, p.length - at));
  const float squares = tile.total(sums);
  if (threadIdx.x == 0) kw::as<float>(p.out)[blockIdx.x] = squares;
}
// A row in pieces: its largest element and the sum of e^(x - largest); then the largest of the first piece alone, another way.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::block) peak(const Params p) {
  Tile tile;
  const T* row = kw::as<T>(p.in) + tile.team() * p.length;
  auto peaks = tile.sums(kw::Peak<float>::none());
  tile.begin();
  for (int64_t at = 0; at < p.length; at += Tile::length) {
    const auto x = tile.load(row + at, p.length - at, kw::minus_infinity<T>());
    for (int i = 0; i < Tile::vectors; i++) peaks[i % Tile::lanes].add(x.at(i));
  }
  const auto peak = tile.total(peaks);
  float* out = kw::as<float>(p.out) + tile.team() * 3;
  if (tile.thread() == 0) out[0] = peak.top, out[1] = peak.sum;
  if constexpr (Tile::cluster == 1) {
    const float top = kw::row_max<T>(tile, tile.load(row, p.length, kw::minus_infinity<T>()));
    if (tile.thread() == Tile::threads - 1) out[2] = top;
  }
}
// Columns: a block adds up its rows, in order within a group, then the groups in order.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::block) columns(const Params p) {
  Tile tile;
  typename Tile::template Share<float> sums = {};
  for (int64_t row = tile.group(); row < p.count; row += Tile::rows)
    tile.update(sums, [](float s, float x) { return s + x; }, tile.load(kw::as<T>(p.in) + row * p.length, p.length));
  tile.fold_groups(sums);
  tile.store(kw::as<float>(p.out), tile.group() == 0 ? p.length : 0, [](float s) { return s; }, sums);
}

// ---- a ring, from sm_80 on: each thread goes through `count` vectors of in and of in2, `step` at a time, and writes in + 2 in2; elements
// from `length` on come as zeros. Then the ring's memory carries each thread's number to its opposite ----
template <int slots, int step, int threads>
__global__ void __launch_bounds__(threads) ring(const Params p) {
  kw::Ring<slots, 2, threads> ring;
  const int thread = threadIdx.x, count = static_cast<int>(p.count);
  float* out = kw::as<float>(p.out);
  const auto fetch = [&](int place, int i) {
    const int64_t start = (int64_t{i} * threads + thread) * 4;
    const bool present = i < count && start < p.length;
    ring.fetch(place, 0, kw::as<float>(p.in) + start, present);
    ring.fetch(place, 1, kw::as<float>(p.in2) + start, present);
    ring.sent();
  };
  for (int i = 0; i < slots; i++) fetch(i, i);
  for (int first = 0; first < count; first += step) {  // step divides count
    ring.template wait<slots - step>();
    for (int i = 0; i < step; i++) {
      const auto a = ring.template at<float, 4>(i, 0), b = ring.template at<float, 4>(i, 1);
      fetch(i, first + i + slots);
      for (int j = 0; j < 4; j++) out[((first + i) * threads + thread) * 4 + j] = kw::fused(2.0f, b[j], a[j]);
    }
    ring.advance(step);
  }
  ring.template wait<0>();
  int* numbers = ring.template reuse<int>();
  numbers[threads - 1 - thread] = thread;
  __syncthreads();
  out[count * threads * 4 + thread] = static_cast<float>(numbers[thread]);
}

// ---- windows, from sm_80 on: rows of `length`, one behind the other. Every vector as it is taken out, ones behind the end; then each
// element, the odd ones negated, `apart` elements further on than the row lies itself ----
template <class T, class Tile, int apart>
__global__ void __launch_bounds__(Tile::block) window(const Params p) {
  Tile tile;
  kw::Window<T, Tile> window;
  const int64_t row = tile.team();
  T one;
  kw::from_acc(1.0f, one);
  window.fetch(kw::as<T>(p.in) + row * p.length, static_cast<int>(p.length), row != 1);  // the second comes as zeros
  tile.begin();
  window.wait(one);
  T* out = kw::as<T>(p.out) + row * Tile::length;
  for (int i = 0; i < Tile::vectors; i++)
    if (tile.start(i) < p.length) kw::store<16>(out + tile.start(i), window.at(i), Tile::vec);
  out = kw::as<T>(p.out) + p.count * Tile::length + row * p.length + apart;
  window.store(out, [](float x, int c) { return c % 2 ? -x : x; });
}

}  // namespace words
