// The toolkit's header of this name, then what it gives only to nvcc.
#pragma once
#include_next <cuda_fp16.h>
#define KWEMU_NAME half
#define KWEMU_H __half
#define KWEMU_H2 __half2
#define KWEMU_TO __half2float
#define KWEMU_FROM __float2half_rn
#define KWEMU_FROM_DOUBLE __double2half
#define KWEMU_PAIR __halves2half2
#include <half_functions.h>
