// CUDA's device language as host C++, force-included before device code: built-in variables, barriers, warp functions, atomics. It
// includes no header: device code that compiles here must compile by NVRTC, which finds none either. A whole program (KWEMU_PROGRAM) has
// the toolkit's own types, and the host's functions, before this.
#pragma once

#define KWEMU_INLINE static inline __attribute__((always_inline, unused))
#ifndef KWEMU_PROGRAM
#define __noinline__ __attribute__((noinline))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long clock_t;

// ---- vector types -----------------------------------------------------------------------------------------------------------------
#define KWEMU_VECTOR1(T, N) \
  struct N##1 { T x; };
#define KWEMU_VECTOR2(T, N, A) \
  struct __align__(A) N##2 { T x, y; };
#define KWEMU_VECTOR3(T, N) \
  struct N##3 { T x, y, z; };
#define KWEMU_VECTOR4(T, N, A) \
  struct __align__(A) N##4 { T x, y, z, w; };
#define KWEMU_MAKE(T, N)                                                       \
  KWEMU_INLINE constexpr N##1 make_##N##1(T x) { return {x}; }                 \
  KWEMU_INLINE constexpr N##2 make_##N##2(T x, T y) { return {x, y}; }         \
  KWEMU_INLINE constexpr N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
  KWEMU_INLINE constexpr N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define KWEMU_VECTORS(T, N, A2, A4) KWEMU_VECTOR1(T, N) KWEMU_VECTOR2(T, N, A2) KWEMU_VECTOR3(T, N) KWEMU_VECTOR4(T, N, A4) KWEMU_MAKE(T, N)
KWEMU_VECTORS(signed char, char, 2, 4)
KWEMU_VECTORS(unsigned char, uchar, 2, 4)
KWEMU_VECTORS(short, short, 4, 8)
KWEMU_VECTORS(unsigned short, ushort, 4, 8)
KWEMU_VECTORS(int, int, 8, 16)
KWEMU_VECTORS(unsigned, uint, 8, 16)
KWEMU_VECTORS(long, long, 16, 16)
KWEMU_VECTORS(unsigned long, ulong, 16, 16)
KWEMU_VECTORS(long long, longlong, 16, 16)
KWEMU_VECTORS(unsigned long long, ulonglong, 16, 16)
KWEMU_VECTORS(float, float, 8, 16)
KWEMU_VECTORS(double, double, 16, 16)
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
#endif

// ---- built-in variables: read by asm, so that they are neither observed nor cached over a switch. The rewriter puts these calls in. ---
static constexpr int warpSize = 32;
#define KWEMU_REGISTER(f)                                   \
  ({                                                        \
    unsigned kwemu_r;                                       \
    asm("movl %1, %0" : "=r"(kwemu_r) : "m"(kwemu_regs.f)); \
    kwemu_r;                                                \
  })
KWEMU_INLINE uint3 kwemu_threadIdx() { return {KWEMU_REGISTER(tx), KWEMU_REGISTER(ty), KWEMU_REGISTER(tz)}; }
KWEMU_INLINE uint3 kwemu_blockIdx() { return {KWEMU_REGISTER(bx), KWEMU_REGISTER(by), KWEMU_REGISTER(bz)}; }
KWEMU_INLINE dim3 kwemu_blockDim() { return {KWEMU_REGISTER(nx), KWEMU_REGISTER(ny), KWEMU_REGISTER(nz)}; }
KWEMU_INLINE dim3 kwemu_gridDim() { return {KWEMU_REGISTER(gx), KWEMU_REGISTER(gy), KWEMU_REGISTER(gz)}; }
KWEMU_INLINE unsigned kwemu_laneid() { return KWEMU_REGISTER(lane); }
KWEMU_INLINE unsigned kwemu_cluster_rank() { return KWEMU_REGISTER(rank); }
KWEMU_INLINE unsigned kwemu_cluster_size() { return KWEMU_REGISTER(cluster); }

// ---- barriers and fences ------------------------------------------------------------------------------------------------------------
KWEMU_INLINE void __syncthreads() { kwemu_block_barrier(); }
KWEMU_INLINE int __syncthreads_count(int p) { return kwemu_block_vote(0, p); }
KWEMU_INLINE int __syncthreads_and(int p) { return kwemu_block_vote(1, p); }
KWEMU_INLINE int __syncthreads_or(int p) { return kwemu_block_vote(2, p); }
KWEMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { kwemu_warp_op(KWEMU_SYNC, mask, nullptr, 0, 0); }
KWEMU_INLINE void __threadfence() { kwemu_fence(); }
KWEMU_INLINE void __threadfence_block() { kwemu_fence(); }
KWEMU_INLINE void __threadfence_system() { kwemu_fence(); }
KWEMU_INLINE unsigned __activemask() { return kwemu_active_mask(); }
KWEMU_INLINE void __nanosleep(unsigned) {}
KWEMU_INLINE void __trap() { kwemu_trap(); }
KWEMU_INLINE long long clock64() { return kwemu_clock(); }
#ifndef KWEMU_PROGRAM
KWEMU_INLINE clock_t clock() { return (clock_t)kwemu_clock(); }
#undef assert
#define assert(x) ((x) ? (void)0 : kwemu_assert_failed(#x, __FILE__, __LINE__))
extern "C" int printf(const char*, ...);
extern "C" void* memcpy(void*, const void*, size_t) noexcept;  // these three are checked like accesses
extern "C" void* memmove(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;
#endif

// ---- warp functions -----------------------------------------------------------------------------------------------------------------
template <class T>
KWEMU_INLINE T kwemu_exchange(unsigned mask, T v, unsigned source) {
  static_assert(sizeof(T) <= 16, "a shuffle moves at most 16 bytes");
  alignas(16) char buffer[16] = {};
  __builtin_memcpy(buffer, &v, sizeof v);
  kwemu_warp_op(KWEMU_SHUFFLE, mask, buffer, sizeof buffer, source);
  __builtin_memcpy(&v, buffer, sizeof v);
  return v;
}
template <class T>
KWEMU_INLINE T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  unsigned lane = kwemu_laneid();
  return kwemu_exchange(mask, v, (lane & ~(unsigned)(width - 1)) | ((unsigned)source & (unsigned)(width - 1)));
}
template <class T>
KWEMU_INLINE T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  unsigned lane = kwemu_laneid(), in = lane & (unsigned)(width - 1);
  return kwemu_exchange(mask, v, in >= delta ? lane - delta : lane);
}
template <class T>
KWEMU_INLINE T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  unsigned lane = kwemu_laneid(), in = lane & (unsigned)(width - 1);
  return kwemu_exchange(mask, v, in + delta < (unsigned)width ? lane + delta : lane);
}
template <class T>
KWEMU_INLINE T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  unsigned lane = kwemu_laneid(), end = (lane & ~(unsigned)(width - 1)) + (unsigned)width, source = lane ^ (unsigned)bits;
  return kwemu_exchange(mask, v, source < end ? source : lane);
}
KWEMU_INLINE unsigned __ballot_sync(unsigned mask, int p) {
  unsigned v = p != 0;
  kwemu_warp_op(KWEMU_BALLOT, mask, &v, 4, 0);
  return v;
}
KWEMU_INLINE int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
KWEMU_INLINE int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, p == 0) == 0; }
template <class T>
KWEMU_INLINE unsigned __match_any_sync(unsigned mask, T x) {
  unsigned long long v = 0;
  __builtin_memcpy(&v, &x, sizeof x);
  kwemu_warp_op(KWEMU_MATCH, mask, &v, 8, 0);
  return (unsigned)v;
}
#define KWEMU_REDUCTION(name, T, op)              \
  KWEMU_INLINE T name(unsigned mask, T x) {       \
    long long v = x;                              \
    kwemu_warp_op(KWEMU_REDUCE, mask, &v, 8, op); \
    return (T)v;                                  \
  }
KWEMU_REDUCTION(__reduce_add_sync, int, KWEMU_RED_ADD)
KWEMU_REDUCTION(__reduce_min_sync, int, KWEMU_RED_MIN)
KWEMU_REDUCTION(__reduce_max_sync, int, KWEMU_RED_MAX)
KWEMU_REDUCTION(__reduce_add_sync, unsigned, KWEMU_RED_ADD)
KWEMU_REDUCTION(__reduce_min_sync, unsigned, KWEMU_RED_MIN)
KWEMU_REDUCTION(__reduce_max_sync, unsigned, KWEMU_RED_MAX)
KWEMU_REDUCTION(__reduce_and_sync, unsigned, KWEMU_RED_AND)
KWEMU_REDUCTION(__reduce_or_sync, unsigned, KWEMU_RED_OR)
KWEMU_REDUCTION(__reduce_xor_sync, unsigned, KWEMU_RED_XOR)

// ---- atomics ------------------------------------------------------------------------------------------------------------------------
#define KWEMU_ATOMIC(T, type, name, op)                         \
  KWEMU_INLINE T name(T* p, T v) {                              \
    T old;                                                      \
    kwemu_atomic((void*)p, type, op, &v, nullptr, &old);        \
    return old;                                                 \
  }                                                             \
  KWEMU_INLINE T name##_block(T* p, T v) { return name(p, v); } \
  KWEMU_INLINE T name##_system(T* p, T v) { return name(p, v); }
#define KWEMU_ATOMIC_CAS(T, type)                                \
  KWEMU_INLINE T atomicCAS(T* p, T compare, T v) {               \
    T old;                                                       \
    kwemu_atomic((void*)p, type, KWEMU_CAS, &v, &compare, &old); \
    return old;                                                  \
  }
#define KWEMU_ATOMIC_ARITHMETIC(T, type)      \
  KWEMU_ATOMIC(T, type, atomicAdd, KWEMU_ADD) \
  KWEMU_ATOMIC(T, type, atomicExch, KWEMU_EXCHANGE)
#define KWEMU_ATOMIC_INTEGER(T, type)         \
  KWEMU_ATOMIC_ARITHMETIC(T, type)            \
  KWEMU_ATOMIC(T, type, atomicMin, KWEMU_MIN) \
  KWEMU_ATOMIC(T, type, atomicMax, KWEMU_MAX) \
  KWEMU_ATOMIC(T, type, atomicAnd, KWEMU_AND) \
  KWEMU_ATOMIC(T, type, atomicOr, KWEMU_OR)   \
  KWEMU_ATOMIC(T, type, atomicXor, KWEMU_XOR) \
  KWEMU_ATOMIC_CAS(T, type)
KWEMU_ATOMIC_INTEGER(int, KWEMU_I32)
KWEMU_ATOMIC_INTEGER(unsigned, KWEMU_U32)
KWEMU_ATOMIC_INTEGER(long long, KWEMU_I64)
KWEMU_ATOMIC_INTEGER(unsigned long long, KWEMU_U64)
KWEMU_ATOMIC_ARITHMETIC(float, KWEMU_F32)
KWEMU_ATOMIC_ARITHMETIC(double, KWEMU_F64)
KWEMU_ATOMIC(int, KWEMU_I32, atomicSub, KWEMU_SUB)
KWEMU_ATOMIC(unsigned, KWEMU_U32, atomicSub, KWEMU_SUB)
KWEMU_ATOMIC(unsigned, KWEMU_U32, atomicInc, KWEMU_INC)
KWEMU_ATOMIC(unsigned, KWEMU_U32, atomicDec, KWEMU_DEC)
KWEMU_ATOMIC_CAS(unsigned short, KWEMU_U16)
// For number types that are structs (half precision): by compare and swap, as they are on a GPU too.
template <class T>
KWEMU_INLINE T atomicAdd(T* p, T v) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "an atomic of a struct takes 2 or 4 bytes");
  constexpr int type = sizeof(T) == 2 ? KWEMU_U16 : KWEMU_U32;
  unsigned seen = 0, want, old = 0;
  kwemu_atomic((void*)p, type, KWEMU_CAS, &seen, &seen, &old);
  do {
    seen = old;
    T held, sum;
    __builtin_memcpy(&held, &seen, sizeof held);
    sum = held + v;
    want = 0;
    __builtin_memcpy(&want, &sum, sizeof sum);
    old = 0;
    kwemu_atomic((void*)p, type, KWEMU_CAS, &want, &seen, &old);
  } while (old != seen);
  T result;
  __builtin_memcpy(&result, &old, sizeof result);
  return result;
}

// ---- cached loads and stores are plain accesses of the caller -----------------------------------------------------------------------
#define KWEMU_LOAD(name)            \
  template <class T>                \
  KWEMU_INLINE T name(const T* p) { \
    return *p;                      \
  }
#define KWEMU_STORE(name)             \
  template <class T>                  \
  KWEMU_INLINE void name(T* p, T v) { \
    *p = v;                           \
  }
// clang-format off
KWEMU_LOAD(__ldg)
KWEMU_LOAD(__ldcs)
KWEMU_LOAD(__ldcg)
KWEMU_LOAD(__ldca)
KWEMU_LOAD(__ldlu)
KWEMU_LOAD(__ldcv)
KWEMU_STORE(__stcs)
KWEMU_STORE(__stcg)
KWEMU_STORE(__stwb)
KWEMU_STORE(__stwt)
// clang-format on

// ---- dynamic shared memory: the rewriter turns `extern __shared__ T name[];` into a reference to this, and asks for its definition ----
#ifdef KWEMU_DYNAMIC_SHARED
extern __thread char kwemu_dynamic_shared[];
template <class T>
KWEMU_INLINE T* kwemu_dynamic() {
  return (T*)kwemu_dynamic_shared;
}
#endif

// ---- how a kernel is called: the driver has an array of pointers to arguments ---------------------------------------------------------
template <class... E>
struct kwemu_layout {
  kwemu_parameter parameters[sizeof...(E) + 1] = {};
  constexpr kwemu_layout() {
    unsigned i = 0, offset = 0;
    ((offset = (offset + alignof(E) - 1) / alignof(E) * alignof(E), parameters[i] = {offset, sizeof(E)}, offset += sizeof(E), i++), ...);
  }
};
template <unsigned...>
struct kwemu_indices {};
template <unsigned N, unsigned... I>
struct kwemu_count_up : kwemu_count_up<N - 1, N - 1, I...> {};
template <unsigned... I>
struct kwemu_count_up<0, I...> {
  using type = kwemu_indices<I...>;
};
template <class T>
struct kwemu_value {
  using type = T;
};
template <class T>
struct kwemu_value<const T> {
  using type = T;
};
template <auto kernel>
struct kwemu_caller;
template <class... E, void (*kernel)(E...)>
struct kwemu_caller<kernel> {
  static constexpr kwemu_layout<typename kwemu_value<E>::type...> layout{};
  static constexpr unsigned count = sizeof...(E);
  template <unsigned... I>
  static __attribute__((no_sanitize_thread, no_sanitize("undefined"))) void call(void** args, kwemu_indices<I...>) {
    kernel(*(typename kwemu_value<E>::type*)args[I]...);
  }
  static __attribute__((no_sanitize_thread, no_sanitize("undefined"))) void run(void** args) {
    call(args, typename kwemu_count_up<count>::type{});
  }
};
