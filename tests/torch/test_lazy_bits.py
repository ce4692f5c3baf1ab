"""Tensors that are not what lies in memory: negated lazily (the imaginary part of a conjugated tensor is), conjugated lazily, ZeroTensors
without memory. As any input, as an upstream gradient, and as an argument that is written to; every way in."""

import contextlib

import pytest
import samples as s
import torch

WAYS = ["function", "dispatcher"]
GRADIENT = [op for op in s.all_ops() if op.gradient]
WRITING = [op for op in s.all_ops() if op.writes]


def negative(t: torch.Tensor) -> torch.Tensor:
    """The same numbers, negated twice: once in memory, once by the bit. Laid out like t."""
    lazy = torch._neg_view(-t)
    assert lazy.is_neg() and torch.equal(lazy, t)
    return lazy


def imaginary(t: torch.Tensor) -> torch.Tensor:
    """The same numbers as programs come by such a tensor: the imaginary part of a lazily conjugated one, every second number in memory."""
    if t.dtype not in (torch.float32, torch.float64):
        return negative(t)
    lazy = torch.complex(torch.ones_like(t), -t).conj().imag
    assert lazy.is_neg() and torch.equal(lazy, t)
    return lazy


def zero(t: torch.Tensor) -> torch.Tensor:
    """Zeros like t, without memory."""
    lazy = torch._efficientzerotensor(t.shape, dtype=t.dtype, device=t.device)
    assert lazy._is_zerotensor()
    return lazy


LAZY = {"negative": (negative, lambda t: t), "imaginary": (imaginary, lambda t: t), "zero": (zero, torch.zeros_like)}


def is_float(a) -> bool:
    if isinstance(a, list):
        return all(map(is_float, a))
    return isinstance(a, torch.Tensor) and a.is_floating_point()


def remade(a, make):
    """Made anew from its values; wants a gradient where the old one did."""
    return [remade(t, make) for t in a] if isinstance(a, list) else make(a.detach()).requires_grad_(a.requires_grad)


def replaced(arguments, places, make):
    return [remade(a, make) if i in places else a for i, a in enumerate(arguments)]


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("lazy", LAZY)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_inputs(op, way, lazy, grad):
    """Each input alone, then all at once, gives the bits of an ordinary tensor of the same values, gradients included."""
    call, (make, plain) = s.ways(op)[way], LAZY[lazy]
    for arguments in s.samples(op, grad=grad and bool(op.gradient)):
        places = [i for i, a in enumerate(arguments) if is_float(a) and i not in op.writes]
        assert places
        for chosen in [[i] for i in places] + [places]:
            wanted = s.outcome(op, call, replaced(arguments, chosen, plain))
            assert s.same_bits(s.outcome(op, call, replaced(arguments, chosen, make)), wanted)


@pytest.mark.parametrize("lazy", LAZY)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", GRADIENT, ids=lambda op: op.name)
def test_upstream_gradients(op, way, lazy):
    """Where the graph is freed, and where it lives on, which for an op that writes over what it saved is another way."""
    call, (make, plain) = s.ways(op)[way], LAZY[lazy]
    for arguments in s.samples(op, grad=True):
        for more in ({}, {"retain_graph": True}):
            wanted = s.outcome(op, call, arguments, lambda y: plain(s.upstream(y)), **more)
            assert s.same_bits(s.outcome(op, call, arguments, lambda y: make(s.upstream(y)), **more), wanted)


@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.inference_mode])
@pytest.mark.parametrize("lazy", ["negative", "imaginary"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", WRITING, ids=lambda op: op.name)
def test_written_through_the_bit(op, way, lazy, mode):
    """What the op writes arrives as the tensor says it, not as memory does, and autograd is told."""
    call, (place,) = s.ways(op)[way], op.writes
    for arguments in s.samples(op):
        wanted = s.outcome(op, call, arguments)[-1]
        with mode():
            written = LAZY[lazy][0](arguments[place].detach().clone())
            version = None if written.is_inference() else written._version
            call(*arguments[:place], written, *arguments[place + 1 :])
        assert written.is_neg() and torch.equal(written, wanted)
        assert version is None or written._version > version


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", WRITING, ids=lambda op: op.name)
def test_zero_tensor_is_not_written_to(op, way):
    arguments = s.sample(op, s.dtype_choices(op)[-1])
    with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):  # torch's own sentence: it never reaches us
        s.ways(op)[way](*replaced(arguments, op.writes, zero))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_conjugated(op, way):
    """Complex numbers are refused by the same sentence with the bit and without; the real ones beside them have no such bit."""
    arguments = s.sample(op, s.dtype_choices(op)[-1])
    place = next(i for i, a in enumerate(arguments) if is_float(a) and not isinstance(a, list))
    said = []
    for make in (torch.view_as_complex, lambda z: torch.view_as_complex(z).conj()):
        given = replaced(arguments, [place], lambda t: make(torch.stack([t, t], -1).float()))
        with pytest.raises((RuntimeError, ValueError, TypeError)) as e:
            s.ways(op)[way](*given)
        said.append(f"{type(e.value).__name__}: {e.value}")
    assert said[0] == said[1] and f"{op.name}: {op.inputs[place].name} has " in said[0], said
    assert not arguments[place].conj().is_conj()
