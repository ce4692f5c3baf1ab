// Short vectors in registers, moved to and from memory in the widest pieces that their alignment allows.
#pragma once
#include "kw/device/types.cuh"

namespace kw {

template <class T, int N>
struct Vec {
  T v[N];
  KW_WORD T& operator[](int i) { return v[i]; }
  KW_WORD const T& operator[](int i) const { return v[i]; }
};
template <class T, int N>
KW_WORD Vec<T, N> operator+(const Vec<T, N>& a, const Vec<T, N>& b) {
  Vec<T, N> sum;
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] = a[i] + b[i];
  return sum;
}

namespace detail {
// One machine access. Plain loads and stores on purpose: no_allocate, evict_first and .cs hints cost 1-5 % in kernels that read and write
// (measured on H200, see rms_norm/README.md).
template <int bytes>
struct Piece;
template <>
struct Piece<2> {
  unsigned short word[1];
};
template <>
struct Piece<4> {
  unsigned word[1];
};
template <>
struct alignas(8) Piece<8> {
  unsigned word[2];
};
template <>
struct alignas(16) Piece<16> {
  unsigned word[4];
};
// To global memory. In PTX, because the compiler wrote 16 bytes as four stores of 4 wherever it could not see through the address (all
// tiles of clusters): four times the traffic to L2, and 60-75 % of the copy rate in place of 95.
template <int bytes>
KW_WORD void write(Piece<bytes>* p, const Piece<bytes>& piece) {
#ifndef KW_EMULATED
  if constexpr (bytes == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(piece.word[0]), "r"(piece.word[1]),
                 "r"(piece.word[2]), "r"(piece.word[3])
                 : "memory");
    return;
  }
#endif
  *p = piece;
}
KW_WORD constexpr int least(int a, int b) { return a < b ? a : b; }
KW_WORD constexpr int most(int a, int b) { return a > b ? a : b; }
}  // namespace detail

// Moves of N elements of T at an address that `align` divides: an element at least, 16 bytes at most at once.
template <class T, int N, int align>
struct Access {
  static constexpr int bytes = detail::least(detail::least(16, detail::most(align, sizeof(T))), N * sizeof(T));
  static constexpr int step = bytes / sizeof(T);  // elements of one piece
  using Piece = detail::Piece<bytes>;
  union Packed {  // registers, seen as elements and as pieces
    Piece pieces[N / step];
    Vec<T, N> elements;
  };
};

// The N elements at `p`, those from index `count` on as zero; `count` is a multiple of the piece (see RowTile), or at most 0.
template <int N, int align, class T>
KW_WORD Vec<T, N> load(const T* p, int count) {
  using A = Access<T, N, align>;
  typename A::Packed packed;
#pragma unroll
  for (int i = 0; i < N / A::step; i++)
    packed.pieces[i] = i * A::step < count ? reinterpret_cast<const typename A::Piece*>(p)[i] : typename A::Piece{};
  return packed.elements;
}
// The same, with `beyond` in place of zero. On its own, for as one function the two cost rms_norm's forward 15 registers, and half of its
// occupancy at 16384.
template <int N, int align, class T>
KW_WORD Vec<T, N> load(const T* p, int count, T beyond) {
  using A = Access<T, N, align>;
  typename A::Packed packed, nothing;
#pragma unroll
  for (int i = 0; i < N; i++) nothing.elements[i] = beyond;
#pragma unroll
  for (int i = 0; i < N / A::step; i++)
    packed.pieces[i] = i * A::step < count ? reinterpret_cast<const typename A::Piece*>(p)[i] : nothing.pieces[i];
  return packed.elements;
}

// Writes the first `count` of N elements, to global memory.
template <int align, class T, int N>
KW_WORD void store(T* p, const Vec<T, N>& v, int count) {
  using A = Access<T, N, align>;
  typename A::Packed packed;
  packed.elements = v;
#pragma unroll
  for (int i = 0; i < N / A::step; i++)
    if (i * A::step < count) detail::write(reinterpret_cast<typename A::Piece*>(p) + i, packed.pieces[i]);
}

template <int N, class T>
KW_WORD Vec<T, N> filled(T value) {
  Vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; i++) out[i] = value;
  return out;
}

// Elements to the accumulator's type, and back, rounded.
template <class T, int N>
KW_WORD Vec<acc_t<T>, N> unpack(const Vec<T, N>& v) {
  Vec<acc_t<T>, N> out;
#pragma unroll
  for (int i = 0; i < N; i++) out[i] = to_acc(v[i]);
  return out;
}
template <class T, int N, class A>
KW_WORD Vec<T, N> pack(const Vec<A, N>& a) {
  Vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; i++) from_acc(a[i], out[i]);
  return out;
}
template <>
KW_WORD Vec<bf16, 8> pack<bf16, 8, float>(const Vec<float, 8>& a) {  // in pairs: one instruction for two from sm_80 on
  Vec<bf16, 8> out;
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const unsigned pair = bf16_pair(a[i], a[i + 1]);
    out[i].bits = static_cast<unsigned short>(pair & 0xffffu);
    out[i + 1].bits = static_cast<unsigned short>(pair >> 16);
  }
  return out;
}

}  // namespace kw
