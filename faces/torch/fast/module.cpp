// kernelwright._fast: eager calls that do not go through torch's dispatcher. A plain tensor with nothing around it (no mode, no
// transform, no autocast) is read through DLPack's C exchange API, the library runs the op, the results are wrapped: 1.2 us instead of
// 2-14. Whatever looks different in the slightest goes to the slow path, a Python callable that uses the dispatcher.
//
// Limited API only, no torch header, no state of its own beyond what `setup` was given. Knows no op: everything comes from Python.
#include "faces/torch/fast/python_abi.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <dlfcn.h>

#include "faces/torch/fast/dlpack.h"
#include "faces/torch/torch_face.h"

namespace {

constexpr int max_checks = 8;

// ---- what `setup` found ------------------------------------------------------------------------------------------------------
struct Library {
  decltype(&kw_torch_call) call;
  decltype(&kw_needs_copy) needs_copy;
  decltype(&kw_last_error) last_error;
} library;

struct Torch {
  const DLPackExchangeAPI* dlpack;
  PyObject *tensor_type, *parameter_type;
  PyObject* checks[max_checks];  // callables without arguments; any true answer: slow path
  int check_count;
  PyObject* is_neg;
  PyObject* forward_ad;          // the dict of torch.autograd.forward_ad
  PyObject* errors;              // exception classes by kw_status
  unsigned char (*grad_mode)();
  int (*delete_tensor)(void* handle);
  PyObject* (*wrap)(const void* tensor);                    // THPVariable_Wrap(const TensorBase&); a handle is an at::Tensor*
  int (*to_pyobject)(void* handle, void*, PyObject** out);  // from 2.14 on, instead
} torch;

PyObject *name_current_level, *name_requires_grad, *name_to_save, *name_materialize, *name_non_differentiable, *name_attributes;

PyObject* none() { return &_Py_NoneStruct; }
PyObject* with_reference(PyObject* o) {
  Py_IncRef(o);
  return o;
}

// ---- one op ------------------------------------------------------------------------------------------------------------------
struct Indices {
  int count = 0;
  signed char at[KW_MAX_ARGUMENTS * 2];
  bool read(PyObject* tuple) {
    count = static_cast<int>(PyTuple_Size(tuple));
    if (count < 0 || count > KW_MAX_ARGUMENTS * 2) return false;
    for (int i = 0; i < count; i++) at[i] = static_cast<signed char>(PyLong_AsLong(PyTuple_GetItem(tuple, i)));
    return true;
  }
};

struct Function {
  const kw_op* op;
  const char* kinds;   // by argument: T tensor, O optional tensor, f float, i int, b bool, s str, e enumeration; others: slow path
  int inputs, arguments, outputs, results;  // results: outputs and saved ones
  PyObject* enumerations;                   // by argument: the values, or None
  PyObject *slow, *apply;
  Indices differentiable;  // entry: inputs that may need a gradient
  // Of `forward`; i stands for argument i, -1-k for result k.
  Indices save;            // what autograd keeps
  Indices keep;            // attributes that the backward needs
  Indices silent;          // outputs without a gradient
};

struct Arguments {
  kw_tensor tensors[KW_MAX_ARGUMENTS];
  kw_argument inputs[KW_MAX_ARGUMENTS];
  kw_attribute attributes[KW_MAX_ARGUMENTS];
};

enum class Verdict { fast, slow, error };

bool is_plain(PyObject* o) {
  auto* type = reinterpret_cast<PyObject*>(o->ob_type);
  return type == torch.tensor_type || type == torch.parameter_type;
}

PyObject* pack(PyObject* const* arguments, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(tuple, i, with_reference(arguments[i]));
  return tuple;
}

PyObject* call_with(PyObject* callable, PyObject* const* arguments, Py_ssize_t count) {
  PyObject* tuple = pack(arguments, count);
  if (!tuple) return nullptr;
  PyObject* result = PyObject_CallObject(callable, tuple);
  Py_DecRef(tuple);
  return result;
}

int32_t dtype_of(DLDataType type) {
  static constexpr DLDataType known[KW_DTYPE_COUNT] = {{2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1}, {0, 8, 1},  {1, 8, 1},
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
      if (!text) break;
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
    default: return Verdict::slow;
  }
  PyErr_Clear();  // out of range: the dispatcher has a sentence for it
  return Verdict::slow;
}

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

PyObject* wrap(void* handle) {  // takes the handle
  if (!handle) return with_reference(none());
  PyObject* o = nullptr;
  if (torch.to_pyobject)
    torch.to_pyobject(handle, nullptr, &o);
  else
    o = torch.wrap(handle);
  torch.delete_tensor(handle);
  if (!o && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "kernelwright: torch could not wrap a result");
  return o;
}

PyObject* fail(int status) {
  PyObject* type = PyTuple_GetItem(torch.errors, status);
  PyErr_SetString(type ? type : PyExc_RuntimeError, library.last_error());
  return nullptr;
}

// The op itself. A tuple of `count` results, or the result itself when there is one and `tuple` is false.
PyObject* run(const Function& f, const Arguments& a, int count, bool tuple) {
  void* handles[KW_MAX_ARGUMENTS] = {};
  PyThreadState* state = PyEval_SaveThread();  // a full launch queue blocks, a CPU kernel takes its time
  int status = library.call(f.op, a.inputs, a.attributes, count > f.outputs, handles);
  PyEval_RestoreThread(state);
  if (status) return fail(status);
  if (count == 0 && !tuple) return with_reference(none());
  if (count == 1 && !tuple) return wrap(handles[0]);
  PyObject* results = PyTuple_New(count);
  bool good = results != nullptr;
  for (int i = 0; i < count; i++) {
    PyObject* o = wrap(handles[i]);
    good &= o != nullptr;
    if (results)
      PyTuple_SetItem(results, i, o ? o : with_reference(none()));
    else
      Py_DecRef(o ? o : with_reference(none()));
  }
  if (good) return results;
  if (results) Py_DecRef(results);
  return nullptr;
}

const Function& function_of(PyObject* self) { return *static_cast<Function*>(PyCapsule_GetPointer(self, "kernelwright.function")); }

// 1: something is active that the fast path does not know; 0: nothing; -1: a Python error.
int something_active() {
  for (int i = 0; i < torch.check_count; i++) {
    PyObject* answer = PyObject_CallNoArgs(torch.checks[i]);
    if (!answer) return -1;
    int active = PyObject_IsTrue(answer);
    Py_DecRef(answer);
    if (active) return active;
  }
  PyObject* level = PyDict_GetItem(torch.forward_ad, name_current_level);
  return !level || PyLong_AsLong(level) >= 0;
}

int wants_gradient(const Function& f, PyObject* const* arguments) {  // -2: not plain, the slow path decides
  if (!f.differentiable.count || !torch.grad_mode()) return 0;
  for (int i = 0; i < f.differentiable.count; i++) {
    PyObject* o = arguments[f.differentiable.at[i]];
    if (o == none()) continue;
    if (!is_plain(o)) return -2;
    PyObject* flag = PyObject_GetAttr(o, name_requires_grad);
    if (!flag) return -1;
    Py_DecRef(flag);
    if (flag == &_Py_TrueStruct) return 1;
  }
  return 0;
}

// The public way in: decides fast or slow, with autograd or without.
PyObject* entry(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Function& f = function_of(self);
  int active = something_active();
  if (active < 0) return nullptr;
  if (active || count != f.arguments) return call_with(f.slow, arguments, count);
  int gradient = wants_gradient(f, arguments);
  if (gradient == -1) return nullptr;
  if (gradient == -2) return call_with(f.slow, arguments, count);
  if (gradient) return call_with(f.apply, arguments, count);
  Arguments a;
  switch (read_arguments(f, arguments, count, a)) {
    case Verdict::fast: return run(f, a, f.outputs, false);
    case Verdict::slow: return call_with(f.slow, arguments, count);
    case Verdict::error: break;
  }
  return nullptr;
}

bool set(PyObject* object, PyObject* name, PyObject* stolen) {
  if (!stolen) return false;
  int failed = PyObject_SetAttr(object, name, stolen);
  Py_DecRef(stolen);
  return !failed;
}

PyObject* select(const Indices& which, PyObject* const* arguments, PyObject* results) {
  PyObject* tuple = PyTuple_New(which.count);
  for (int i = 0; tuple && i < which.count; i++) {
    int k = which.at[i];
    PyTuple_SetItem(tuple, i, with_reference(k >= 0 ? arguments[k] : PyTuple_GetItem(results, -1 - k)));
  }
  return tuple;
}

// autograd.Function.forward(ctx, *arguments): the op, and what its backward needs.
PyObject* forward(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Function& f = function_of(self);
  PyObject* ctx = arguments[0];
  arguments++, count--;
  Arguments a;
  PyObject* results = nullptr;  // always a tuple of f.results
  switch (read_arguments(f, arguments, count, a)) {
    case Verdict::fast: results = run(f, a, f.results, true); break;
    case Verdict::slow: results = call_with(f.slow, arguments, count); break;
    case Verdict::error: break;
  }
  if (!results) return nullptr;
  bool good = set(ctx, name_to_save, select(f.save, arguments, results));
  if (f.keep.count) good = good && set(ctx, name_attributes, select(f.keep, arguments, results));
  if (f.silent.count) good = good && set(ctx, name_non_differentiable, select(f.silent, arguments, results));
  if (f.outputs - f.silent.count == 1) good = good && !PyObject_SetAttr(ctx, name_materialize, &_Py_FalseStruct);
  PyObject* out = nullptr;
  if (good && f.outputs == 1) {
    out = with_reference(PyTuple_GetItem(results, 0));
  } else if (good) {
    out = PyTuple_New(f.outputs);
    for (int i = 0; out && i < f.outputs; i++) PyTuple_SetItem(out, i, with_reference(PyTuple_GetItem(results, i)));
  }
  Py_DecRef(results);
  return out;
}

template <class F>
PyCFunction as_method(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef entry_method = {"entry", as_method(&entry), METH_FASTCALL, nullptr};
PyMethodDef forward_method = {"forward", as_method(&forward), METH_FASTCALL, nullptr};

// make(role, op address, kinds, enumerations, inputs, outputs, results, slow, apply, differentiable, save, keep, silent) -> callable
PyObject* make(PyObject*, PyObject* arguments) {
  auto* f = static_cast<Function*>(std::calloc(1, sizeof(Function)));  // lives as long as the process, like the op
  const char *role, *kinds;
  unsigned long long address;
  PyObject *differentiable, *save, *keep, *silent;
  if (!f || !PyArg_ParseTuple(arguments, "sKsOiiiOOOOOO", &role, &address, &kinds, &f->enumerations, &f->inputs, &f->outputs, &f->results,
                              &f->slow, &f->apply, &differentiable, &save, &keep, &silent))
    return nullptr;
  f->op = reinterpret_cast<const kw_op*>(address);
  f->kinds = strdup(kinds);
  f->arguments = static_cast<int>(std::strlen(kinds));
  if (f->arguments > 2 * KW_MAX_ARGUMENTS || !f->differentiable.read(differentiable) || !f->save.read(save) || !f->keep.read(keep) ||
      !f->silent.read(silent) || PyErr_Occurred()) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "kernelwright: an op with more arguments than the fast path can take");
    return nullptr;
  }
  for (PyObject* o : {f->enumerations, f->slow, f->apply}) Py_IncRef(o);
  PyObject* capsule = PyCapsule_New(f, "kernelwright.function", nullptr);
  if (!capsule) return nullptr;
  PyObject* callable = PyCFunction_NewEx(*role == 'f' ? &forward_method : &entry_method, capsule, nullptr);
  Py_DecRef(capsule);
  return callable;
}

template <class F>
bool find(F& function, void* symbol, const char* name) {
  function = reinterpret_cast<F>(symbol);
  if (!function) PyErr_SetString(PyExc_OSError, name);
  return function != nullptr;
}

// setup(library path, Tensor, Parameter, DLPack capsule, checks, is_neg, forward_ad.__dict__, errors by status)
PyObject* setup(PyObject*, PyObject* arguments) {
  const char* path;
  PyObject *capsule, *checks;
  Torch t{};
  if (!PyArg_ParseTuple(arguments, "sOOOOOOO", &path, &t.tensor_type, &t.parameter_type, &capsule, &checks, &t.is_neg, &t.forward_ad, &t.errors))
    return nullptr;
  t.dlpack = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (!t.dlpack) return nullptr;
  if (t.dlpack->header.version.major != 1) {
    PyErr_SetString(PyExc_OSError, "this torch speaks another version of DLPack's exchange API");
    return nullptr;
  }
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    PyErr_SetString(PyExc_OSError, dlerror());
    return nullptr;
  }
  decltype(&kw_torch_symbol) symbol;
  if (!find(symbol, dlsym(handle, "kw_torch_symbol"), "kw_torch_symbol") ||
      !find(library.call, dlsym(handle, "kw_torch_call"), "kw_torch_call") ||
      !find(library.needs_copy, dlsym(handle, "kw_needs_copy"), "kw_needs_copy") ||
      !find(library.last_error, dlsym(handle, "kw_last_error"), "kw_last_error") ||
      !find(t.grad_mode, symbol("aoti_torch_grad_mode_is_enabled"), "aoti_torch_grad_mode_is_enabled") ||
      !find(t.delete_tensor, symbol("aoti_torch_delete_tensor_object"), "aoti_torch_delete_tensor_object"))
    return nullptr;
  t.to_pyobject = reinterpret_cast<decltype(t.to_pyobject)>(symbol("torch_tensor_to_pyobject"));
  if (!t.to_pyobject && !find(t.wrap, symbol("_Z16THPVariable_WrapRKN2at10TensorBaseE"), "THPVariable_Wrap")) return nullptr;
  t.check_count = static_cast<int>(PyTuple_Size(checks));
  if (t.check_count < 0 || t.check_count > max_checks) {
    PyErr_SetString(PyExc_RuntimeError, "kernelwright: too many checks");
    return nullptr;
  }
  for (int i = 0; i < t.check_count; i++) t.checks[i] = with_reference(PyTuple_GetItem(checks, i));
  for (PyObject* o : {t.tensor_type, t.parameter_type, capsule, t.is_neg, t.forward_ad, t.errors}) Py_IncRef(o);
  name_current_level = PyUnicode_InternFromString("_current_level");
  name_requires_grad = PyUnicode_InternFromString("requires_grad");
  name_to_save = PyUnicode_InternFromString("to_save");
  name_materialize = PyUnicode_InternFromString("materialize_grads");
  name_non_differentiable = PyUnicode_InternFromString("non_differentiable");
  name_attributes = PyUnicode_InternFromString("attributes");
  torch = t;
  return with_reference(none());
}

PyMethodDef methods[] = {{"setup", &setup, METH_VARARGS, nullptr}, {"make", &make, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {{{1, nullptr}, nullptr, 0, nullptr}, "_fast", "The eager path without torch's dispatcher.", -1, methods, nullptr, nullptr,
                          nullptr, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__fast(void) { return PyModule_Create2(&definition, PYTHON_ABI_VERSION); }
