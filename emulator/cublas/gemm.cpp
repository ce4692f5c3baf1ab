// cuBLAS: handles, and matrix products in the plainest way, so that programs that mix own kernels and cuBLAS can run. Sums are kept in
// double. Prototypes are ours: enumerations are ints in C's calling convention.
#include <cmath>

#include "emulator/engine/memory.h"
#include "emulator/engine/report.h"

using namespace kwemu;
namespace {
enum DataType { kF32 = 0, kF64 = 1, kF16 = 2, kS8 = 3, kS32 = 10, kBf16 = 14 };  // cudaDataType
constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;

float from_half(u16 h) { return (float)__builtin_bit_cast(_Float16, h); }
size_t bytes_of(int type) { return type == kF64 ? 8 : type == kF32 || type == kS32 ? 4 : type == kS8 ? 1 : 2; }
bool known(int type) { return type == kF32 || type == kF64 || type == kF16 || type == kBf16 || type == kS8 || type == kS32; }
double load(const void* p, i64 i, int type) {
  switch (type) {
    case kF64:
      return ((const double*)p)[i];
    case kF16:
      return from_half(((const u16*)p)[i]);
    case kBf16:
      return __builtin_bit_cast(float, (u32)((const u16*)p)[i] << 16);
    case kS8:
      return ((const signed char*)p)[i];
    case kS32:
      return ((const int*)p)[i];
    default:
      return ((const float*)p)[i];
  }
}
void store(void* p, i64 i, int type, double v) {
  if (type == kF64) ((double*)p)[i] = v;
  if (type == kF32) ((float*)p)[i] = (float)v;
  if (type == kF16) ((u16*)p)[i] = __builtin_bit_cast(u16, (_Float16)v);
  if (type == kS32) ((int*)p)[i] = (int)v;
  if (type == kBf16) {
    u32 b = __builtin_bit_cast(u32, (float)v);
    ((u16*)p)[i] = std::isnan(v) ? 0x7fff : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
  }
}

struct Matrix {
  const void* p;
  int type, leading;
  bool transposed;
  i64 stride;  // from one matrix of the batch to the next
  double at(i64 batch, i64 row, i64 column) const {
    return load(p, batch * stride + (transposed ? column + row * (i64)leading : row + column * (i64)leading), type);
  }
};

// C = alpha A B + beta C, column by column; what of C no column of m elements covers stays as it is.
int gemm(int m, int n, int k, double alpha, const Matrix& a, const Matrix& b, double beta, void* c, int c_type, int ldc, i64 c_stride,
         int batch) {
  if (m < 0 || n < 0 || k < 0 || !known(a.type) || !known(b.type) || !known(c_type)) return kInvalidValue;
  for (i64 i = 0; i < batch; i++)
    for (i64 column = 0; column < n; column++) {
      i64 start = i * c_stride + column * ldc;
      u64 address = (u64)c + (u64)start * bytes_of(c_type);
      if (m && !inside(address, (u64)m * bytes_of(c_type))) {
        report("global-oob", nullptr, "a cuBLAS product writes %d elements of column %lld beyond an allocation", m, (long long)column);
        return kInvalidValue;
      }
      for (i64 row = 0; row < m; row++) {
        double sum = 0;
        for (i64 x = 0; x < k; x++) sum += a.at(i, row, x) * b.at(i, x, column);
        store(c, start + row, c_type, alpha * sum + (beta == 0 ? 0 : beta * load(c, start + row, c_type)));
      }
      host_wrote(address, (u64)m * bytes_of(c_type));
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
KWEMU_EXPORT int cublasSetPointerMode_v2(void*, int) { return kSuccess; }
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
