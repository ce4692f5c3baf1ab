// RowTile: a group of threads shares one row; each holds vectors of it in registers.
//
//   Tile tile;                                                      RowTile<threads, rows, vectors, vec, align, cluster, tree>
//   auto x = tile.load(x_row, n);                                   this thread's elements; zero from n on
//   float s = tile.sum(0.f, [](float s, float x) { return fused(x, x, s); }, x);      over the whole row, for every thread of it
//   tile.store(y_row, n, [=](float x) { return x * s; }, x);        element by element, in the accumulator's type
//
// Who owns what never depends on the alignment, only on the tile: vector v of thread() t starts at element (v * threads + t) * vec. Sums
// run along one canonical tree: the vectors of a row go round `tree` virtual lanes (vector i to lane i % tree), each lane adds its elements
// in order, and the lanes meet in the tree of reduce.cuh. So a row gives the same bits whatever the tile, the alignment or the other rows,
// as long as its length alone decides `tree`.
#pragma once
#include "kw/device/cluster.cuh"

namespace kw {

struct One {};   // the element type of a factor that is not there: loads as ones, and costs nothing
struct Zero {};  // and of a term that is not there

namespace detail {
template <class T>
inline constexpr bool present = true;
template <>
inline constexpr bool present<One> = false;
template <>
inline constexpr bool present<Zero> = false;
}  // namespace detail
template <class T>
inline constexpr bool is_present = detail::present<T>;

template <int threads_, int rows_, int vectors_, int vec_, int align_, int cluster_ = 1, int tree_ = 1024>
struct RowTile {
  static constexpr int threads = threads_;  // per row, a power of two up to `tree`
  static constexpr int rows = rows_;        // per block
  static constexpr int vectors = vectors_;  // per thread
  static constexpr int vec = vec_;          // elements of a vector: 16 bytes of the row's type
  static constexpr int align = align_;      // bytes that divide every row's address and its length (less than 16: narrower accesses)
  // The same of another tensor along the row, whose elements may be narrower.
  template <class T>
  static constexpr int align_of = detail::least(align, align* static_cast<int>(sizeof(T)) * vec / 16);
  static constexpr int cluster = cluster_;  // blocks that share the row
  static constexpr int tree = tree_;        // virtual lanes of a row, a power of two
  static constexpr int block = threads * rows / cluster;
  static constexpr int length = threads * vectors * vec;                // elements of a row that fit
  static constexpr int lanes = detail::least(vectors, tree / threads);  // virtual lanes that a thread stands for
  static_assert((threads & (threads - 1)) == 0 && threads <= tree && block <= 1024 && block % 32 == 0);
  static_assert(cluster == 1 || rows == 1);

  // This thread's vectors of one row. at(i) is vector i in the accumulator's type.
  template <class T>
  struct Share {  // in registers, as loaded: an element of 16 bits takes half a register
    Vec<T, vec> v[vectors];
    KW_WORD Vec<acc_t<T>, vec> at(int i) const { return unpack(v[i]); }
  };
  template <class T>
  struct View {  // in memory, read at each use: for what a cache holds anyway
    const T* p;
    int n;
    KW_WORD Vec<acc_t<T>, vec> at(int i) const { return unpack(kw::load<vec, align_of<T>>(p + start(i), n - start(i))); }
  };
  struct Ones {
    KW_WORD Vec<float, vec> at(int) const { return filled<vec>(1.0f); }
  };
  struct Zeros {
    KW_WORD Vec<float, vec> at(int) const { return filled<vec>(0.0f); }
  };

  KW_WORD static int thread() {  // in its row
    if constexpr (cluster > 1) return cluster_lane<threads, cluster>();
    return threadIdx.x % threads;
  }
  KW_WORD static int group() { return cluster > 1 ? 0 : threadIdx.x / threads; }  // the row in its block
  // Teams are blocks, or clusters, that have `rows` rows at a time: team() of teams().
  KW_WORD static int64_t team() { return blockIdx.x / cluster; }
  KW_WORD static int64_t teams() { return gridDim.x / cluster; }
  // Every thread calls it once before the first sum, best when its first loads are on their way.
  KW_WORD static void begin() {
    if constexpr (cluster > 1) cluster_begin();
  }

  // Elements below n of the row at p; zero, or what is `beyond`, from n on. A block's last rows may lie beyond the tensor: give them n = 0,
  // for their threads have to come along to the sums.
  template <class T, class... Beyond>
  KW_WORD Share<T> load(const T* p, int64_t n, Beyond... beyond) const {
    Share<T> share;
#pragma unroll
    for (int i = 0; i < vectors; i++) share.v[i] = kw::load<vec, align_of<T>>(p + start(i), count(n) - start(i), beyond...);
    return share;
  }
  template <class T>
  KW_WORD View<T> view(const T* p, int64_t n) const {
    return {p, count(n)};
  }
  KW_WORD Ones load(const One*, int64_t) const { return {}; }
  KW_WORD Ones view(const One*, int64_t) const { return {}; }
  KW_WORD Zeros load(const Zero*, int64_t) const { return {}; }

  // The sum over the row of op(sum, elements...), given to all its threads. Every thread of the block calls it. `zero` is where each sum
  // starts: A(0), or Vec<A, 2>{} for two sums at once.
  template <class S, class Op, class... Shares>
  KW_WORD S sum(S zero, Op op, const Shares&... shares) {
    auto partial = sums(zero);
    fold(partial, op, shares...);
    return total(partial);
  }
  // The same in three steps, for a row that goes by in several pieces of `length` elements.
  template <class S>
  KW_WORD Vec<S, lanes> sums(S zero) const {
    return filled<lanes>(zero);
  }
  template <class S, class Op, class... Shares>
  KW_WORD void fold(Vec<S, lanes>& partial, Op op, const Shares&... shares) const {
#pragma unroll
    for (int i = 0; i < vectors; i++) fold(i, partial, op, shares.at(i)...);
  }
  template <class S, class Op, class A, class... Rest>  // vector i alone
  KW_WORD void fold(int i, Vec<S, lanes>& partial, Op op, const Vec<A, vec>& first, const Rest&... rest) const {
#pragma unroll
    for (int j = 0; j < vec; j++) partial[i % lanes] = op(partial[i % lanes], first[j], rest[j]...);
  }
  template <class S>
  KW_WORD S total(Vec<S, lanes>& partial) {
    tree_sum<tree / threads>(partial);
    const int now = turn;
    turn = (turn + 1) % 4;
    if constexpr (cluster > 1) return cluster_sum<threads, cluster>(partial[0], now);
    return block_sum<threads, rows>(partial[0], now % 2);
  }

  // p[i] = op(elements at i...) for this thread's i < n, rounded once.
  template <class T, class Op, class... Shares>
  KW_WORD void store(T* p, int64_t n, Op op, const Shares&... shares) const {
#pragma unroll
    for (int i = 0; i < vectors; i++) store(i, p, n, op, shares.at(i)...);
  }
  template <class T, class Op, class... Vectors>  // vector i alone
  KW_WORD void store(int i, T* p, int64_t n, Op op, const Vectors&... v) const {
    kw::store<align_of<T>>(p + start(i), pack<T>(map_vector<acc_t<T>>(op, v...)), count(n) - start(i));
  }
  // share[i] = op(share[i], elements at i...), rounded to the share's type: sums down the rows, kept by the thread that owns the column, or
  // a row to which something is added.
  template <class T, class Op, class... Shares>
  KW_WORD void update(Share<T>& share, Op op, const Shares&... shares) const {
#pragma unroll
    for (int i = 0; i < vectors; i++) update(i, share, op, shares.at(i)...);
  }
  template <class T, class Op, class... Vectors>  // vector i alone
  KW_WORD void update(int i, Share<T>& share, Op op, const Vectors&... v) const {
    share.v[i] = pack<T>(map_vector<acc_t<T>>(op, share.at(i), v...));
  }
  // Adds the columns of the block's groups, in order, into group 0's. Every thread of the block calls it, once.
  template <class A>
  KW_WORD void fold_groups(Share<A>& columns) const {
    if constexpr (rows > 1) {
      __shared__ Share<A> buffer[block];
      fold_groups(columns, buffer);
    }
  }
  template <class A>  // with shared memory of the caller's: `block` of them
  KW_WORD void fold_groups(Share<A>& columns, Share<A>* buffer) const {
    if constexpr (rows > 1) {
      buffer[threadIdx.x] = columns;
      __syncthreads();
#pragma unroll 1
      for (int g = 1; g < rows; g++)
        if (group() == 0)
          for (int i = 0; i < vectors; i++) columns.v[i] = columns.v[i] + buffer[g * threads + thread()].v[i];
    }
  }

  KW_WORD static int start(int i) { return (i * threads + thread()) * vec; }  // first element of this thread's vector i

 private:
  // n as far as this tile is concerned.
  KW_WORD static int count(int64_t n) { return n < length ? static_cast<int>(n) : length; }

  template <class A, class Op, class... Vectors>
  KW_WORD static Vec<A, vec> map_vector(Op op, const Vectors&... vectors) {
    Vec<A, vec> out;
#pragma unroll
    for (int j = 0; j < vec; j++) out[j] = op(vectors[j]...);
    return out;
  }

  int turn = 0;  // modulo 4
};

}  // namespace kw
