// RowRing: a team's rows, one after the other, on their way through a Ring (ring.cuh) while the team works on the row before. From sm_80
// on, for rows aligned to 16 bytes.
//
//   RowRing<T, 2, Tile, slots> rows(tile, count, length, p.x, p.dy);        of `count` rows, which ones team() and teams() say
//   tile.begin();
//   for (; rows.any(); rows.next()) {
//     rows.wait();                                          the row is there
//     auto x = rows.at(0, i), dy = rows.at(1, i);           this thread's vector i of each, in the accumulator's type, i < Tile::vectors
//     const auto later = rows.later();
//     rows.refill(i, later);                                for each i in order, when vector i is used up: its place takes a later one
//   }
//   rows.drain();
#pragma once
#include "kw/device/ring.cuh"
#include "kw/device/row.cuh"

namespace kw {

struct Every {  // row
  KW_WORD bool operator()(int64_t) const { return true; }
};

// T: of the elements of all `tensors`. slots: places of the ring, each a vector of every tensor; at least Tile::vectors. wanted(row):
// whether the row is read at all; else it comes as zeros. `later`, which asks that of rows to come, may be called before `wait`.
template <class T, int tensors, class Tile, int slots, class Wanted = Every>
struct RowRing {
  static constexpr int vectors = Tile::vectors;
  static_assert(slots >= vectors && sizeof(T) * Tile::vec == 16);

  template <class... R>
  KW_WORD RowRing(const Tile& tile, int64_t count, int64_t length, const R&... rows) : RowRing(Wanted{}, tile, count, length, rows...) {}
  template <class... R>
  KW_WORD RowRing(const Wanted& wanted, const Tile& tile, int64_t count, int64_t length, const R&... rows)
      : tensor{rows...}, wanted(wanted), count(count), length(length), first(tile.team() * Tile::rows), group(tile.group()) {
#pragma unroll 1  // unrolled it takes 10 % of the time to compile a kernel
    for (int ahead = 0; ahead * vectors < slots; ahead++) {
      const Source from = source(ahead);
#pragma unroll
      for (int i = 0; i < vectors; i++)
        if (ahead * vectors + i < slots) fetch(ahead * vectors + i, from, i);
    }
  }
  KW_WORD bool any() const { return first < count; }                // the same for all threads of the team
  KW_WORD int64_t row() const { return first + group; }             // this thread's
  KW_WORD int64_t n() const { return row() < count ? length : 0; }  // its elements: none for a thread beyond the last row
  KW_WORD Vec<acc_t<T>, Tile::vec> at(int t, int i) const { return unpack(ring.template at<T, Tile::vec>(i, t)); }

  KW_WORD void wait() { ring.template wait<slots - vectors>(); }
  struct Source {  // a row to fetch from
    const T* p[tensors];
    int64_t n;
  };
  struct Later {
    Source near, far;
  };
  // Place i is next for vector i + slots, counted from this row on: of one row, or the one after it.
  KW_WORD Later later() const { return {source(slots / vectors), slots % vectors ? source(slots / vectors + 1) : Source{}}; }
  KW_WORD void refill(int i, const Later& rows) {
    fetch(i, (i + slots) / vectors == slots / vectors ? rows.near : rows.far, (i + slots) % vectors);
  }

  KW_WORD static int64_t step() { return Tile::teams() * Tile::rows; }  // from a row to the next
  KW_WORD void next() {
    ring.advance(vectors % slots);
    first += step();
  }
  KW_WORD void drain() { ring.template wait<0>(); }  // no thread ends with a copy on its way

  Ring<slots, tensors, Tile::block> ring;

 private:
  KW_WORD Source source(int ahead) const {
    const int64_t of = row() + ahead * step();
    Source s;
#pragma unroll
    for (int t = 0; t < tensors; t++) s.p[t] = as<T>(tensor[t], of);
    s.n = of < count && wanted(of) ? length : 0;
    return s;
  }
  KW_WORD void fetch(int i, const Source& from, int vector) {  // into place i
    const int start = Tile::start(vector);
#pragma unroll
    for (int t = 0; t < tensors; t++) ring.fetch(i, t, from.p[t] + start, start < from.n);
    ring.sent();
  }

  Rows tensor[tensors];
  Wanted wanted;
  int64_t count, length, first;
  int group;
};

}  // namespace kw
