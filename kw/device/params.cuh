// What a kernel's Params struct is written with: the host (g++) fills it, the device (NVRTC, which has no <cstdint>) reads it.
#pragma once
#ifdef __CUDACC_RTC__
using int32_t = int;
using int64_t = long long;
using uint32_t = unsigned;
#else
using int32_t = __INT32_TYPE__;
using int64_t = __INT64_TYPE__;
using uint32_t = __UINT32_TYPE__;
#endif
