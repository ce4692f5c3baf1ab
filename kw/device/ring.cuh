// Ring: memory on its way to a thread while it works on what came before. Each thread has a queue of its own in dynamic shared memory,
// which it fills with asynchronous copies and empties itself, so no barrier is needed, and what is on its way takes no registers. From
// sm_80 on.
//
//   Ring<slots, 2, block> ring;                     `slots` places, each of 2 vectors of 16 bytes; Ring::bytes of dynamic shared memory
//   ring.fetch(i, 0, px, true), ring.fetch(i, 1, py, true), ring.sent();          into every place once, in order
//   for (...) {
//     ring.wait<slots - 1>();                       the oldest place is there
//     Vec<T, n> x = ring.at<T, n>(0, 0);
//     ring.fetch(0, 0, ...), ring.fetch(0, 1, ...), ring.sent();                  the place goes to the back of the queue
//     ring.advance(1);
//   }
//   ring.wait<0>();                                 no thread ends with a copy on its way
#pragma once
#include "kw/device/vector.cuh"

namespace kw {

namespace detail {
// 16 bytes to shared memory, the first `bytes` from global memory, the rest zeros; both addresses are multiples of 16.
KW_WORD void copy_async(void* to, const void* from, int bytes) {
#ifdef KW_EMULATED
  kwemu_cp_async(to, from, 16, bytes);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(bytes)
               : "memory");
#endif
}
KW_WORD void commit_copies() {
#ifdef KW_EMULATED
  kwemu_cp_async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int left>
KW_WORD void wait_for_copies() {
#ifdef KW_EMULATED
  kwemu_cp_async_wait(left);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}
}  // namespace detail

template <int slots_, int tensors_, int block_>  // block: threads of the block
struct Ring {
  static constexpr int slots = slots_, tensors = tensors_, block = block_;
  static constexpr int bytes = slots * tensors * block * 16;

  // Fetches `tensor` of the place `i` behind the front (i < slots): 16 bytes from `from`, or zeros. The place must have been used up.
  template <class T>
  KW_WORD void fetch(int i, int tensor, const T* from, bool present) {
    detail::copy_async(place(i, tensor), from, present ? 16 : 0);
  }
  // Every fetch since the last call belongs to one place.
  KW_WORD void sent() { detail::commit_copies(); }
  // Waits until at most the `left` places that were sent last are still on their way.
  template <int left>
  KW_WORD void wait() {
    detail::wait_for_copies<left>();
  }
  template <class T, int n>
  KW_WORD Vec<T, n> at(int i, int tensor) const {
    static_assert(sizeof(T) * n == 16);
    return load<n, 16>(reinterpret_cast<const T*>(place(i, tensor)), n);
  }
  KW_WORD void advance(int count) {  // at most `slots`
    front += count;
    if (front >= slots) front -= slots;
  }
  // The memory for something else, once every thread has emptied its queue (wait<0>). Every thread of the block calls it.
  template <class T>
  KW_WORD T* reuse() const {
    __syncthreads();
    return reinterpret_cast<T*>(memory());
  }

 private:
  KW_WORD static detail::Piece<16>* memory() {
    extern __shared__ detail::Piece<16> kw_ring[];
    return kw_ring;
  }
  // Neighbouring threads have neighbouring 16 bytes: no bank is asked twice.
  KW_WORD detail::Piece<16>* place(int i, int tensor) const {
    int slot = front + i;
    if (slot >= slots) slot -= slots;
    return memory() + (slot * tensors + tensor) * block + threadIdx.x;
  }
  int front = 0;
};

}  // namespace kw
