"""Values and gradients against truth in float64; gradcheck where a contract has float64."""

import itertools

import pytest
import samples as s
import torch
from truth import TRUTH, assert_close, in_double

import kernelwright.torch as kt

KNOWN = [op for op in s.all_ops() if op.name in TRUTH]
DIFFERENTIABLE = [op for op in s.all_ops() if op.gradient and any("f64" in types.values() for types in s.dtype_choices(op))]
WAYS = {"function": lambda op: s.function(op), "dispatcher": s.public_op}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", KNOWN, ids=lambda op: op.name)
def test_values_and_gradients(op, way):
    call = WAYS[way](op)
    optional = [t.name for t in op.inputs if t.optional]
    for types, absent, shape in itertools.product(s.dtype_choices(op), ([], optional), [((7,), 64), ((2, 3), 100), ((1,), 1), ((), 33)]):
        arguments = s.sample(op, types, shape[0], shape[1], absent, grad=True)
        y = call(*arguments)
        truth, wanted = in_double(TRUTH[op.name], arguments)
        what = f"{op.name} {types} {shape} without {absent}"
        assert_close(y.detach(), truth.detach(), what)
        dy = torch.randn_like(y)
        inputs = [a for a in arguments if isinstance(a, torch.Tensor)]
        got = torch.autograd.grad(y, inputs, dy)
        for a, g, t in zip(inputs, got, torch.autograd.grad(truth, wanted, dy.double()), strict=True):
            assert g.dtype == a.dtype and g.device == a.device
            assert_close(g, t, f"gradient of {what}", roundings=8.0)


@pytest.mark.parametrize("op", KNOWN, ids=lambda op: op.name)
def test_upstream_gradients_of_any_layout(op):
    """Expanded (stride 0), sliced and transposed upstream gradients, as sum(), slicing and transpose() send them."""
    types = s.dtype_choices(op)[-1]
    for layout in ("expanded", "row expanded", "sliced", "transposed"):
        arguments = s.sample(op, types, (6,), 64, grad=True)
        y = s.function(op)(*arguments)
        like, n = y.detach(), y.shape[-1]
        dy = {
            "expanded": lambda: torch.ones((), dtype=like.dtype, device=like.device).expand_as(like),
            "row expanded": lambda: torch.randn_like(like[:1]).expand_as(like),
            "sliced": lambda: torch.randn(12, 3 * n, device=like.device).to(like.dtype)[::2, n : 2 * n],
            "transposed": lambda: torch.randn(n, 6, device=like.device).to(like.dtype).t(),
        }[layout]()
        inputs = [a for a in arguments if isinstance(a, torch.Tensor)]
        strided = torch.autograd.grad(y, inputs, dy, retain_graph=True)
        plain = torch.autograd.grad(y, inputs, dy.contiguous())
        for a, b in zip(strided, plain):
            assert torch.equal(a, b), layout


@pytest.mark.parametrize("way", [*WAYS, "compiled"])
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_gradcheck(op, way):
    call = torch.compile(WAYS["function"](op), backend="aot_eager", fullgraph=True) if way == "compiled" else WAYS[way](op)
    optional = [t.name for t in op.inputs if t.optional]
    enums = [a.values for a in op.attributes if a.type == "enum"]
    for absent in ([], optional):
        for choice in itertools.product(*enums):
            arguments = s.sample(op, {n: "f64" for n in op.types}, (2, 3), 5, absent, device="cpu", grad=True)
            for k, i in enumerate(i for i, a in enumerate(op.arguments) if getattr(a, "type", "") == "enum"):
                arguments[i] = choice[k]
            floats = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]

            def of_floats(*tensors):
                full = list(arguments)
                for i, t in zip(floats, tensors):
                    full[i] = t
                out = call(*full)
                out = out if isinstance(out, tuple) else (out,)
                return tuple(o for o in out if o.is_floating_point())

            assert torch.autograd.gradcheck(of_floats, tuple(arguments[i] for i in floats), check_undefined_grad=way != "compiled")


@pytest.mark.parametrize("op", KNOWN + DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_input_alone(op):
    """Only some inputs want a gradient: the others get none, and the values are the same."""
    types = s.dtype_choices(op)[-1]
    tensors = range(len(op.inputs))
    arguments = s.sample(op, types, (4,), 16, grad=True)
    y = s.function(op)(*arguments)
    y = y[0] if isinstance(y, tuple) else y
    dy = torch.randn_like(y)
    full = torch.autograd.grad(y, [arguments[i] for i in tensors], dy)
    for wanted in itertools.product([False, True], repeat=len(op.inputs)):
        some = [a.detach().requires_grad_(wanted[i]) if i in tensors else a for i, a in enumerate(arguments)]
        out = s.function(op)(*some)
        out = out[0] if isinstance(out, tuple) else out
        assert out.requires_grad == any(wanted) and (out.grad_fn is None) == (not any(wanted))
        if any(wanted):
            out.backward(dy)
        for i in tensors:
            assert (some[i].grad is None) == (not wanted[i])
            assert some[i].grad is None or torch.equal(some[i].grad, full[i])
