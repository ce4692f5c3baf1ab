"""Shape and dtype inference exists twice: C++ (kw_infer, in the library) and Python (fake kernels). Fuzzed against each other here."""

import ctypes
import random

import pytest
import samples as s
import torch
from kernelwright.torch._fake import DTYPES, make_fake

_TYPES = list(DTYPES)  # the order of kw_dtype


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]
    _fields_ += [(n, ctypes.c_int32) for n in ("rank", "dtype", "device_type", "device_index")]


class _Argument(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(_Tensor)), ("count", ctypes.c_int32)]


class _Attribute(ctypes.Union):
    _fields_ = [("f", ctypes.c_double), ("i", ctypes.c_int64), ("s", ctypes.c_char_p)]


class _Call(ctypes.Structure):
    _fields_ = [("inputs", ctypes.POINTER(_Argument)), ("results", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute))]
    _fields_ += [("stream", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [("present", ctypes.c_int32), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("sizes", ctypes.c_int64 * 8)]


def c_infer(op, arguments):
    """[(dtype, shape) or None] of outputs and saved results; a sentence when the library refuses."""
    keep = []

    def view(t):
        sizes, strides = (ctypes.c_int64 * 8)(*t.shape), (ctypes.c_int64 * 8)(*t.stride())
        keep.extend((sizes, strides))
        return _Tensor(None, sizes, strides, t.dim(), _TYPES.index(next(k for k, v in DTYPES.items() if v == t.dtype)), 1, 0)

    inputs = (_Argument * 16)()
    for i, (t, value) in enumerate(zip(op.inputs, arguments)):
        tensors = [] if value is None else value if t.is_list else [value]
        views = (_Tensor * max(1, len(tensors)))(*map(view, tensors))
        keep.append(views)
        inputs[i] = _Argument(views, len(tensors))
    attributes = (_Attribute * 16)()
    for k, (a, value) in enumerate(zip(op.attributes, arguments[len(op.inputs) :])):
        if a.type == "float":
            attributes[k].f = value
        elif a.type == "str":
            attributes[k].s = value.encode()
        else:
            attributes[k].i = a.values.index(value) if a.type == "enum" else int(value)
    specs = (_Spec * 16)()
    c = s.library._c
    c.kw_infer.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Call), ctypes.POINTER(_Spec)]
    if c.kw_infer(s.library.address(op.name), ctypes.byref(_Call(inputs, None, attributes, None)), specs):
        return s.library.last_error()
    kept = range(len(op.kept))
    return [(DTYPES[_TYPES[specs[i].dtype]], tuple(specs[i].sizes[: specs[i].rank])) if specs[i].present else None for i in kept]


def python_infer(op, arguments):
    meta = [
        [t.to("meta") for t in a] if isinstance(a, list) else a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments
    ]
    try:
        results = make_fake(op, op.kept)(*meta)
    except RuntimeError as e:
        return str(e)
    results = [] if results is None else results if isinstance(results, tuple) else (results,)
    absent = [r.present_with and arguments[[i.name for i in op.inputs].index(r.present_with)] is None for r in op.kept]
    return [None if gone else (r.dtype, tuple(r.shape)) for r, gone in zip(results, absent)]


def spoil(op, arguments, random):
    """One thing about one tensor is changed; the result may still be valid."""
    places = [i for i, t in enumerate(op.inputs) if arguments[i] is not None]
    i = random.choice(places)
    is_list, value = op.inputs[i].is_list, arguments[i]
    t = value[0] if is_list else value
    kind = random.choice(["size", "rank", "drop", "dtype", "size"])
    shape = list(t.shape)
    if kind == "size" and shape:
        shape[random.randrange(len(shape))] += random.choice([-1, 1, 3])
    elif kind == "rank":
        shape.insert(0, 2)
    elif kind == "drop" and shape:
        shape.pop(random.randrange(len(shape)))
    dtype = random.choice(list(DTYPES.values())) if kind == "dtype" else t.dtype
    changed = torch.empty([max(0, n) for n in shape], dtype=dtype)
    arguments[i] = [changed, *value[1:]] if is_list else changed


@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_both_say_the_same(op):
    source = random.Random(op.name)
    good = bad = same_sentence = 0
    for turn in range(400):
        types = source.choice(s.dtype_choices(op))
        optional = [t.name for t in op.inputs if t.optional]
        absent = [n for n in optional if source.random() < 0.3]
        leading = [source.randrange(4) for _ in range(source.randrange(4))]
        arguments = s.sample(op, types, leading, source.randrange(1, 20), absent, device="cpu")
        if turn % 2:
            spoil(op, arguments, source)
        a, b = c_infer(op, arguments), python_infer(op, arguments)
        if isinstance(a, str) or isinstance(b, str):
            assert isinstance(a, str) and isinstance(b, str), f"library: {a}\nfake: {b}"
            assert a.startswith(op.name + ": ") and b.startswith(op.name + ": ")
            bad += 1
            same_sentence += a == b
        else:
            assert a == b
            good += 1
    assert good > 100 and bad > 20


@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_meta_tensors(op):
    for arguments in s.samples(op, device="cpu"):
        meta = [
            [t.to("meta") for t in a] if isinstance(a, list) else a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments
        ]
        real, fake = s.public_op(op)(*arguments), s.public_op(op)(*meta)
        real, fake = ((r,) if isinstance(r, torch.Tensor) else r or () for r in (real, fake))
        for r, f in zip(real, fake, strict=True):
            assert f.device.type == "meta" and (f.shape, f.dtype, f.stride()) == (r.shape, r.dtype, r.stride())
