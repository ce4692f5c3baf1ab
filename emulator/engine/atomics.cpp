// Atomics: done here, in the library, so that the compiler observes nothing of them; first checked like any access.
#include <algorithm>

#include "emulator/engine/access.h"

namespace kwemu {
namespace {
template <class T>
T apply(int op, T old, T v, T compare) {
  switch (op) {
    case KWEMU_MIN:
      return std::min(old, v);
    case KWEMU_MAX:
      return std::max(old, v);
    case KWEMU_EXCHANGE:
      return v;
    case KWEMU_INC:
      return old >= v ? T(0) : T(old + 1);
    case KWEMU_DEC:
      return old == 0 || old > v ? v : T(old - 1);
    case KWEMU_CAS:
      return old == compare ? v : old;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    return op == KWEMU_SUB ? old - v : old + v;
  } else {
    using U = std::make_unsigned_t<T>;  // atomics wrap
    switch (op) {
      case KWEMU_SUB:
        return T(U(old) - U(v));
      case KWEMU_AND:
        return old & v;
      case KWEMU_OR:
        return old | v;
      case KWEMU_XOR:
        return old ^ v;
      default:
        return T(U(old) + U(v));
    }
  }
}
template <class T>
void perform(void* address, int op, const void* operand, const void* compare, void* old) {
  T before, v, c{};
  memcpy(&before, address, sizeof before);
  memcpy(&v, operand, sizeof v);
  if (compare) memcpy(&c, compare, sizeof c);
  T after = apply<T>(op, before, v, c);
  memcpy(address, &after, sizeof after);
  memcpy(old, &before, sizeof before);
}

void before_atomic(u64 address, u32 bytes, void* pc) {
  if (address % bytes) {
    report("misaligned", pc, "atomic of %u bytes at %p", bytes, (void*)address);
    stop_launch();
  }
  bool global = address - engine.device < kDeviceBytes, shared = address - engine.shared < engine.shared_bytes;
  if (engine.options.detect && (global || shared)) {
    Region* r = global ? global_region(address, bytes, pc, kAtomicAccess) : shared_region(address, bytes, pc, kAtomicAccess);
    u64 count;
    Cell* c = cells_of(r, address, bytes, count);
    if (!is_init(r, c))
      report(shared ? "uninit-shared" : "uninit-global", pc, "atomic on %s, which was never written", name_of_address(r, address).c_str());
    // After the thread's own plain store, nobody else has seen the value: as if the store had been atomic.
    if (!(c->flags & kAtomic) && !other_thread(c->write, now(current))) c->flags |= kAtomic;
  }
  access(address, bytes, kAtomicAccess, pc);
  if (engine.options.detect) touch_atomic(address, true, true);
}
}  // namespace
}  // namespace kwemu

using namespace kwemu;
KWEMU_EXPORT void kwemu_atomic(void* address, int type, int op, const void* operand, const void* compare, void* old) {
  before_atomic((u64)address, type == KWEMU_U16 ? 2 : type == KWEMU_I64 || type == KWEMU_U64 || type == KWEMU_F64 ? 8 : 4, KWEMU_PC);
  switch (type) {
    case KWEMU_I32:
      return perform<int32_t>(address, op, operand, compare, old);
    case KWEMU_U32:
      return perform<u32>(address, op, operand, compare, old);
    case KWEMU_I64:
      return perform<i64>(address, op, operand, compare, old);
    case KWEMU_U64:
      return perform<u64>(address, op, operand, compare, old);
    case KWEMU_F32:
      return perform<float>(address, op, operand, compare, old);
    case KWEMU_F64:
      return perform<double>(address, op, operand, compare, old);
    case KWEMU_U16:
      return perform<u16>(address, op, operand, compare, old);
  }
}

// The compiler's own atomics (__atomic_*): relaxed accesses, with fences around them for the stronger orders.
KWEMU_EXPORT void kwemu_tsan_atomic_thread_fence(int) { kwemu_fence(); }
KWEMU_EXPORT void kwemu_tsan_atomic_signal_fence(int) {}
#define KWEMU_RMW(bits, type, name, expression)                                    \
  KWEMU_EXPORT type kwemu_tsan_atomic##bits##_##name(type* p, type v, int order) { \
    if (order) kwemu_fence();                                                      \
    before_atomic((u64)p, sizeof *p, KWEMU_PC);                                    \
    type old = *p;                                                                 \
    *p = (type)(expression);                                                       \
    if (order) kwemu_fence();                                                      \
    return old;                                                                    \
  }
#define KWEMU_COMPILER_ATOMICS(bits, type)                                                                                  \
  KWEMU_EXPORT type kwemu_tsan_atomic##bits##_load(const type* p, int order) {                                              \
    access((u64)p, sizeof *p, kVolatileRead, KWEMU_PC);                                                                     \
    if (order) kwemu_fence();                                                                                               \
    return *p;                                                                                                              \
  }                                                                                                                         \
  KWEMU_EXPORT void kwemu_tsan_atomic##bits##_store(type* p, type v, int order) {                                           \
    if (order) kwemu_fence();                                                                                               \
    access((u64)p, sizeof *p, kVolatileWrite, KWEMU_PC);                                                                    \
    *p = v;                                                                                                                 \
  }                                                                                                                         \
  KWEMU_RMW(bits, type, exchange, v)                                                                                        \
  KWEMU_RMW(bits, type, fetch_add, old + v)                                                                                 \
  KWEMU_RMW(bits, type, fetch_sub, old - v)                                                                                 \
  KWEMU_RMW(bits, type, fetch_and, old& v)                                                                                  \
  KWEMU_RMW(bits, type, fetch_or, old | v)                                                                                  \
  KWEMU_RMW(bits, type, fetch_xor, old ^ v)                                                                                 \
  KWEMU_EXPORT bool kwemu_tsan_atomic##bits##_compare_exchange_strong(type* p, type* expected, type v, int order, int) {    \
    if (order) kwemu_fence();                                                                                               \
    before_atomic((u64)p, sizeof *p, KWEMU_PC);                                                                             \
    bool equal = *p == *expected;                                                                                           \
    if (equal)                                                                                                              \
      *p = v;                                                                                                               \
    else                                                                                                                    \
      *expected = *p;                                                                                                       \
    if (order) kwemu_fence();                                                                                               \
    return equal;                                                                                                           \
  }                                                                                                                         \
  KWEMU_EXPORT bool kwemu_tsan_atomic##bits##_compare_exchange_weak(type* p, type* expected, type v, int order, int fail) { \
    return kwemu_tsan_atomic##bits##_compare_exchange_strong(p, expected, v, order, fail);                                  \
  }
KWEMU_COMPILER_ATOMICS(8, u8)
KWEMU_COMPILER_ATOMICS(16, u16)
KWEMU_COMPILER_ATOMICS(32, u32)
KWEMU_COMPILER_ATOMICS(64, u64)
