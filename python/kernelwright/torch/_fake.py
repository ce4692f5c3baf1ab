"""Shapes and dtypes of an op's results from its contract, for tensors without data: fake and meta tensors, torch.compile, export. The
same rules as kw/core/bind.cpp, but every size may be symbolic; tests/torch/test_inference.py holds the two against each other."""

import torch

from .. import _describe
from .._library import ArgumentError
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
    place = {t.name: i for i, t in enumerate(op.inputs)}

    def fake(*values):
        values = op.fill(values)
        dims, types, example = _Binder(op).run(values)
        out = []
        for r in results:
            if r.present_with and values[place[r.present_with]] is None:
                out.append(example.new_empty([0], dtype=torch.float32))
                continue
            shape = [s for p in r.shape for s in _sizes(op, r, p, dims)]
            out.append(example.new_empty(shape, dtype=DTYPES[_dtype(r.element, types)]))
        return None if not out else out[0] if len(out) == 1 else tuple(out)

    return fake


class _Binder:
    """Gives every dimension (a variadic one: a tuple) and type variable its value; checks what can be checked without data."""

    def __init__(self, op: Op):
        self.op = op
        self.dims, self.types, self.origin, self.expressions = {}, {}, {}, []
        self.accumulators = []  # whose variable may not be known yet

    def run(self, values):
        op, first, lists = self.op, None, {}
        for argument, value in zip(op.inputs, values):
            if value is None or (argument.is_list and len(value) == 0):
                if not argument.optional:
                    self.refuse(f"{argument.name} is " + ("missing" if value is None else "an empty list"))
                continue
            tensors = list(value) if argument.is_list else [value]
            first = first or (argument.name, tensors[0])
            for t in tensors:
                if t.device != first[1].device:
                    self.refuse(f"{argument.name} is on {t.device}, but {first[0]} is on {first[1].device}")
                self.bind_dtype(argument, t.dtype)
            if argument.is_list:
                lists[argument.name] = argument, tensors
            else:
                self.bind_shape(argument, argument.name, tuple(value.shape))
        self.solve_expressions()
        self.bind_lists(lists)
        for name, options in op.types.items():
            if name not in self.types:  # its tensor is absent: the first option
                self.types[name] = self.option(options[0])
        for argument, dtype in self.accumulators:
            if (got := _NAMES.get(dtype, str(dtype))) != (wanted := _dtype(argument.element, self.types)):
                self.refuse(f"{argument.name} is {got}, but must be {wanted}")
        return self.dims, self.types, first[1]

    def bind_lists(self, lists):
        """Lists run side by side: item k of each shares dimensions of its own."""
        if not lists:
            return
        counts = {name: len(tensors) for name, (_, tensors) in lists.items()}
        (first, n), *others = counts.items()
        for name, m in others:
            if m != n:
                self.refuse(f"{name} has {m} tensors, but {first} has {n}")
        outside = dict(self.dims)
        for k in range(n):
            self.dims, self.expressions = dict(outside), []
            for name, (argument, tensors) in lists.items():
                self.bind_shape(argument, f"{name}[{k}]", tuple(tensors[k].shape))
            self.solve_expressions()
        self.dims = outside

    def option(self, o):
        return self.types.get(o["variable"]) if isinstance(o, dict) else o

    def bind_dtype(self, argument, dtype):
        got, element = _NAMES.get(dtype, str(dtype)), argument.element
        if isinstance(element, dict) and "variable" in element:
            name = element["variable"]
            wanted = self.types.setdefault(name, got)
            options = [self.option(o) for o in self.op.types[name]]
            if got != wanted or got not in options:
                wanted = " or ".join(o for o in options if o) if got == wanted else wanted
                self.refuse(f"{argument.name} is {got}, but must be {wanted}")
        elif isinstance(element, dict):
            self.accumulators.append((argument, dtype))
        elif got != (wanted := element):
            self.refuse(f"{argument.name} is {got}, but must be {wanted}")

    def bind_shape(self, argument, name, shape):
        places = argument.shape
        variadic = bool(places) and isinstance(places[0], str) and places[0].startswith("*")
        inner = len(places) - variadic
        lead = len(shape) - inner
        if lead < 0 or (lead and not variadic):
            wanted = f"{'at least ' if variadic else ''}{inner} dimension{'s' if inner != 1 else ''}"
            self.refuse(f"{name} has shape {list(shape)}, but needs {wanted}")
        if variadic:
            self.bind_leading(name, places[0][1:], shape[:lead])
        for at, place in enumerate(places[variadic:], lead):
            if not isinstance(place, str):
                self.expressions.append((name, place, shape, at))
            elif place in self.dims:
                self.same(shape[at], self.dims[place], lambda at=at, p=place: f"{_size_text(name, shape, at)}, but {self.origin[p]}")
            else:
                self.dims[place] = shape[at]
                self.origin[place] = _size_text(name, shape, at)

    def bind_leading(self, name, dim, sizes):
        if dim not in self.dims:
            self.dims[dim], self.origin[dim] = sizes, name
            return
        wanted = self.dims[dim]

        def sentence():
            return f"{name} has leading dimensions {list(sizes)}, but {self.origin[dim]} has {list(wanted)}"

        if len(sizes) != len(wanted):
            self.refuse(sentence())
        for a, b in zip(sizes, wanted):
            self.same(a, b, sentence)

    def solve_expressions(self):
        """Sizes such as 2*N: first those that give a dimension its value, until none does; then all are compared."""
        progress = True
        while progress:
            progress = False
            for name, place, shape, at in self.expressions:
                unknown = [n for n in _names(place) if n not in self.dims]
                if len(unknown) == 1:
                    self.solve(name, place, shape[at])
                    progress = True
        for name, place, shape, at in self.expressions:
            for dim in _names(place) if _operations(place) & {"add", "sub"} else ():  # R+1 elements of none: R is no size
                if not isinstance(self.dims[dim], tuple):
                    torch._check(self.dims[dim] >= 0, self._negative(name, shape, at, place))
            value = _size(self.op, place, self.dims)
            self.same(shape[at], value, self._unsuited(name, shape, at, value))

    def _negative(self, name, shape, at, place):
        return lambda: f"{self.op.name}: {name} has shape {list(shape)}, but its dimension {at} must be {_describe.place(place)}"

    @staticmethod
    def _unsuited(name, shape, at, value):
        return lambda: f"{name} has shape {list(shape)}, but its dimension {at} must be {value}"

    def solve(self, name, place, value):
        if isinstance(place, str):
            self.dims[place] = value
            self.origin[place] = f"{name} says {place} is {value}"
            return
        kind, a, b = place
        left = any(n not in self.dims for n in _names(a))  # the side of the unknown
        known = _size(self.op, b if left else a, self.dims)
        if kind == "add":
            value = value - known
        elif kind == "sub":
            value = value + known if left else known - value
        elif kind == "mul":
            torch._check(known > 0, lambda: f"{self.op.name}: {name} has a dimension of {value}, but any number times {known} is {known}")
            self.same(value % known, 0, lambda: f"{name} has a dimension of {value}, but must be a multiple of {known}")
            value = value // known
        else:  # a division by a constant
            value = value * known
        self.solve(name, a if left else b, value)

    def same(self, got, wanted, sentence):
        if got is not wanted:
            torch._check(got == wanted, lambda: f"{self.op.name}: {sentence()}")

    def refuse(self, sentence):
        raise ArgumentError(f"{self.op.name}: {sentence}")


def _size_text(name, shape, at):
    if len(shape) == 1:
        return f"{name} has {shape[0]} element{'s' if shape[0] != 1 else ''}"
    if at == len(shape) - 1:
        return f"{name} has last dimension {shape[at]}"
    return f"{name} has size {shape[at]} in dimension {at}"


def _names(place) -> list:
    """As often as they stand there: a dimension that stands twice in a size is not solved for."""
    if isinstance(place, str):
        return [place.lstrip("*")]
    return [name for part in place[1:] for name in _names(part)] if isinstance(place, list) else []


def _operations(place) -> set:
    return {place[0]}.union(*map(_operations, place[1:])) if isinstance(place, list) else set()


def _sizes(op, result, place, dims):
    if isinstance(place, str) and place.startswith("*"):
        return dims.get(place[1:], ())
    size = _size(op, place, dims)
    if "sub" in _operations(place):  # nothing else goes below zero
        torch._check(size >= 0, lambda: f"{op.name}: a dimension of {result.name} is {_describe.place(place)}, which is {size}")
    return [size]


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
