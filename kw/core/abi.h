// The C layout that crosses every border of the library: rooms register through it, faces call through it.
//
// Plain C, so that a room built by another compiler is a room like ours. Every struct that a room fills starts with `struct_size`;
// fields are only ever appended. Nothing here owns memory: pointers live as long as the call that carries them.
#ifndef KW_CORE_ABI_H
#define KW_CORE_ABI_H

#include <stdint.h>

#ifdef __cplusplus
#define KW_ALIGN16 alignas(16)
extern "C" {
#else
#define KW_ALIGN16 _Alignas(16)
#endif

#define KW_ABI_VERSION 2      // 2: rows lie at up to three distances; a problem says which results are wanted
#define KW_MAX_RANK 8         // dimensions of a tensor
#define KW_MAX_ARGUMENTS 16   // inputs, and results, of one op
#define KW_MAX_SYMBOLS 16     // named dimensions, and type variables, of one op
#define KW_MAX_LAUNCHES 4     // kernels of one call; a deterministic column sum needs two
#define KW_PARAMS_BYTES 1024  // a kernel's Params struct; the hardware's own limit is 4 KiB

// In the order of the contract language: f16 bf16 f32 f64 i8 u8 i32 i64 bool fp8e4m3 fp8e5m2.
enum kw_dtype { KW_F16 = 0, KW_BF16, KW_F32, KW_F64, KW_I8, KW_U8, KW_I32, KW_I64, KW_BOOL, KW_FP8E4M3, KW_FP8E5M2, KW_DTYPE_COUNT };

enum kw_device_type { KW_CPU = 1, KW_CUDA = 2 };  // DLPack's numbers

// What went wrong, by whom it can be mended. The text is in kw_last_error().
enum kw_status {
  KW_OK = 0,
  KW_ERROR_CONTRACT = 1,     // a contract or a room is malformed: its author
  KW_ERROR_ARGUMENT = 2,     // shape, dtype, device, layout or value of an argument: the caller
  KW_ERROR_UNSUPPORTED = 3,  // nothing is wrong, but this build or this GPU cannot do it
  KW_ERROR_TOOLCHAIN = 4,    // driver or NVRTC missing, or a kernel that does not compile
  KW_ERROR_DRIVER = 5,       // the CUDA driver reported an error
  KW_ERROR_MEMORY = 6,       // no memory
  KW_ERROR_INTERNAL = 7      // ours
};

typedef struct kw_message {  // how a room explains itself; text is NUL-terminated UTF-8
  int32_t status;
  char text[2044];
} kw_message;

// Takes a warning of the library: one sentence, without a line end.
typedef void (*kw_log_function)(const char* sentence, void* context);

// A view of memory that somebody else owns; the fields of DLPack's DLTensor.
typedef struct kw_tensor {
  void* data;
  const int64_t* sizes;    // elements, `rank` of them
  const int64_t* strides;  // elements, `rank` of them; never null
  int32_t rank;
  int32_t dtype;        // kw_dtype
  int32_t device_type;  // kw_device_type
  int32_t device_index;
} kw_tensor;

typedef struct kw_argument {  // one name of a contract: absent (0), a tensor (1) or a list
  const kw_tensor* tensors;
  int32_t count;
} kw_argument;

typedef union kw_attribute {  // by the contract's type: float f; int, bool and enumerations (index) i; str s
  double f;
  int64_t i;
  const char* s;
} kw_attribute;

// A contract's names as flat arrays, in contract order; results are public ones first, then saved, then scratch.
typedef struct kw_signature {
  const char* name;
  const char* const* inputs;
  const char* const* results;
  const char* const* attributes;
  const char* const* dims;   // named dimensions in order of first appearance; a variadic one ("*B") by its name without the star
  const char* const* types;  // type variables
  int32_t input_count, result_count, attribute_count, dim_count, type_count;
} kw_signature;

// ---- what a room computes from -----------------------------------------------------------------------------------------------

typedef struct kw_device_facts {
  int32_t arch;  // 90 for sm_90
  int32_t sm_count;
  int32_t threads_per_sm;
  int32_t registers_per_sm;  // 32-bit
  int32_t shared_per_block;  // bytes, the opt-in limit
  int32_t shared_per_sm;     // bytes
  int64_t l2_bytes;
  char name[64];
} kw_device_facts;

// All that `choose` may depend on; exactly the key under which its answer is cached.
typedef struct kw_problem {
  const kw_signature* signature;
  const int64_t* dims;             // by signature->dims; -1 for a variadic dimension: the number of rows never chooses a kernel
  const int32_t* dtypes;           // kw_dtype, by signature->types
  const kw_attribute* attributes;  // int, bool and enumerations; a float reads 0 or 1: whether it is zero; str reads as zero
  uint32_t present;                // bit i: input i is there
  int32_t alignment;               // 16, 8, 4, 2 or 1: bytes that divide every row's address, over all tensors
  uint32_t results;                // bit i: result i is there (a saved one is, where a gradient is wanted)
} kw_problem;

typedef struct kw_kernel {
  char source[96];  // "kw/ops/rms_norm/rms_norm.cuh"
  char name[256];   // a C++ expression: "kw::rms_norm::forward<kw::bf16, float, kw::RowTile<128, 1, 4, 8>>"
} kw_kernel;

typedef struct kw_choice {
  int32_t kernel_count;
  kw_kernel kernels[KW_MAX_LAUNCHES];
  int32_t tile[16];  // the room's own numbers, handed on to `fill`
} kw_choice;

typedef struct kw_bound {  // a call that has passed its contract
  const kw_signature* signature;
  const kw_argument* inputs;
  const kw_argument* results;
  const kw_attribute* attributes;
  const int64_t* dims;  // a variadic dimension holds the product of what it stands for
  const int32_t* dtypes;
  int32_t device_type, device_index;
  void* stream;
} kw_bound;

typedef struct kw_launch {
  int32_t kernel;                       // index into the choice
  uint32_t grid[3], block[3], cluster;  // cluster: blocks along x, 0 or 1 for none
  uint32_t shared_bytes;                // dynamic
  uint32_t params_bytes;
  KW_ALIGN16 unsigned char params[KW_PARAMS_BYTES];
} kw_launch;

typedef struct kw_plan {
  int32_t launch_count;
  kw_launch launches[KW_MAX_LAUNCHES];
} kw_plan;

// ---- how a room registers ----------------------------------------------------------------------------------------------------

typedef struct kw_source {  // a text that device code may include
  const char* path;         // "kw/device/row.cuh"
  const char* text;         // NUL-terminated
} kw_source;

typedef struct kw_bench_case {  // a shape that matters: values of the contract's arguments in `kw plan --arg` form
  const char* arguments;        // "x=bf16[8192,4096] weight=bf16[4096]"
} kw_bench_case;

typedef struct kw_op_def {
  uint32_t struct_size, abi_version;
  const char* contract;
  int32_t (*choose)(const kw_problem*, const kw_device_facts*, kw_choice*, kw_message*);              // pure
  int32_t (*fill)(const kw_bound*, const kw_device_facts*, const kw_choice*, kw_plan*, kw_message*);  // pure
  int32_t (*cpu)(const kw_bound*, kw_message*);
  int32_t (*reference)(const kw_bound*, kw_message*);  // every floating tensor is f64, contiguous, on the CPU
  const kw_bench_case* bench;
  int32_t bench_count;
  // How many times, at most, the call rounds to the element type of its tensors on the way to this result, the last time included; null:
  // once. More is for an op that follows a convention of models that round in between: the checker allows for it.
  int32_t (*roundings)(const kw_attribute* attributes, int32_t result);
} kw_op_def;

typedef struct kw_room {
  uint32_t struct_size, abi_version;
  const char* name;
  const kw_op_def* const* ops;
  int32_t op_count;
  const kw_source* sources;  // the room's device code; ends with a null path
} kw_room;

#ifdef __cplusplus
}
#endif
#endif
