"""Values and gradients against truth in float64; gradcheck where a contract has float64."""

import itertools

import pytest
import samples as s
import torch
from truth import TRUTH, assert_close, in_double

import kernelwright.torch as kt

KNOWN = [op for op in s.all_ops() if op.name in TRUTH]
DIFFERENTIABLE = [op for op in s.all_ops() if op.gradient and any("f64" in types.values() for types in s.dtype_choices(op))]
IN_DOUBLE = lambda op: max(s.dtype_choices(op), key=lambda types: list(types.values()).count("f64"))  # noqa: E731


def assert_slopes(f, tensors):
    """What gradcheck does, for a graph that gives one gradient: along random directions, its slope is that of the function."""
    for _ in range(5):
        y = f(*tensors)[0]
        dy, step = torch.randn_like(y), 1e-6
        gradients = torch.autograd.grad(y, tensors, dy)
        with torch.no_grad():
            directions = [torch.randn_like(t) for t in tensors]
            up, down = (f(*(t + h * d for t, d in zip(tensors, directions)))[0] for h in (step, -step))
            want = ((up - down) * dy).sum() / (2 * step)
        torch.testing.assert_close(sum((g * d).sum() for g, d in zip(gradients, directions)), want, rtol=1e-6, atol=1e-8)


def tupled(results):
    return results if isinstance(results, tuple) else (results,)


WAYS = {"function": lambda op: getattr(kt, op.name), "dispatcher": s.public_op}


def test_every_room_has_its_truth():
    assert {op.name for op in s.all_ops() if op.backward_of is None and not op.name.startswith("test_")} == set(TRUTH)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", KNOWN, ids=lambda op: op.name)
def test_values_and_gradients(op, way):
    call = WAYS[way](op)
    optional = [t.name for t in op.inputs if t.optional]
    for types, absent, shape in itertools.product(s.dtype_choices(op), ([], optional), [((7,), 64), ((2, 3), 100), ((1,), 1), ((), 33)]):
        arguments = s.sample(op, types, shape[0], shape[1], absent, grad=True)
        results = tupled(call(*arguments))
        truths, wanted = in_double(TRUTH[op.name], arguments)
        what = f"{op.name} {types} {shape} without {absent}"
        for y, truth in zip(results, tupled(truths), strict=True):  # an op of several results rounds each before it goes on
            own = 6.0 if y.dtype == torch.float64 else 0.0  # the truth is then no finer than the result (seen: 2.6 in all)
            assert_close(y.detach(), truth.detach(), what, roundings=2.0 * len(results) + own)
        upstream = [torch.randn_like(y) for y in results]
        inputs = s.wanted(op, arguments)
        got = torch.autograd.grad(results, inputs, upstream)
        for a, g, t in zip(inputs, got, torch.autograd.grad(tupled(truths), wanted, [d.double() for d in upstream]), strict=True):
            assert g.dtype == a.dtype and g.device == a.device
            # What the backward gets of the forward's results is rounded.
            through = max([g.dtype, *(y.dtype for y in results[1:])], key=lambda t: torch.finfo(t).eps)
            assert_close(g, t, f"gradient of {what}", roundings=8.0, dtype=through)


@pytest.mark.parametrize("op", [op for op in KNOWN if len(op.outputs[0].shape) > 1], ids=lambda op: op.name)
def test_upstream_gradients_of_any_layout(op):
    """Expanded (stride 0), sliced and transposed upstream gradients, as sum(), slicing and transpose() send them."""
    types = s.dtype_choices(op)[-1]
    for layout in ("expanded", "row expanded", "sliced", "transposed"):
        arguments = s.sample(op, types, (6,), 64, grad=True)
        y = tupled(getattr(kt, op.name)(*arguments))[0]
        like, n = y.detach(), y.shape[-1]
        dy = {
            "expanded": lambda: torch.ones((), dtype=like.dtype, device=like.device).expand_as(like),
            "row expanded": lambda: torch.randn_like(like[:1]).expand_as(like),
            "sliced": lambda: torch.randn(12, 3 * n, device=like.device).to(like.dtype)[::2, n : 2 * n],
            "transposed": lambda: torch.randn(n, 6, device=like.device).to(like.dtype).t(),
        }[layout]()
        inputs = s.wanted(op, arguments)
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
            arguments = s.sample(op, IN_DOUBLE(op), (2, 3), 5, absent, device="cpu", grad=True)
            for k, i in enumerate(i for i, a in enumerate(op.arguments) if getattr(a, "type", "") == "enum"):
                arguments[i] = choice[k]
            floats = [i for i, t in enumerate(op.inputs) if t.name in s.differentiable(op) and arguments[i] is not None]

            def of_floats(*tensors):
                full = list(arguments)
                for i, t in zip(floats, tensors):
                    full[i] = t
                out = call(*full)
                out = out if isinstance(out, tuple) else (out,)
                return tuple(o for o in out if o.is_floating_point())

            if s.spends(op):
                assert_slopes(of_floats, [arguments[i] for i in floats])
                continue
            assert torch.autograd.gradcheck(of_floats, tuple(arguments[i] for i in floats), check_undefined_grad=way != "compiled")


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_input_alone(op):
    """Only some inputs want a gradient: the others get none, and the values are the same."""
    types = s.dtype_choices(op)[-1]
    tensors = range(len(op.inputs))
    arguments = s.sample(op, types, (4,), 16, grad=True)
    y = getattr(kt, op.name)(*arguments)
    y = y[0] if isinstance(y, tuple) else y
    dy = torch.randn_like(y)
    tensors = [i for i in tensors if op.inputs[i].name in s.differentiable(op)]
    full = dict(zip(tensors, torch.autograd.grad(y, [arguments[i] for i in tensors], dy)))
    for choice in itertools.product([False, True], repeat=len(tensors)):
        wanted = dict(zip(tensors, choice))
        some = [a.detach().requires_grad_(wanted[i]) if i in tensors else a for i, a in enumerate(arguments)]
        out = getattr(kt, op.name)(*some)
        out = out[0] if isinstance(out, tuple) else out
        assert out.requires_grad == any(choice) and (out.grad_fn is None) == (not any(choice))
        if any(choice):
            out.backward(dy)
        for i in tensors:
            assert (some[i].grad is None) == (not wanted[i])
            assert some[i].grad is None or torch.equal(some[i].grad, full[i])
