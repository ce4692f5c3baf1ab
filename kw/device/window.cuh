// Window: a row that need not be aligned, in shared memory. It is copied as the aligned windows of 16 bytes that cover it, asynchronously,
// and lies there as far from a multiple of 16 as in memory; a thread takes its vectors out wherever they begin. From sm_80 on.
//
//   Window<T, Tile> window;                              Window::bytes of dynamic shared memory
//   window.fetch(row, n, true);                          on its way
//   window.wait(T(0));                                   there; every thread of the block calls it
//   Vec<T, vec> x = window.at(i);                        elements tile.start(i) to tile.start(i) + vec; not all of them beyond n
//   window.store(y_row, [=](A x, int c) { return x * s; });          element by element of the row, c its number
//
// Nothing outside of the row is read or written. A tile must have one vector more than the row, for that is how many windows it may touch;
// and where Tile::align is 16, this is a Ring that is filled once.
#pragma once
#include "kw/device/ring.cuh"
#include "kw/device/row.cuh"

namespace kw {

namespace detail {
// The 16 bytes that begin `bytes` (less than 16, even) behind the start of a, which b follows.
KW_WORD Piece<16> shifted(const Piece<16>& a, const Piece<16>& b, int bytes) {
  unsigned two[6], one[5];
#pragma unroll
  for (int i = 0; i < 6; i++) {
    const unsigned here = i < 4 ? a.word[i % 4] : b.word[i % 4], later = i < 2 ? a.word[i + 2] : b.word[(i - 2) % 4];
    two[i] = bytes & 8 ? later : here;
  }
#pragma unroll
  for (int i = 0; i < 5; i++) one[i] = bytes & 4 ? two[i + 1] : two[i];
  Piece<16> out;
#pragma unroll
  for (int i = 0; i < 4; i++)
    out.word[i] = static_cast<unsigned>((one[i] | static_cast<unsigned long long>(one[i + 1]) << 32) >> (bytes & 2) * 8);
  return out;
}
}  // namespace detail

template <class T, class Tile>
struct Window {
  static constexpr int vec = Tile::vec;
  using Vector = Vec<T, vec>;
  static constexpr int places = Tile::vectors * Tile::block;
  static constexpr int chunk = Tile::cluster > 1 ? 8 : places;  // vectors side by side in a block: the window behind them is there as well
  static constexpr bool aligned = Tile::align == 16;            // every row: there is nothing to shift then
  static constexpr int bytes = (places + (aligned ? 0 : places / chunk)) * 16;
  static_assert(vec * sizeof(T) == 16);

  // Zeros, and nothing is read, when not `present`.
  KW_WORD void fetch(const T* row, int length, bool present) {
    n = length, shift = aligned ? 0 : beyond(row);
#pragma unroll 4
    for (int i = 0; i < Tile::vectors; i++) {
      fetch(place(i), row, Tile::start(i) - shift, present);
      if (!aligned && place(i) % (chunk + 1) == chunk - 1) fetch(place(i) + 1, row, Tile::start(i) + vec - shift, present);
    }
    detail::commit_copies();
    if (shift > 0 && Tile::start(0) == 0)  // an asynchronous copy can end early, but not begin late
#pragma unroll 1
      for (int j = 0; j < vec; j++) element(0, j) = present && j >= shift && j - shift < n ? row[j - shift] : T{};
  }
  // `behind`: what is to be found between the row's end and the end of the vector.
  KW_WORD void wait(T behind) const {
    detail::wait_for_copies<0>();
    if constexpr (!aligned) {
#pragma unroll 1
      for (int i = 0; i < Tile::vectors; i++) {
        const int left = n - (Tile::start(i) - shift);
        if (left < vec && left > -vec) fill(place(i), left, behind);
        if (place(i) % (chunk + 1) == chunk - 1 && left < 2 * vec && left > 0) fill(place(i) + 1, left - vec, behind);
      }
      __syncthreads();  // others' windows
    }
  }
  KW_WORD Vector at(int i) const {
    const detail::Piece<16>* p = memory() + place(i);
    if (aligned) return __builtin_bit_cast(Vector, *p);
    const detail::Piece<16> first = p[0], second = p[1];  // whole: word by word, four threads would want the same bank
    return __builtin_bit_cast(Vector, detail::shifted(first, second, shift * static_cast<int>(sizeof(T))));
  }
  // to[c] = op(element c, c), rounded. op is also asked for elements outside of the row, and what it says of them is dropped: a branch
  // around them costs more. The thread that writes element c is `writer`.
  KW_WORD int writer(int64_t c) const { return static_cast<int>((c + shift) / vec % Tile::threads); }
  template <class Op>
  KW_WORD void store(T* to, Op op) const {
    const bool together = aligned || beyond(to) == shift;
    if (together) {
#pragma unroll 4
      for (int i = 0; i < Tile::vectors; i++) {
        const int first = Tile::start(i) - shift;
        const auto x = unpack(__builtin_bit_cast(Vector, memory()[place(i)]));
        decltype(unpack(Vector{})) y;
#pragma unroll
        for (int j = 0; j < vec; j++) y[j] = op(x[j], first + j);
        if (is_whole(first)) kw::store<16>(to + first, pack<T>(y), vec);
      }
    }
    if constexpr (!aligned) {
#pragma unroll 1
      for (int i = 0; i < Tile::vectors; i++) {
        const int first = Tile::start(i) - shift;
        if (together && is_whole(first)) continue;
#pragma unroll 1
        for (int j = 0; j < vec; j++)
          if (first + j >= 0 && first + j < n) from_acc(op(to_acc(element(place(i), j)), first + j), to[first + j]);
      }
    }
  }

 private:
  KW_WORD static int beyond(const T* p) {  // elements from a multiple of 16 bytes
    return static_cast<int>(reinterpret_cast<unsigned long long>(p) % 16 / sizeof(T));
  }
  KW_WORD static detail::Piece<16>* memory() {
    extern __shared__ detail::Piece<16> kw_ring[];
    return kw_ring;
  }
  KW_WORD static int place(int i) {
    const int vector = i * Tile::block + threadIdx.x;
    return !aligned && Tile::cluster > 1 ? vector + vector / chunk : vector;
  }
  KW_WORD static T& element(int place, int j) { return reinterpret_cast<T*>(memory() + place)[j]; }
  KW_WORD bool is_whole(int first) const { return aligned ? first < n : first >= 0 && first + vec <= n; }
  // Elements first to first + vec of the row; zeros where it has none.
  KW_WORD void fetch(int place, const T* row, int first, bool present) const {
    const int left = present ? n - first : 0;
    if (aligned)
      detail::copy_async(memory() + place, row + first, left > 0 ? 16 : 0);
    else if (first >= 0)
      detail::copy_async(memory() + place, row + first, left >= vec ? 16 : left > 0 ? left * static_cast<int>(sizeof(T)) : 0);
  }
  KW_WORD static void fill(int place, int from, T value) {
#pragma unroll 1
    for (int j = from < 0 ? 0 : from; j < vec; j++) element(place, j) = value;
  }

  int n = 0;
  int shift = 0;  // elements from the start of the first window to the row's first
};

}  // namespace kw
