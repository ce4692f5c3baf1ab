// The toolkit's header of this name, then what it gives only to nvcc.
#pragma once
#include_next <cuda_bf16.h>
#define KWEMU_NAME bfloat16
#define KWEMU_H __nv_bfloat16
#define KWEMU_H2 __nv_bfloat162
#define KWEMU_TO __bfloat162float
#define KWEMU_FROM __float2bfloat16_rn
#define KWEMU_FROM_DOUBLE __double2bfloat16
#define KWEMU_PAIR __halves2bfloat162
#include <half_functions.h>
