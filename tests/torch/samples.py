"""Valid inputs for any op, made from its contract alone."""

import itertools
from pathlib import Path

import pytest
import torch

import kernelwright.torch
from kernelwright._library import library
from kernelwright._manifest import Op, Tensor, required
from kernelwright.torch._fake import DTYPES, _dtype, _names, _size

LEADING = [(3,), (), (2, 3), (0,)]


def all_ops() -> list[Op]:
    return library.ops()


def differentiable(op: Op) -> list[str]:
    """The inputs that the op has a gradient for."""
    return [t[1:] for t in op.gradient.targets] if op.gradient else []


def wanted(op: Op, arguments) -> list[torch.Tensor]:
    """Those of them that are there."""
    return [a for t, a in zip(op.inputs, arguments) if t.name in differentiable(op) and isinstance(a, torch.Tensor)]


def spends(op: Op) -> bool:
    """Whether its backward writes the gradient over what the forward saved, so that it runs once."""
    return bool(op.gradient) and bool(next(o for o in all_ops() if o.name == op.gradient.op).writes)


def needs_room(name: str):
    """For a test of a room's own functions: it runs unless this tree has no such room (rooms can be deleted)."""
    there = (Path(__file__).resolve().parents[2] / "kw" / "ops" / name).is_dir()
    return pytest.mark.skipif(not there, reason=f"kw/ops/{name} is not in this tree")


def devices_of(op: Op) -> list[str]:
    """The test room has no GPU kernels."""
    return ["cuda"] if torch.cuda.is_available() and not op.name.startswith("test_") else ["cpu"]


def dtype_choices(op: Op):
    """Every assignment of the type variables."""
    names = list(op.types)

    def extend(chosen, rest):
        if not rest:
            yield dict(chosen)
            return
        options = {chosen[o["variable"]] if isinstance(o, dict) else o for o in op.types[rest[0]]}
        for o in sorted(options):
            yield from extend({**chosen, rest[0]: o}, rest[1:])

    return list(extend({}, names))


def dimensions(op: Op, leading=(3,), inner=8) -> dict:
    return {n: tuple(leading) if variadic else inner + 4 * k for k, (n, variadic) in enumerate(op.dims.items())}


def make_tensor(t: Tensor, op: Op, dims, types, device="cpu", grad=False):
    shape = []
    for place in t.shape:
        if isinstance(place, str) and place.startswith("*"):
            shape += dims[place[1:]]
        else:
            shape.append(_size(op, place, dims))
    dtype = DTYPES[_dtype(t.element, types)]
    if dtype.is_floating_point:
        if op.gradient and t.name not in differentiable(op):  # weights and divisors: were they of both signs, their sum could be near zero
            return torch.rand(shape, device=device).add(0.5).to(dtype)
        return torch.randn(shape, device=device).to(dtype).requires_grad_(grad)
    return torch.randint(0, 2, shape, device=device).to(dtype)  # within any dimension of two and more


def value_of(attribute, default):
    if default is not required:
        return default
    return {"float": 1e-3, "int": 1, "bool": False, "str": "text", "enum": (attribute.values or [None])[0]}[attribute.type]


def sample(op: Op, types, leading=(3,), inner=8, absent=(), device=None, grad=False) -> list:
    """Arguments of one call: tensors, then attributes."""
    dims = dimensions(op, leading, inner)
    device = device or devices_of(op)[0]
    out = []
    for t in op.inputs:
        if t.optional and t.name in absent:
            out.append(None)
        elif t.is_list:
            items = [{n: (tuple(leading) + (2,) * k if v else inner + k) for n, v in op.dims.items()} for k in range(2)]
            items = [{**dims, **{n: d[n] for n in d if n in _names_of(t)}} for d in items]
            out.append([make_tensor(t, op, d, types, device, grad) for d in items])
        else:
            wants = grad and not t.written and (not op.gradient or t.name in differentiable(op))
            out.append(make_tensor(t, op, dims, types, device, wants))
    return out + [value_of(a, d) for a, d in zip(op.attributes, op.defaults[len(op.inputs) :])]


def _names_of(t: Tensor) -> set:
    return set().union(*(_names(p) for p in t.shape)) if t.shape else set()


def samples(op: Op, device=None, grad=False):
    """A call for every assignment of types and every set of absent inputs, with every kind of leading dimensions; the latter take turns
    where there is much else."""
    optional = [t.name for t in op.inputs if t.optional]
    absent = [c for k in range(len(optional) + 1) for c in itertools.combinations(optional, k)]
    for k, (types, gone) in enumerate(itertools.product(dtype_choices(op), absent)):
        for leading in LEADING if len(absent) * len(dtype_choices(op)) < 16 else [LEADING[k % len(LEADING)]]:
            yield sample(op, types, leading, absent=gone, device=device, grad=grad)


def attribute_choices(op: Op):
    """The default of every attribute, then one of them after the other at another value, every value of an enumeration among them."""
    defaults = [value_of(a, d) for a, d in zip(op.attributes, op.defaults[len(op.inputs) :])]
    yield defaults
    for k, a in enumerate(op.attributes):
        others = a.values if a.type == "enum" else {"float": [0.25], "int": [1], "bool": [not defaults[k]], "str": ["other"]}[a.type]
        for value in others:
            if value != defaults[k]:
                yield [*defaults[:k], value, *defaults[k + 1 :]]


def function(op: Op):
    """The op's function in kernelwright.torch, taking what sample() returns: attributes there are passed by name."""
    tensors, names, call = len(op.inputs), [a.name for a in op.attributes], getattr(kernelwright.torch, op.name)
    return lambda *arguments, **more: call(*arguments[:tensors], **dict(zip(names, arguments[tensors:])), **more)


def public_op(op: Op):
    return getattr(torch.ops.kernelwright, op.name).default


def private_op(op: Op):
    return getattr(torch.ops.kernelwright, "_" + op.name).default


def ways(op: Op) -> dict:
    """The ways to call it: its public function (of somebody's gradient, what autograd calls in its place) and torch's dispatcher."""
    eager = kernelwright.torch._known[op.name]
    return {"function": eager.entry, "dispatcher": eager.slow}


def upstream(y: torch.Tensor) -> torch.Tensor:
    """A gradient to flow into y: small whole numbers of both signs, the same at each call."""
    return (torch.arange(y.numel(), device=y.device) % 7 - 3).to(y.dtype).view(y.shape)


def outcome(op: Op, call, arguments, upstream=upstream, **more) -> list:
    """All that one call leaves: results, what it wrote to, gradients (`more` is for torch.autograd.grad). `arguments` stay as they are."""
    arguments = [a.detach().clone().requires_grad_(a.requires_grad) if i in op.writes else a for i, a in enumerate(arguments)]
    y = call(*arguments)
    results = list(y) if isinstance(y, tuple) else [y]
    left = results + [arguments[i] for i in op.writes]
    inputs = [a for a in wanted(op, arguments) if a.requires_grad]
    if inputs:
        flows = [r for r in results if r is not None and r.requires_grad]
        left += torch.autograd.grad(flows, inputs, [upstream(r) for r in flows], allow_unused=True, **more)
    return [t.detach() if isinstance(t, torch.Tensor) else t for t in left]


def same_bits(got, wanted) -> bool:
    """NaN of the same bits are the same, zeros of two signs are not."""
    if isinstance(got, (list, tuple)):
        return len(got) == len(wanted) and all(map(same_bits, got, wanted))
    if got is None or wanted is None:
        return got is wanted
    raw = [t.resolve_neg().contiguous().view(-1).view(torch.uint8) for t in (got, wanted)]
    return (got.shape, got.dtype, got.device) == (wanted.shape, wanted.dtype, wanted.device) and torch.equal(*raw)
