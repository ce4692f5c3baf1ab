// From Python's arguments to the views and values that the library takes.
#include <cstring>

#include "faces/torch/fast/state.h"

namespace kw::fast {
namespace {

int32_t dtype_of(DLDataType type) {
  static constexpr DLDataType known[KW_DTYPE_COUNT] = {{2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1}, {0, 8, 1}, {1, 8, 1},
                                                       {0, 32, 1}, {0, 64, 1}, {6, 8, 1},  {10, 8, 1}, {12, 8, 1}};
  for (int32_t i = 0; i < KW_DTYPE_COUNT; i++)
    if (type.code == known[i].code && type.bits == known[i].bits && type.lanes == 1) return i;
  return -1;
}

Verdict read_tensor(const Function& f, int i, PyObject* o, kw_tensor& view) {
  if (!is_plain(o)) return Verdict::slow;
  DLTensor t;
  if (torch.dlpack->dltensor_from_py_object_no_sync(o, &t)) {  // sparse, quantised, ...: the dispatcher knows what to say
    PyErr_Clear();
    return Verdict::slow;
  }
  static constexpr int64_t nothing = 0;
  int64_t elements = 1, step = 1;
  bool contiguous = true;
  if (t.ndim > KW_MAX_RANK || (t.ndim && (!t.shape || !t.strides))) return Verdict::slow;
  for (int32_t d = t.ndim - 1; d >= 0; d--) {
    if (t.shape[d] != 1 && t.strides[d] != step) contiguous = false;
    step *= t.shape[d];
    elements *= t.shape[d];
  }
  // A lazy negation and a ZeroTensor look like any other tensor to DLPack, which hands out the raw storage without a word.
  if (!t.data && elements) return Verdict::slow;
  PyObject* negative = PyObject_CallFunctionObjArgs(torch.is_neg, o, nullptr);
  if (!negative) return Verdict::error;
  Py_DecRef(negative);
  if (negative != &_Py_FalseStruct) return Verdict::slow;
  view.data = static_cast<char*>(t.data) + t.byte_offset;
  view.sizes = t.ndim ? t.shape : &nothing;
  view.strides = t.ndim ? t.strides : &nothing;
  view.rank = t.ndim;
  view.dtype = dtype_of(t.dtype);
  view.device_type = t.device.device_type;
  view.device_index = t.device.device_type == KW_CUDA ? t.device.device_id : 0;
  if (view.dtype < 0 || (view.device_type != KW_CPU && view.device_type != KW_CUDA)) return Verdict::slow;
  if (!contiguous && elements && library.needs_copy(f.op, i, &view)) return Verdict::slow;  // copied, and counted, there
  return Verdict::fast;
}

Verdict read_attribute(const Function& f, int i, PyObject* o, kw_attribute& value) {
  PyTypeObject* type = o->ob_type;
  switch (f.kinds[i]) {
    case 'f':
      if (type != &PyFloat_Type && type != &PyLong_Type) return Verdict::slow;
      value.f = PyFloat_AsDouble(o);
      if (value.f != -1 || !PyErr_Occurred()) return Verdict::fast;
      break;
    case 'i':
      if (type != &PyLong_Type) return Verdict::slow;
      value.i = PyLong_AsLongLong(o);
      if (value.i != -1 || !PyErr_Occurred()) return Verdict::fast;
      break;
    case 'b':
      value.i = o == &_Py_TrueStruct;
      return o == &_Py_TrueStruct || o == &_Py_FalseStruct ? Verdict::fast : Verdict::slow;
    case 's':
    case 'e': {
      if (type != &PyUnicode_Type) return Verdict::slow;
      Py_ssize_t length = 0;
      const char* text = PyUnicode_AsUTF8AndSize(o, &length);
      if (!text || static_cast<Py_ssize_t>(std::strlen(text)) != length) break;
      if (f.kinds[i] == 's') {
        value.s = text;
        return Verdict::fast;
      }
      PyObject* values = PyTuple_GetItem(f.enumerations, i);
      for (Py_ssize_t k = 0; k < PyTuple_Size(values); k++) {
        const char* candidate = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(values, k), &length);
        if (candidate && !std::strcmp(text, candidate)) {
          value.i = k;
          return Verdict::fast;
        }
      }
      return Verdict::slow;  // which says what the values are
    }
    default:
      return Verdict::slow;
  }
  PyErr_Clear();  // a number out of range, a text with a NUL: the slow path has a sentence for it
  return Verdict::slow;
}

}  // namespace

Verdict read_arguments(const Function& f, PyObject* const* arguments, Py_ssize_t count, Arguments& a) {
  if (count != f.arguments) return Verdict::slow;
  for (int i = 0; i < f.inputs; i++) {
    if (f.kinds[i] == 'O' && arguments[i] == none()) {
      a.inputs[i] = {nullptr, 0};
      continue;
    }
    if (f.kinds[i] != 'T' && f.kinds[i] != 'O') return Verdict::slow;
    if (Verdict v = read_tensor(f, i, arguments[i], a.tensors[i]); v != Verdict::fast) return v;
    a.inputs[i] = {&a.tensors[i], 1};
  }
  for (int i = f.inputs; i < f.arguments; i++)
    if (Verdict v = read_attribute(f, i, arguments[i], a.attributes[i - f.inputs]); v != Verdict::fast) return v;
  return Verdict::fast;
}

}  // namespace kw::fast
