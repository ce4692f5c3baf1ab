/* The part of DLPack 1.x that the fast path reads: a tensor's view, and the exchange API that torch.Tensor carries as
 * __dlpack_c_exchange_api__ (torch >= 2.10). Field order and sizes are the standard's. */
#ifndef KW_FACES_TORCH_DLPACK_H
#define KW_FACES_TORCH_DLPACK_H
#include <stdint.h>

typedef struct {
  int32_t device_type, device_id;
} DLDevice;
typedef struct {
  uint8_t code, bits; /* code: 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2 */
  uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct {
  struct {
    uint32_t major, minor;
  } version;
  void* previous;
} DLPackExchangeAPIHeader;
typedef struct {
  DLPackExchangeAPIHeader header;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object_no_sync;
  void* managed_tensor_to_py_object_no_sync;
  int (*dltensor_from_py_object_no_sync)(void* py_object, DLTensor* out); /* borrowed; non-zero: a Python error is set */
  void* current_work_stream;
} DLPackExchangeAPI;
#endif
