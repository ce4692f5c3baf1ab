"""Shapes and dtypes of an op's results from its contract, for tensors without data: fake and meta tensors, torch.compile, export. The
same rules as kw/core/bind.cpp, but every size may be symbolic; tests/torch/test_inference.py holds the two against each other."""

import torch

from .._manifest import Op, Tensor

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
    "fp8e4m3": torch.float8_e4m3fn,
    "fp8e5m2": torch.float8_e5m2,
}
_NAMES = {v: k for k, v in DTYPES.items()}


def make_fake(op: Op, results: list[Tensor]):
    """The fake kernel of a torch op that returns `results`. An absent result is a tensor of no elements, as in the real kernel."""

    def fake(*values):
        values = op.fill(values)
        dims, types, example = _bind(op, values)
        out = []
        for r in results:
            if r.present_with and values[[i.name for i in op.inputs].index(r.present_with)] is None:
                shape = [0]
            else:
                shape = [s for place in r.shape for s in _sizes(op, place, dims)]
            out.append(example.new_empty(shape, dtype=DTYPES[_dtype(r.element, types)]))
        return None if not out else out[0] if len(out) == 1 else tuple(out)

    return fake


def _bind(op: Op, values):
    """Values of the dimensions (a variadic one: a tuple) and of the type variables; checks what can be checked."""
    dims, types, example, pending = {}, {}, None, []
    for argument, value in zip(op.inputs, values):
        if value is None:
            continue
        for t in value if argument.is_list else [value]:
            if example is None:
                example = t
            elif t.device != example.device:
                _refuse(op, f"{argument.name} is on {t.device}, but {op.inputs[0].name} is on {example.device}")
            _bind_dtype(op, argument, t.dtype, types)
            own = {} if argument.is_list else dims  # the tensors of a list have dimensions of their own
            _bind_shape(op, argument, tuple(t.shape), own, pending)
    for argument, place, size, own in pending:  # arithmetic, when all names have their values
        _same(op, argument, size, _size(op, place, own))
    for name, options in op.types.items():
        if name not in types:  # its tensor is absent: the first option
            first = options[0]
            types[name] = types[first["variable"]] if isinstance(first, dict) else first
    return dims, types, example


def _bind_dtype(op, argument, dtype, types):
    got, element = _NAMES.get(dtype, str(dtype)), argument.element
    if isinstance(element, dict) and "variable" in element:
        name = element["variable"]
        options = [types.get(o["variable"]) if isinstance(o, dict) else o for o in op.types[name]]
        if name not in types and got not in options:
            wanted = ", ".join(o for o in options if o)
            _refuse(op, f"{argument.name} is {got}, but {name} must be one of {wanted}")
        wanted = types.setdefault(name, got)
    else:
        wanted = _dtype(element, types)
    if got != wanted:
        _refuse(op, f"{argument.name} is {got}, but must be {wanted}")


def _bind_shape(op, argument, shape, dims, pending):
    places = argument.shape
    variadic = [i for i, p in enumerate(places) if isinstance(p, str) and p.startswith("*")]
    fixed = len(places) - len(variadic)
    if len(shape) < fixed or (not variadic and len(shape) != fixed):
        least = "at least " if variadic else ""
        _refuse(op, f"{argument.name} has {len(shape)} dimensions, but needs {least}{fixed}")
    extra, at = len(shape) - fixed, 0
    for i, place in enumerate(places):
        if i in variadic:
            got, name = shape[at : at + extra], place[1:]
            at += extra
            wanted = dims.setdefault(name, got)
            if len(wanted) != len(got):
                _refuse(op, f"{argument.name} has {len(got)} leading dimensions, but {len(wanted)} were expected")
            for a, b in zip(got, wanted):
                _same(op, argument, a, b)
            continue
        size = shape[at]
        at += 1
        if isinstance(place, str):
            _same(op, argument, size, dims.setdefault(place, size))
        else:
            pending.append((argument, place, size, dims))


def _same(op, argument, got, wanted):
    if got is not wanted:
        torch._check(got == wanted, lambda: f"{op.name}: {argument.name} has a dimension of {got}, but {wanted} was expected")


def _refuse(op, sentence):
    raise RuntimeError(f"{op.name}: {sentence}")


def _sizes(op, place, dims):
    if isinstance(place, str) and place.startswith("*"):
        return dims.get(place[1:], ())
    return [_size(op, place, dims)]


def _size(op, place, dims):
    if isinstance(place, int):
        return place
    if isinstance(place, str):
        value = dims[place]
        if isinstance(value, tuple):  # a variadic dimension inside arithmetic stands for its product
            product = 1
            for v in value:
                product = product * v
            return product
        return value
    a, b = (_size(op, p, dims) for p in place[1:])
    match place[0]:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "div":
            torch._check(a % b == 0, lambda: f"{op.name}: {a} cannot be divided by {b} without a rest")
            return a // b
        case "min":
            return torch.sym_min(a, b)
        case "max":
            return torch.sym_max(a, b)
    raise AssertionError(f"unknown size {place}")


def _dtype(element, types):
    if isinstance(element, str):
        return element
    if "variable" in element:
        return types[element["variable"]]
    inner = types[element["accumulator"]]
    return "f64" if inner == "f64" else "f32" if DTYPES[inner].is_floating_point else "i64"
