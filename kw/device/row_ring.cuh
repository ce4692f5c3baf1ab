// RowRing: a team's rows, one after the other, on their way through a Ring (ring.cuh) while the team works on the row before. From sm_80
// on, for rows aligned to 16 bytes.
//
//   RowRing<T, 2, Tile, slots> rows(tile, count, length, p.x, p.dy);        of `count` rows, which ones team() and teams() say
//   tile.begin();
//   auto pass = [&](int first) { ... rows.at(0, first + i), rows.at(1, first + i) ... return tile.post(partial); };
//   rows.for_each(pass, [&](auto posted) {
//     auto sum = tile.collect(posted);
//     const auto later = rows.later();
//     ... rows.at(0, i) ...                                this thread's vector i of each tensor, in the accumulator's type
//     rows.refill(i, later);                               for each i in order, when vector i is used up: its place takes a later one
//   });
//
// for_each calls `pass` for the sums over a row whose first vector is in place `first`, and then the other with what that returned. Where
// the ring holds two rows, the next row's pass comes first, so that its sum is on its way while this row is worked on (ADR 0015).
#pragma once
#include "kw/device/ring.cuh"
#include "kw/device/row.cuh"

namespace kw {

// T: of the elements of all `tensors`. slots: places of the ring, each a vector of every tensor; at least Tile::vectors.
template <class T, int tensors, class Tile, int slots>
struct RowRing {
  static constexpr int vectors = Tile::vectors;
  static_assert(slots >= vectors && sizeof(T) * Tile::vec == 16);

  template <class... R>
  KW_WORD RowRing(const Tile& tile, int64_t count, int64_t length, const R&... rows)
      : tensor{rows...}, count(count), length(length), first(tile.team() * Tile::rows), group(tile.group()) {
#pragma unroll 1  // unrolled it takes 10 % of the time to compile a kernel
    for (int ahead = 0; ahead * vectors < slots; ahead++) {
      const Source from = source(ahead);
#pragma unroll
      for (int i = 0; i < vectors; i++)
        if (ahead * vectors + i < slots) fetch(ahead * vectors + i, from, i);
    }
  }
  // Calls pass(first) -> posted and finish(posted) for each row of the team: see above.
  template <class Pass, class Finish>
  KW_WORD void for_each(Pass pass, Finish finish) {
    constexpr bool two = slots >= 2 * vectors;
    if (!any()) return drain();
    ring.template wait<slots - vectors>();
    auto posted = pass(0);
    while (true) {
      const bool more = first + step() < count;
      auto next = posted;
      if (two && more) {
        ring.template wait<two ? slots - 2 * vectors : 0>();
        next = pass(vectors);
      }
      finish(posted);
      ring.advance(vectors % slots);
      first += step();
      if (!more) break;
      if constexpr (!two) {
        ring.template wait<slots - vectors>();
        next = pass(0);
      }
      posted = next;
    }
    drain();
  }
  KW_WORD int64_t row() const { return first + group; }        // this thread's
  KW_WORD int64_t n() const { return row() < count ? length : 0; }  // its elements: none for a thread beyond the last row
  KW_WORD Vec<acc_t<T>, Tile::vec> at(int t, int i) const { return unpack(ring.template at<T, Tile::vec>(i, t)); }

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

  Ring<slots, tensors, Tile::block> ring;

 private:
  KW_WORD bool any() const { return first < count; }  // the same for all threads of the team
  KW_WORD static int64_t step() { return Tile::teams() * Tile::rows; }
  KW_WORD void drain() { ring.template wait<0>(); }  // no thread ends with a copy on its way
  KW_WORD Source source(int ahead) const {
    const int64_t of = row() + ahead * step();
    Source s;
#pragma unroll
    for (int t = 0; t < tensors; t++) s.p[t] = as<T>(tensor[t], of);
    s.n = of < count ? length : 0;
    return s;
  }
  KW_WORD void fetch(int i, const Source& from, int vector) {  // into place i
    const int start = Tile::start(vector);
#pragma unroll
    for (int t = 0; t < tensors; t++) ring.fetch(i, t, from.p[t] + start, start < from.n);
    ring.sent();
  }

  Rows tensor[tensors];
  int64_t count, length, first;
  int group;
};

}  // namespace kw
