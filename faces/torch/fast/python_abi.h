/* The part of CPython's stable ABI (abi3, 3.11) that the fast path uses, declared by us: the module then builds on a machine that has
 * python3 but not its headers, and one binary serves every CPython from 3.11 on. Layouts and names are fixed by the stable ABI. */
#ifndef KW_FACES_TORCH_PYTHON_ABI_H
#define KW_FACES_TORCH_PYTHON_ABI_H
#include <stddef.h>
#include <stdint.h>

extern "C" {
typedef intptr_t Py_ssize_t;
typedef struct _typeobject PyTypeObject;
typedef struct _object {
  Py_ssize_t ob_refcnt;
  PyTypeObject* ob_type;
} PyObject;
typedef struct _ts PyThreadState;

typedef PyObject* (*PyCFunction)(PyObject* self, PyObject* arguments);
typedef PyObject* (*PyCFunctionFast)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
typedef struct {
  const char* ml_name;
  PyCFunction ml_meth;
  int ml_flags;
  const char* ml_doc;
} PyMethodDef;
enum { METH_VARARGS = 0x0001, METH_FASTCALL = 0x0080 };

typedef struct {
  PyObject ob_base;
  PyObject* (*m_init)(void);
  Py_ssize_t m_index;
  PyObject* m_copy;
} PyModuleDef_Base;
typedef struct {
  PyModuleDef_Base m_base;
  const char* m_name;
  const char* m_doc;
  Py_ssize_t m_size;
  PyMethodDef* m_methods;
  void* m_slots;
  void *m_traverse, *m_clear, *m_free;
} PyModuleDef;
enum { PYTHON_ABI_VERSION = 3 };
PyObject* PyModule_Create2(PyModuleDef* definition, int abi_version);

extern PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
extern PyTypeObject PyFloat_Type, PyLong_Type, PyUnicode_Type;
extern PyObject *PyExc_OSError, *PyExc_RuntimeError, *PyExc_MemoryError;

void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
int PyArg_ParseTuple(PyObject* arguments, const char* format, ...);
PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject* self, PyObject* module);
PyObject* PyCapsule_New(void* pointer, const char* name, void (*destructor)(PyObject*));
void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
PyObject* PyDict_GetItem(PyObject* dict, PyObject* key);
void PyErr_Clear(void);
int PyErr_ExceptionMatches(PyObject* type);
void PyErr_Fetch(PyObject** type, PyObject** error, PyObject** traceback); /* takes the references, Restore gives them back */
PyObject* PyErr_Occurred(void);
void PyErr_Restore(PyObject* type, PyObject* error, PyObject* traceback);
void PyErr_SetString(PyObject* type, const char* text);
PyThreadState* PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState*);
double PyFloat_AsDouble(PyObject*);
PyObject* PyLong_FromLong(long);
long PyLong_AsLong(PyObject*);
long long PyLong_AsLongLong(PyObject*);
PyObject* PyObject_CallNoArgs(PyObject* callable);
PyObject* PyObject_CallFunctionObjArgs(PyObject* callable, ...);
PyObject* PyObject_CallObject(PyObject* callable, PyObject* arguments);
PyObject* PyObject_GetAttr(PyObject*, PyObject* name);
int PyObject_IsTrue(PyObject*);
int PyObject_SetAttr(PyObject*, PyObject* name, PyObject* value);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t);
PyObject* PyTuple_GetSlice(PyObject* tuple, Py_ssize_t from, Py_ssize_t to);
PyObject* PyTuple_New(Py_ssize_t);
int PyTuple_SetItem(PyObject* tuple, Py_ssize_t, PyObject* stolen);
Py_ssize_t PyTuple_Size(PyObject*);
const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t* size);
PyObject* PyUnicode_InternFromString(const char*);
}
#endif
