// cuBLAS: vectors, and a matrix times a vector. Sums are kept in double.
#include <algorithm>
#include <vector>

#include "emulator/cublas/numbers.h"
#include "emulator/engine/memory.h"
#include "emulator/engine/report.h"

using namespace kwemu;
namespace {
bool pointers_on_device = false;  // scalars: cublasSetPointerMode

double scalar(const void* p, int type) { return load(p, 0, type); }
void result(void* p, int type, double v) {
  store(p, 0, type, v);
  if (find_region((u64)p)) host_wrote((u64)p, bytes_of(type));
}
struct Vector {
  const void* p;
  int type;
  i64 step;
  double at(i64 i, i64 n) const { return load(p, step < 0 ? (i - n + 1) * step : i * step, type); }
  void set(i64 i, i64 n, double v) const {
    i64 at = step < 0 ? (i - n + 1) * step : i * step;
    store(const_cast<void*>(p), at, type, v);
    host_wrote((u64)p + (u64)at * bytes_of(type), bytes_of(type));
  }
  bool lies_inside(i64 n) const {
    i64 most = (n - 1) * (step < 0 ? -step : step);
    if (n <= 0 || (known(type) && inside((u64)p, (u64)(most + 1) * bytes_of(type)))) return true;
    report("global-oob", nullptr, "a cuBLAS function's vector of %lld elements goes beyond an allocation", (long long)n);
    return false;
  }
};
template <class F>
int each(i64 n, std::initializer_list<Vector> vectors, F f) {
  for (auto& v : vectors)
    if (!v.lies_inside(n)) return kInvalidValue;
  for (i64 i = 0; i < n; i++) f(i);
  return kSuccess;
}
int dot(i64 n, const Vector& x, const Vector& y, void* out, int type) {
  double sum = 0;
  int e = each(n, {x, y}, [&](i64 i) { sum += x.at(i, n) * y.at(i, n); });
  if (!e) result(out, type, sum);
  return e;
}
int gemv(bool transposed, int m, int n, double alpha, const void* a, int type, int lda, const Vector& x, double beta, const Vector& y) {
  i64 in = transposed ? m : n, out = transposed ? n : m;
  if (!x.lies_inside(in) || !y.lies_inside(out)) return kInvalidValue;
  for (i64 i = 0; i < out; i++) {
    double sum = 0;
    for (i64 j = 0; j < in; j++) sum += load(a, transposed ? j + i * lda : i + j * lda, type) * x.at(j, in);
    y.set(i, out, alpha * sum + (beta == 0 ? 0 : beta * y.at(i, out)));
  }
  return kSuccess;
}
}  // namespace

KWEMU_EXPORT int cublasSetPointerMode_v2(void*, int mode) { return pointers_on_device = mode == 1, kSuccess; }
KWEMU_EXPORT int cublasGetPointerMode_v2(void*, int* mode) { return *mode = pointers_on_device, kSuccess; }
KWEMU_EXPORT int cublasDotEx(void*, int n, const void* x, int x_type, int ix, const void* y, int y_type, int iy, void* out, int type, int) {
  return dot(n, {x, x_type, ix}, {y, y_type, iy}, out, type);
}
KWEMU_EXPORT int cublasAxpyEx(void*, int n, const void* alpha, int alpha_type, const void* x, int x_type, int ix, void* y, int y_type,
                              int iy, int) {
  Vector from{x, x_type, ix}, to{y, y_type, iy};
  double a = scalar(alpha, alpha_type);
  return each(n, {from, to}, [&](i64 i) { to.set(i, n, a * from.at(i, n) + to.at(i, n)); });
}
#define KWEMU_VECTORS(letter, T, type, amax)                                                                                    \
  KWEMU_EXPORT int cublas##letter##dot_v2(void*, int n, const T* x, int ix, const T* y, int iy, T* out) {                       \
    return dot(n, {x, type, ix}, {y, type, iy}, out, type);                                                                     \
  }                                                                                                                             \
  KWEMU_EXPORT int cublas##letter##axpy_v2(void* h, int n, const T* alpha, const T* x, int ix, T* y, int iy) {                  \
    return cublasAxpyEx(h, n, alpha, type, x, type, ix, y, type, iy, type);                                                     \
  }                                                                                                                             \
  KWEMU_EXPORT int cublas##letter##scal_v2(void*, int n, const T* alpha, T* x, int ix) {                                        \
    Vector v{x, type, ix};                                                                                                      \
    double a = scalar(alpha, type);                                                                                             \
    return each(n, {v}, [&](i64 i) { v.set(i, n, a * v.at(i, n)); });                                                           \
  }                                                                                                                             \
  KWEMU_EXPORT int cublas##letter##copy_v2(void*, int n, const T* x, int ix, T* y, int iy) {                                    \
    Vector from{x, type, ix}, to{y, type, iy};                                                                                  \
    return each(n, {from, to}, [&](i64 i) { to.set(i, n, from.at(i, n)); });                                                    \
  }                                                                                                                             \
  KWEMU_EXPORT int cublas##letter##swap_v2(void*, int n, T* x, int ix, T* y, int iy) {                                          \
    Vector a{x, type, ix}, b{y, type, iy};                                                                                      \
    return each(n, {a, b}, [&](i64 i) {                                                                                         \
      double was = a.at(i, n);                                                                                                  \
      a.set(i, n, b.at(i, n));                                                                                                  \
      b.set(i, n, was);                                                                                                         \
    });                                                                                                                         \
  }                                                                                                                             \
  KWEMU_EXPORT int cublas##letter##nrm2_v2(void*, int n, const T* x, int ix, T* out) {                                          \
    Vector v{x, type, ix};                                                                                                      \
    double sum = 0;                                                                                                             \
    int e = each(n, {v}, [&](i64 i) { sum += v.at(i, n) * v.at(i, n); });                                                       \
    return e ? e : (result(out, type, std::sqrt(sum)), kSuccess);                                                               \
  }                                                                                                                             \
  KWEMU_EXPORT int cublas##letter##asum_v2(void*, int n, const T* x, int ix, T* out) {                                          \
    Vector v{x, type, ix};                                                                                                      \
    double sum = 0;                                                                                                             \
    int e = each(n, {v}, [&](i64 i) { sum += std::fabs(v.at(i, n)); });                                                         \
    return e ? e : (result(out, type, sum), kSuccess);                                                                          \
  }                                                                                                                             \
  KWEMU_EXPORT int amax(void*, int n, const T* x, int ix, int* out) {                                                           \
    Vector v{x, type, ix};                                                                                                      \
    double best = -1;                                                                                                           \
    int at = 0; /* counted from 1 */                                                                                            \
    int e = each(n, {v}, [&](i64 i) {                                                                                           \
      if (std::fabs(v.at(i, n)) > best) best = std::fabs(v.at(i, n)), at = (int)i + 1;                                          \
    });                                                                                                                         \
    return e ? e : (result(out, kS32, at), kSuccess);                                                                           \
  }                                                                                                                             \
  KWEMU_EXPORT int cublas##letter##gemv_v2(void*, int t, int m, int n, const T* alpha, const T* a, int lda, const T* x, int ix, \
                                           const T* beta, T* y, int iy) {                                                       \
    return gemv(t != 0, m, n, scalar(alpha, type), a, type, lda, {x, type, ix}, scalar(beta, type), {y, type, iy});             \
  }
// clang-format off
KWEMU_VECTORS(S, float, kF32, cublasIsamax_v2)
KWEMU_VECTORS(D, double, kF64, cublasIdamax_v2)
// clang-format on
