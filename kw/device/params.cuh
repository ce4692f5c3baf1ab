// What a kernel's Params struct is written with: the host (g++) fills it, the device (NVRTC, which has no <cstdint>) reads it.
#pragma once
#ifdef __CUDACC_RTC__
using int32_t = int;
using int64_t = long long;
using uint32_t = unsigned;
using uint64_t = unsigned long long;
#define KW_BOTH __device__ __forceinline__
#else
using int32_t = __INT32_TYPE__;
using int64_t = __INT64_TYPE__;
using uint32_t = __UINT32_TYPE__;
using uint64_t = __UINT64_TYPE__;
#define KW_BOTH inline
#endif

namespace kw {

// A tensor as rows of contiguous elements, counted over all its leading dimensions. Up to three distances say where they lie, 0 for rows
// that repeat: a slice, a transposition and an expansion of leading dimensions need no copy. Row `r` begins at element at(r).
//
// For most tensors one distance says it all, and kernels are compiled for just that; the runtime defines KW_STRIDED_ROWS for the others
// (docs/adr/0014). There r is divided by multiplication: the GPU has no 64-bit division, and its replacement is a call of about 70
// instructions.
struct Rows {
  void* data;
  int64_t stride[3];       // elements, the fastest dimension first
  int64_t size[2];         // of the two faster ones; 0: the distances before say it all
  uint64_t reciprocal[2];  // r / size = the upper half of r * reciprocal, shifted; exact for 0 <= r < 2^63 (host: rows_of)
  int32_t shift[2];

  KW_BOTH int64_t at(int64_t r) const {
#if defined(__CUDACC_RTC__) && !defined(KW_STRIDED_ROWS)
    return r * stride[0];
#else
    if (size[0] == 0) return r * stride[0];
    const int64_t q = divided(r, 0);
    const int64_t inner = (r - q * size[0]) * stride[0];
    if (size[1] == 0) return inner + q * stride[1];
    const int64_t outer = divided(q, 1);
    return inner + (q - outer * size[1]) * stride[1] + outer * stride[2];
#endif
  }
  KW_BOTH int64_t divided(int64_t r, int i) const {
#ifdef __CUDACC_RTC__
    return static_cast<int64_t>(__umul64hi(static_cast<uint64_t>(r), reciprocal[i]) >> shift[i]);
#else
    return r / size[i];
#endif
  }
};

}  // namespace kw
