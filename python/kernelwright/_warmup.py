"""kernelwright.warmup: a call described in words, whose kernels are found or compiled before it comes."""

import ctypes as c

from . import _manifest
from ._errors import ArgumentError, ArgumentTypeError, UnsupportedError

DTYPES = ("f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "bool", "fp8e4m3", "fp8e5m2")  # by kw_dtype
CUDA = 2  # kw_device_type
MAX_RANK = 8


# The structs of kw/core/abi.h and faces/c/kernelwright.h.
class _Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("sizes", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("rank", c.c_int32),
        ("dtype", c.c_int32),
        ("device_type", c.c_int32),
        ("device_index", c.c_int32),
    ]


class _Argument(c.Structure):
    _fields_ = [("tensors", c.POINTER(_Tensor)), ("count", c.c_int32)]


class _Attribute(c.Union):
    _fields_ = [("f", c.c_double), ("i", c.c_int64), ("s", c.c_char_p)]


class _Call(c.Structure):
    _fields_ = [
        ("inputs", c.POINTER(_Argument)),
        ("results", c.c_void_p),
        ("attributes", c.POINTER(_Attribute)),
        ("stream", c.c_void_p),
    ]


class _Spec(c.Structure):
    _fields_ = [("present", c.c_int32), ("dtype", c.c_int32), ("rank", c.c_int32), ("sizes", c.c_int64 * MAX_RANK)]


def read_words(op: _manifest.Op, words: str) -> dict:
    """"x=bf16[8192,4096] eps=1e-5" as {"x": ("bf16", [8192, 4096]), "eps": "1e-5"}; what is none is left out."""
    known = {a.name: a for a in op.arguments}
    found = {}
    for word in words.split():
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise ArgumentError(f"{op.name}: {word!r} is not name=value for one of {', '.join(known)}")
        if name in found:
            raise ArgumentError(f"{op.name}: {name} is given twice")
        if isinstance(known[name], _manifest.Attribute):
            found[name] = value
        elif value != "none":
            dtype, bracket, sizes = value.partition("[")
            try:
                shape = [int(s) for s in sizes.removesuffix("]").split(",")] if sizes != "]" else []
            except ValueError:
                shape = None
            if dtype not in DTYPES or not bracket or not value.endswith("]") or shape is None:
                raise ArgumentError(f"{op.name}: {name} is '{value}', but a tensor is written as dtype[sizes], for example bf16[8192,4096]")
            if len(shape) > MAX_RANK or any(not 0 <= s < 2**62 for s in shape):
                raise ArgumentError(f"{op.name}: {name} has the shape {shape}; at most {MAX_RANK} sizes from 0 on are possible")
            found[name] = (dtype, shape)
    return found


def _number(op: _manifest.Op, a: _manifest.Attribute, text) -> _Attribute:
    """An attribute from its text or from the manifest's default."""
    value = _Attribute()
    try:
        if a.type == "float":
            value.f = float(text)
        elif a.type == "int":
            value.i = int(text)
        elif a.type == "bool":
            value.i = {"true": 1, "false": 0, "1": 1, "0": 0}[str(text).lower()]
        elif a.type == "enum":
            value.i = a.values.index(text)
        else:
            value.s = str(text).encode()
    except (ValueError, KeyError, OverflowError):
        wanted = f"one of {', '.join(a.values)}" if a.type == "enum" else f"a {a.type}"
        raise ArgumentError(f"{op.name}: {a.name} is '{text}', but must be {wanted}") from None
    return value


class Call:
    """A kw_call of tensors without memory; keeps what the C structs point to."""

    def __init__(self, op: _manifest.Op, found: dict, device: int):
        self._kept = []
        self.inputs = (_Argument * max(len(op.inputs), 1))()
        self.attributes = (_Attribute * max(len(op.attributes), 1))()
        for place, t in zip(self.inputs, op.inputs):
            if t.name not in found:
                continue
            if t.is_list:
                raise UnsupportedError(f"{op.name}: {t.name} is a list of tensors, which warmup cannot describe: make a call instead")
            dtype, shape = found[t.name]
            steps = [1] * len(shape)
            for d in range(len(shape) - 1, 0, -1):
                steps[d - 1] = min(steps[d] * max(shape[d], 1), 2**62)
            sizes, strides = (c.c_int64 * MAX_RANK)(*shape), (c.c_int64 * MAX_RANK)(*steps)
            tensor = _Tensor(None, sizes, strides, len(shape), DTYPES.index(dtype), CUDA, device)
            self._kept += [sizes, strides, tensor]
            place.tensors, place.count = c.pointer(tensor), 1
        for i, a in enumerate(op.attributes):
            text = found.get(a.name, a.default)
            if text is None:
                raise ArgumentError(f"{op.name}: {a.name} is missing")
            self.attributes[i] = _number(op, a, text)
        self.raw = _Call(self.inputs, None, self.attributes, None)


def gradient_values(op: _manifest.Op, found: dict, specs) -> list:
    """The arguments of the backward op for such a call, in its order; None where one is absent."""
    results = {
        r.name: (DTYPES[s.dtype], list(s.sizes[: s.rank])) for r, s in zip(op.results, specs) if s.present
    }
    defaults = {a.name: a.default for a in op.attributes if a.default is not None}
    named = {**defaults, **found, **results, **{"d" + name: spec for name, spec in results.items()}}
    return [named.get(name) for name in op.gradient.arguments]


def warmup(library, name: str, words: str, device: int, gradient: bool) -> None:
    op = library.op(name)
    for argument, value, kind, wanted in (("arguments", words, str, "a str"), ("device", device, int, "a whole number"),
                                          ("gradient", gradient, bool, "True or False")):  # fmt: skip
        if not isinstance(value, kind):
            raise ArgumentTypeError(f"warmup: {argument} must be {wanted}, got {type(value).__name__}")
    if not 0 <= device < 2**31:
        raise ArgumentError(f"warmup: device is {device}, but must be >= 0 and less than 2^31")
    found = read_words(op, words)
    call = Call(op, found, device)
    library.check(library._c.kw_warmup(library.address(name), c.byref(call.raw)))
    if not gradient:
        return
    if op.gradient is None:
        raise ArgumentError(f"{name}: has no gradient to warm up")
    specs = (_Spec * max(len(op.results), 1))()
    library.check(library._c.kw_infer(library.address(name), c.byref(call.raw), specs))
    backward = library.op(op.gradient.op)
    values = gradient_values(op, found, specs)
    call = Call(backward, {a.name: v for a, v in zip(backward.arguments, values) if v is not None}, device)
    library.check(library._c.kw_warmup(library.address(backward.name), c.byref(call.raw)))
