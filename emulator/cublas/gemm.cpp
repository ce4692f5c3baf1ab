// cuBLAS: handles, and matrix products in the plainest way, so that programs that mix own kernels and cuBLAS can run. Sums are kept in
// double. Prototypes are ours: enumerations are ints in C's calling convention.
#include <algorithm>
#include <vector>

#include "emulator/cublas/numbers.h"
#include "emulator/engine/memory.h"
#include "emulator/engine/report.h"

using namespace kwemu;
namespace {
struct Matrix {
  const void* p;
  int type, leading;
  bool transposed;
  i64 stride;  // from one matrix of the batch to the next
  double at(i64 batch, i64 row, i64 column) const {
    return load(p, batch * stride + (transposed ? column + row * (i64)leading : row + column * (i64)leading), type);
  }
  bool lies_inside(i64 batch, int rows, int columns) const {  // every column as it is stored
    if (transposed) std::swap(rows, columns);
    for (i64 c = 0; rows && c < columns; c++)
      if (!inside((u64)p + (u64)(batch * stride + c * leading) * bytes_of(type), (u64)rows * bytes_of(type))) return false;
    return true;
  }
};

// C = alpha A B + beta C, column by column; what of C no column of m elements covers stays as it is.
int gemm(int m, int n, int k, double alpha, const Matrix& a, const Matrix& b, double beta, void* c, int c_type, int ldc, i64 c_stride,
         int batch) {
  if (m < 0 || n < 0 || k < 0 || !known(a.type) || !known(b.type) || !known(c_type)) return kInvalidValue;
  std::vector<double> all_a((size_t)m * (size_t)k), sums((size_t)m);
  for (i64 i = 0; i < batch; i++) {
    if ((n && !a.lies_inside(i, m, k)) || (m && !b.lies_inside(i, k, n))) {
      report("global-oob", nullptr, "a cuBLAS product reads beyond an allocation");
      return kInvalidValue;
    }
    for (i64 x = 0; x < k; x++)
      for (i64 row = 0; row < m; row++) all_a[(size_t)(x * m + row)] = a.at(i, row, x);
    for (i64 column = 0; column < n; column++) {
      i64 start = i * c_stride + column * ldc;
      u64 address = (u64)c + (u64)start * bytes_of(c_type);
      if (m && !inside(address, (u64)m * bytes_of(c_type))) {
        report("global-oob", nullptr, "a cuBLAS product writes %d elements of column %lld beyond an allocation", m, (long long)column);
        return kInvalidValue;
      }
      std::fill(sums.begin(), sums.end(), 0.);
      for (i64 x = 0; x < k; x++) {
        double factor = b.at(i, x, column);
        const double* from = &all_a[(size_t)(x * m)];
        for (i64 row = 0; row < m; row++) sums[(size_t)row] += from[row] * factor;
      }
      for (i64 row = 0; row < m; row++)
        store(c, start + row, c_type, alpha * sums[(size_t)row] + (beta == 0 ? 0 : beta * load(c, start + row, c_type)));
      host_wrote(address, (u64)m * bytes_of(c_type));
    }
  }
  return kSuccess;
}
double scalar(const void* p, int compute) {  // cublasComputeType: 70 and its kin are f64, 64 f16, the rest f32 or i32
  if (compute == 70 || compute == 71) return *(const double*)p;
  if (compute == 64 || compute == 65) return from_half(*(const u16*)p);
  if (compute == 72 || compute == 73) return *(const int*)p;
  return *(const float*)p;
}
int some_handle;
}  // namespace

KWEMU_EXPORT int cublasCreate_v2(void** handle) { return handle ? (*handle = &some_handle, kSuccess) : kInvalidValue; }
KWEMU_EXPORT int cublasDestroy_v2(void*) { return kSuccess; }
KWEMU_EXPORT int cublasSetMathMode(void*, int) { return kSuccess; }
KWEMU_EXPORT int cublasSetStream_v2(void*, void*) { return kSuccess; }
KWEMU_EXPORT int cublasSetWorkspace_v2(void*, void*, size_t) { return kSuccess; }
KWEMU_EXPORT int cublasSetAtomicsMode(void*, int) { return kSuccess; }
KWEMU_EXPORT int cublasGetVersion_v2(void*, int* version) { return *version = 130000, kSuccess; }
KWEMU_EXPORT int cublasLtCreate(void** handle) { return cublasCreate_v2(handle); }
KWEMU_EXPORT int cublasLtDestroy(void*) { return kSuccess; }
KWEMU_EXPORT const char* cublasGetStatusString(int status) {
  return status == kSuccess ? "success" : status == kNotSupported ? "not supported" : "invalid value";
}

#define KWEMU_GEMM(letter, T, type)                                                                                                       \
  KWEMU_EXPORT int cublas##letter##gemmStridedBatched(void*, int ta, int tb, int m, int n, int k, const T* alpha, const T* a, int lda,    \
                                                      long long sa, const T* b, int ldb, long long sb, const T* beta, T* c, int ldc,      \
                                                      long long sc, int count) {                                                          \
    return gemm(m, n, k, load(alpha, 0, type), {a, type, lda, ta != 0, sa}, {b, type, ldb, tb != 0, sb}, load(beta, 0, type), c, type,    \
                ldc, sc, count);                                                                                                          \
  }                                                                                                                                       \
  KWEMU_EXPORT int cublas##letter##gemm_v2(void* h, int ta, int tb, int m, int n, int k, const T* alpha, const T* a, int lda, const T* b, \
                                           int ldb, const T* beta, T* c, int ldc) {                                                       \
    return cublas##letter##gemmStridedBatched(h, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);                       \
  }                                                                                                                                       \
  KWEMU_EXPORT int cublas##letter##gemmBatched(void* h, int ta, int tb, int m, int n, int k, const T* alpha, const T* const* a, int lda,  \
                                               const T* const* b, int ldb, const T* beta, T* const* c, int ldc, int count) {              \
    for (int i = 0; i < count; i++)                                                                                                       \
      if (int e = cublas##letter##gemm_v2(h, ta, tb, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc)) return e;                    \
    return kSuccess;                                                                                                                      \
  }
// clang-format off
KWEMU_GEMM(S, float, kF32)
KWEMU_GEMM(D, double, kF64)
KWEMU_GEMM(H, u16, kF16)
// clang-format on
KWEMU_EXPORT int cublasGemmStridedBatchedEx(void*, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int a_type,
                                            int lda, long long sa, const void* b, int b_type, int ldb, long long sb, const void* beta,
                                            void* c, int c_type, int ldc, long long sc, int count, int compute, int) {
  return gemm(m, n, k, scalar(alpha, compute), {a, a_type, lda, ta != 0, sa}, {b, b_type, ldb, tb != 0, sb}, scalar(beta, compute), c,
              c_type, ldc, sc, count);
}
KWEMU_EXPORT int cublasGemmEx(void* h, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int a_type, int lda,
                              const void* b, int b_type, int ldb, const void* beta, void* c, int c_type, int ldc, int compute, int how) {
  return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute,
                                    how);
}
KWEMU_EXPORT int cublasGemmBatchedEx(void* h, int ta, int tb, int m, int n, int k, const void* alpha, const void* const* a, int a_type,
                                     int lda, const void* const* b, int b_type, int ldb, const void* beta, void* const* c, int c_type,
                                     int ldc, int count, int compute, int how) {
  for (int i = 0; i < count; i++)
    if (int e = cublasGemmEx(h, ta, tb, m, n, k, alpha, a[i], a_type, lda, b[i], b_type, ldb, beta, c[i], c_type, ldc, compute, how))
      return e;
  return kSuccess;
}
