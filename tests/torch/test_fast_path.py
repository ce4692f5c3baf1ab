"""The fast path is taken where it may be, agrees with the dispatcher bit for bit, and steps aside for everything that it does not know."""

import copy

import pytest
import samples as s
import torch

import kernelwright
import kernelwright.torch as kt
from kernelwright.torch import _known

PLAIN = [op for op in s.all_ops() if not op.writes and not any(i.is_list for i in op.inputs)]
FORWARD = [op for op in PLAIN if op.backward_of is None]


def first(y):
    return y[0] if isinstance(y, tuple) else y


def tuple_of(y):
    return y if isinstance(y, tuple) else (y,)


class Watch:
    """What a profiler sees of our ops: the dispatcher tells it the shapes of the inputs, the fast path only the name."""

    def __init__(self, call):
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
            self.result = call()
        events = [e for e in p.events() if e.name.startswith("kernelwright::")]
        self.dispatched = sorted(e.name.split("::")[1] for e in events if e.input_shapes)
        self.fast = sorted(e.name.split("::")[1] for e in events if not e.input_shapes)


def test_on():
    assert kt.fast_path() == "on"


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_taken(op):
    """Without and with a gradient, in the backward too: torch's dispatcher sees no op of ours, profiler and counter see every call."""
    call = getattr(kt, op.name)
    types = s.dtype_choices(op)[-1]
    before = kernelwright.calls(op.name)
    watch = Watch(lambda: call(*s.sample(op, types)))
    assert (watch.dispatched, watch.fast) == ([], [op.name])
    assert kernelwright.calls(op.name) == before + 1
    assert Watch(lambda: s.public_op(op)(*s.sample(op, types))).dispatched == [op.name]  # the watch tells one from the other
    if not op.gradient:
        return
    arguments = s.sample(op, types, grad=True)
    backward = kernelwright.calls(op.gradient.op)
    dy = torch.randn_like(first(call(*s.sample(op, types))))
    watch = Watch(lambda: first(call(*arguments)).backward(dy))
    assert (watch.dispatched, watch.fast) == ([], sorted([op.name, op.gradient.op]))
    assert kernelwright.calls(op.name) == before + 4 and kernelwright.calls(op.gradient.op) == backward + 1


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_same_bits_as_the_dispatcher(op):
    entry = _known[op.name].entry
    for arguments in s.samples(op):
        a, b = entry(*arguments), s.public_op(op)(*arguments)
        for r, x, y in zip(op.outputs, tuple_of(a), tuple_of(b), strict=True):
            if r.present_with and arguments[[i.name for i in op.inputs].index(r.present_with)] is None:
                assert x is None and y.shape == (0,)
            else:
                assert torch.allclose(x, y, 0, 0, equal_nan=True) and (x.dtype, x.stride(), x.device) == (y.dtype, y.stride(), y.device)


LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "every second row": lambda x: torch.stack([x, x], 1).flatten(0, 1)[::2],
    "columns of a wider one": lambda x: torch.cat([x, x, x], 1)[:, x.shape[1] : 2 * x.shape[1]],
    "every second column": lambda x: torch.stack([x, x], 2).flatten(1)[:, ::2],
    "flipped": lambda x: x.flip(0).flip(0),
    "odd address": lambda x: torch.cat([x.flatten()[:1], x.flatten()])[1:].view_as(x),
    "expanded": lambda x: x[:1].expand_as(x),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_layouts(op, layout):
    """Any layout of any input gives the bits of the contiguous one; what rows cannot say is copied, and counted."""
    for types in s.dtype_choices(op):
        for grad in (False, True) if op.gradient else (False,):
            plain = s.sample(op, types, (6,), 16)
            strided = [LAYOUTS[layout](a) if isinstance(a, torch.Tensor) and a.dim() == 2 else a for a in plain]
            plain = [a.contiguous() if isinstance(a, torch.Tensor) else a for a in strided]
            for v in (strided, plain):
                v[:] = [a.detach() if isinstance(a, torch.Tensor) else a for a in v]
                for a in s.wanted(op, v):
                    a.requires_grad_(grad)
            copies = kernelwright.copies(op.name)
            y = first(getattr(kt, op.name)(*strided))
            made = kernelwright.copies(op.name) - copies
            rows = sum(isinstance(a, torch.Tensor) and a.dim() == 2 for a in strided)
            assert made == (rows if layout in ("transposed", "every second column") else 0)
            assert torch.equal(y, first(getattr(kt, op.name)(*plain)))
            if grad:
                wanted = [s.wanted(op, v) for v in (strided, plain)]
                other = first(getattr(kt, op.name)(*plain))
                for a, b in zip(torch.autograd.grad(y.sum(), wanted[0]), torch.autograd.grad(other.sum(), wanted[1]), strict=True):
                    assert torch.equal(a, b)


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
class TestStepsAside:
    def arguments(self, op):
        return s.sample(op, s.dtype_choices(op)[-1], (3,), 8)

    def test_lazy_negation(self, op):
        a = self.arguments(op)
        negated = torch._neg_view(a[0])
        assert negated.is_neg()
        assert torch.equal(first(getattr(kt, op.name)(negated, *a[1:])), first(getattr(kt, op.name)(-a[0], *a[1:])))

    def test_zero_tensor(self, op):
        a = self.arguments(op)
        zero = torch._efficientzerotensor(a[0].shape, dtype=a[0].dtype, device=a[0].device)
        assert torch.equal(first(getattr(kt, op.name)(zero, *a[1:])), first(getattr(kt, op.name)(torch.zeros_like(a[0]), *a[1:])))

    def test_subclass(self, op):
        class Sub(torch.Tensor):
            pass

        a = self.arguments(op)
        y = first(getattr(kt, op.name)(a[0].as_subclass(Sub), *a[1:]))
        assert type(y) is Sub and torch.equal(y.as_subclass(torch.Tensor), first(getattr(kt, op.name)(*a)))

    def test_parameter(self, op):
        a = self.arguments(op)
        y = first(getattr(kt, op.name)(torch.nn.Parameter(a[0]), *a[1:]))
        assert type(y) is torch.Tensor and torch.equal(y, first(getattr(kt, op.name)(*a)))

    def test_function_mode(self, op):
        from torch.overrides import TorchFunctionMode

        seen = []

        class Mode(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return function(*args, **(kwargs or {}))

        a = self.arguments(op)
        with Mode():
            y = first(getattr(kt, op.name)(*a))
        assert any(op.name in name for name in seen) and torch.equal(y, first(getattr(kt, op.name)(*a)))

    def test_default_device(self, op):
        a = self.arguments(op)
        wanted = first(getattr(kt, op.name)(*a))
        torch.set_default_device("cpu")
        try:
            assert torch.equal(first(getattr(kt, op.name)(*a)), wanted)
        finally:
            torch.set_default_device(None)

    def test_autocast(self, op):
        a = self.arguments(op)
        with torch.autocast(a[0].device.type, torch.bfloat16):
            y = first(getattr(kt, op.name)(*a))
        assert torch.equal(y, first(getattr(kt, op.name)(*a)))

    def test_inference_mode(self, op):
        a = self.arguments(op)
        with torch.inference_mode():
            y = first(getattr(kt, op.name)(*a))
        assert y.is_inference() and torch.equal(y, first(getattr(kt, op.name)(*a)))


def test_without_the_c_module(monkeypatch):
    """Where torch lacks one of the private names, everything works through the dispatcher."""
    from kernelwright.torch import _eager

    wanted = [torch.randn(3, 8, requires_grad=True), torch.randn(8, requires_grad=True)]
    fast = kt.test_blend(*wanted)[0]
    monkeypatch.setattr(_eager, "_fast", None)
    slow = copy.copy(_known["test_blend"])
    slow.finish(_known.__getitem__)
    assert slow.entry == slow.slow
    assert torch.equal(slow.entry(*wanted, 2.0, "plain")[0], fast)


def test_outputs_are_ordinary_tensors():
    y = kt.test_grow(torch.randn(2, 3))
    assert y.untyped_storage().resizable() and y.is_contiguous() and y._version == 0 and y.is_leaf
    y.resize_(4, 4).add_(1)
