// kernelwright._fast: eager calls that do not go through torch's dispatcher. A plain tensor with nothing around it (no mode, no
// transform, no autocast) is read through DLPack's C exchange API, the library runs the op, the results are wrapped: 1.2 us instead of
// 2-14. Whatever looks different in the slightest goes to the slow path, a Python callable that uses the dispatcher.
//
// Limited API only, no torch header, no state of its own beyond what `setup` was given. Knows no op: everything comes from Python.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "faces/torch/fast/state.h"

namespace kw::fast {

Library library;
Torch torch;

namespace {

PyObject *name_current_level, *name_requires_grad, *name_to_save, *name_materialize, *name_non_differentiable, *name_attributes;

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

// Nobody else bumps the version counters of what an op wrote to, and without them autograd would not notice.
PyObject* after_writing(const Function& f, PyObject* const* arguments, PyObject* result) {
  for (int i = 0; result && i < f.written.count; i++) {
    PyObject* one = pack(arguments + f.written.at[i], 1);
    PyObject* done = one ? PyObject_CallFunctionObjArgs(torch.increment_version, one, nullptr) : nullptr;
    if (one) Py_DecRef(one);
    if (!done) {
      Py_DecRef(result);
      return nullptr;
    }
    Py_DecRef(done);
  }
  return result;
}

// What autograd's function returned, without the results that only autograd sees.
PyObject* outputs_of(const Function& f, PyObject* results) {
  if (!results || f.results == f.outputs) return results;
  PyObject* out = f.outputs == 1 ? with_reference(PyTuple_GetItem(results, 0)) : PyTuple_GetSlice(results, 0, f.outputs);
  Py_DecRef(results);
  return out;
}

PyObject* call_fast(const Function& f, PyObject* const* arguments, Py_ssize_t count) {
  int gradient = wants_gradient(f, arguments);
  if (gradient == -1) return nullptr;
  if (gradient == -2) return call_with(f.slow, arguments, count);
  if (gradient) return f.apply == f.slow ? call_with(f.slow, arguments, count) : outputs_of(f, call_with(f.apply, arguments, count));
  Arguments a;
  switch (read_arguments(f, arguments, count, a)) {
    case Verdict::fast:
      return after_writing(f, arguments, run(f, a, f.outputs, false));
    case Verdict::slow:
      return call_with(f.slow, arguments, count);
    case Verdict::error:
      break;
  }
  return nullptr;
}

// The public way in: decides fast or slow, with autograd or without.
PyObject* entry(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Function& f = function_of(self);
  int active = something_active();
  if (active < 0) return nullptr;
  if (active || count != f.arguments) return call_with(f.slow, arguments, count);
  PyObject* result = call_fast(f, arguments, count);
  if (result || !PyErr_ExceptionMatches(PyTuple_GetItem(torch.errors, KW_ERROR_ARGUMENT))) return result;
  // An op runs in the dtypes that it is given, under autocast too. Only where it refuses, the slow path may promote them.
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyObject* answer = PyObject_CallNoArgs(torch.autocast);
  int autocast = answer && PyObject_IsTrue(answer) == 1;
  if (answer) Py_DecRef(answer);
  if (!autocast) {
    PyErr_Restore(type, error, traceback);
    return nullptr;
  }
  for (PyObject* o : {type, error, traceback})
    if (o) Py_DecRef(o);
  return call_with(f.slow, arguments, count);
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
    case Verdict::fast:
      results = run(f, a, f.results, true);
      break;
    case Verdict::slow:
      results = call_with(f.slow, arguments, count);
      break;
    case Verdict::error:
      break;
  }
  if (!results) return nullptr;
  bool good = set(ctx, name_to_save, select(f.save, arguments, results));
  if (f.keep.count) good = good && set(ctx, name_attributes, select(f.keep, arguments, results));
  if (f.silent.count) good = good && set(ctx, name_non_differentiable, select(f.silent, arguments, results));
  if (f.outputs - f.silent.count == 1) good = good && !PyObject_SetAttr(ctx, name_materialize, &_Py_FalseStruct);
  // Saved results go out too, and `entry` drops them: as outputs of autograd's node they lead a second derivative back to it.
  if (good && f.results > 1) return results;
  PyObject* out = good ? with_reference(PyTuple_GetItem(results, 0)) : nullptr;
  Py_DecRef(results);
  return out;
}

template <class F>
PyCFunction as_method(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef entry_method = {"entry", as_method(&entry), METH_FASTCALL, nullptr};
PyMethodDef forward_method = {"forward", as_method(&forward), METH_FASTCALL, nullptr};

// make(role, op address, kinds, enumerations, inputs, outputs, results, slow, apply, differentiable, written, save, keep, silent) ->
// callable
PyObject* make(PyObject*, PyObject* arguments) {
  auto* f = static_cast<Function*>(std::calloc(1, sizeof(Function)));  // lives as long as the process, like the op
  const char *role, *kinds;
  unsigned long long address;
  PyObject *differentiable, *written, *save, *keep, *silent;
  if (!f || !PyArg_ParseTuple(arguments, "sKsOiiiOOOOOOO", &role, &address, &kinds, &f->enumerations, &f->inputs, &f->outputs, &f->results,
                              &f->slow, &f->apply, &differentiable, &written, &save, &keep, &silent))
    return nullptr;
  f->op = reinterpret_cast<const kw_op*>(address);
  f->kinds = strdup(kinds);
  f->arguments = static_cast<int>(std::strlen(kinds));
  if (f->arguments > 2 * KW_MAX_ARGUMENTS || !f->differentiable.read(differentiable) || !f->written.read(written) || !f->save.read(save) ||
      !f->keep.read(keep) || !f->silent.read(silent) || PyErr_Occurred()) {
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

// setup(library path, Tensor, Parameter, DLPack capsule, checks, is_neg, autocast, increment_version, forward_ad.__dict__, errors by
// status)
PyObject* setup(PyObject*, PyObject* arguments) {
  const char* path;
  PyObject *capsule, *checks;
  Torch t{};
  if (!PyArg_ParseTuple(arguments, "sOOOOOOOOO", &path, &t.tensor_type, &t.parameter_type, &capsule, &checks, &t.is_neg, &t.autocast,
                        &t.increment_version, &t.forward_ad, &t.errors))
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
  for (PyObject* o : {t.tensor_type, t.parameter_type, capsule, t.is_neg, t.autocast, t.increment_version, t.forward_ad, t.errors})
    Py_IncRef(o);
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
PyModuleDef definition = {{{1, nullptr}, nullptr, 0, nullptr},
                          "_fast",
                          "The eager path without torch's dispatcher.",
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace kw::fast

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__fast(void) {
  return PyModule_Create2(&kw::fast::definition, PYTHON_ABI_VERSION);
}
