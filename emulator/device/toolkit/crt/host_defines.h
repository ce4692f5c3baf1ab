// The words of CUDA C++ that stand in front of a declaration. The toolkit's headers find
// this file in the place of their own; device code has it in front of everything. It may come twice: the last one counts.
#undef __host__
#define __host__
#undef __device__
#define __device__
#undef __global__
#define __global__
#undef __constant__
#define __constant__
#undef __shared__
#define __shared__ static __thread
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#undef __inline_hint__
#define __inline_hint__
#undef __align__
#define __align__(n) __attribute__((aligned(n)))
#undef __builtin_align__
#define __builtin_align__(n) __attribute__((aligned(n)))
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __block_size__
#define __block_size__(...)
#undef __maxnreg__
#define __maxnreg__(...)
#undef __grid_constant__
#define __grid_constant__
#undef __managed__
#define __managed__
#undef __nv_pure__
#define __nv_pure__
#undef __device_builtin__
#define __device_builtin__
#undef __device_builtin_texture_type__
#define __device_builtin_texture_type__
#undef __device_builtin_surface_type__
#define __device_builtin_surface_type__
#undef __cudart_builtin__
#define __cudart_builtin__
#undef CUDARTAPI
#define CUDARTAPI
#undef CUDARTAPI_CDECL
#define CUDARTAPI_CDECL
