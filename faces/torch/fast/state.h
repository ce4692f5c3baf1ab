// What the parts of kernelwright._fast share: the torch and the library that `setup` found, and what is known of one op.
#pragma once
#include "faces/torch/fast/dlpack.h"
#include "faces/torch/fast/python_abi.h"
#include "faces/torch/torch_face.h"

namespace kw::fast {

constexpr int max_checks = 8;

// ---- what `setup` found ------------------------------------------------------------------------------------------------------
struct Library {
  decltype(&kw_torch_call) call;
  decltype(&kw_needs_copy) needs_copy;
  decltype(&kw_last_error) last_error;
};
extern Library library;

struct Torch {
  const DLPackExchangeAPI* dlpack;
  PyObject *tensor_type, *parameter_type;
  PyObject* checks[max_checks];  // callables without arguments; any true answer: slow path
  int check_count;
  PyObject* is_neg;
  PyObject* autocast;           // callable: is any autocast on?
  PyObject* increment_version;  // callable: of the tensors in a tuple
  PyObject* forward_ad;         // the dict of torch.autograd.forward_ad
  PyObject* errors;             // exception classes by kw_status
  unsigned char (*grad_mode)();
  int (*delete_tensor)(void* handle);
  PyObject* (*wrap)(const void* tensor);                    // THPVariable_Wrap(const TensorBase&); a handle is an at::Tensor*
  int (*to_pyobject)(void* handle, void*, PyObject** out);  // from 2.14 on, instead
};
extern Torch torch;

inline PyObject* none() { return &_Py_NoneStruct; }
inline PyObject* with_reference(PyObject* o) {
  Py_IncRef(o);
  return o;
}

// ---- one op ------------------------------------------------------------------------------------------------------------------
struct Indices {
  int count = 0;
  int16_t at[KW_MAX_ARGUMENTS * 2];
  bool read(PyObject* tuple) {
    count = static_cast<int>(PyTuple_Size(tuple));
    if (count < 0 || count > KW_MAX_ARGUMENTS * 2) return false;
    for (int i = 0; i < count; i++) at[i] = static_cast<int16_t>(PyLong_AsLong(PyTuple_GetItem(tuple, i)));
    return true;
  }
};

struct Function {
  const kw_op* op;
  const char* kinds;  // by argument: T tensor, O optional tensor, f float, i int, b bool, s str, e enumeration; others: slow path
  int inputs, arguments, outputs, results;  // results: outputs and saved ones
  PyObject* enumerations;                   // by argument: the values, or None
  PyObject *slow, *apply;
  Indices differentiable;  // entry: inputs that may need a gradient
  Indices written;         // entry: inputs that the op writes to
  // Of `forward`; i stands for argument i, -1-k for result k.
  Indices save;    // what autograd keeps
  Indices keep;    // attributes that the backward needs
  Indices silent;  // outputs without a gradient
};

struct Arguments {
  kw_tensor tensors[KW_MAX_ARGUMENTS];
  kw_argument inputs[KW_MAX_ARGUMENTS];
  kw_attribute attributes[KW_MAX_ARGUMENTS];
};

enum class Verdict { fast, slow, error };

inline bool is_plain(PyObject* o) {
  auto* type = reinterpret_cast<PyObject*>(o->ob_type);
  return type == torch.tensor_type || type == torch.parameter_type;
}

// Tensors and attributes of one call, or why the fast path cannot take it.
Verdict read_arguments(const Function& f, PyObject* const* arguments, Py_ssize_t count, Arguments& a);

}  // namespace kw::fast
