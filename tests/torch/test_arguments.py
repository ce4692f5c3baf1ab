"""Every public function with every argument wrong in turn, from the contracts alone: on each way in a sentence that names the op and the
argument, of one exception type, before anything runs. What is wrong inside a contract's own rules is in test_errors.py too."""

import pytest
import samples as s
import torch

import kernelwright
import kernelwright.torch as kt
from kernelwright._manifest import Tensor
from kernelwright.torch._arguments import own_error

PUBLIC = [op for op in s.all_ops() if op.backward_of is None]
ARGUMENTS = [(op, i) for op in PUBLIC for i in range(len(op.arguments))]
WAYS = {"function": s.function, "dispatcher": s.public_op}


def ids(value):
    return value.name if hasattr(value, "name") else str(value)


def good(op):
    return s.sample(op, s.dtype_choices(op)[-1], (3,), 8)


def one_of(op, i, value):
    """`value` in the place of a tensor, or of the first of a list."""
    arguments = good(op)
    arguments[i] = [value, *arguments[i][1:]] if op.inputs[i].is_list else value
    return arguments


def tensor_of(op, i):
    value = good(op)[i]
    return value[0] if op.inputs[i].is_list else value


def refused(op, arguments, kind, part, way="function"):
    before = kernelwright.calls(op.name)
    kept = [a.clone() if isinstance(a, torch.Tensor) and a.layout == torch.strided and not a.is_nested and not a.is_meta else None
            for a in arguments]
    with pytest.raises(kind) as e:
        WAYS[way](op)(*arguments)
    text = str(e.value)
    assert text.startswith(f"{op.name}: ") and part in text and "\n" not in text, text
    assert kernelwright.calls(op.name) == before
    for a, b in zip(arguments, kept):
        assert b is None or torch.equal(a, b), "something was written"
    return text


def tensors(op_and_index):
    op, i = op_and_index
    return isinstance(op.arguments[i], Tensor)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op,i", [a for a in ARGUMENTS if tensors(a)], ids=ids)
class TestTensors:
    def test_kinds_that_no_op_takes(self, op, i, way):
        t = tensor_of(op, i)
        name = op.inputs[i].name
        if t.dim():
            refused(op, one_of(op, i, t.to_sparse()), kernelwright.ArgumentError, f"{name} is a sparse tensor (sparse_coo)", way)
            nested = torch.nested.nested_tensor([t.float().cpu(), t.float().cpu()])
            refused(op, one_of(op, i, nested), kernelwright.ArgumentError, f"{name} is a nested tensor", way)
        quantised = torch.quantize_per_tensor(torch.ones(t.shape), 1.0, 0, torch.qint8)
        refused(op, one_of(op, i, quantised), kernelwright.ArgumentError, f"{name} is a quantised tensor", way)
        if len([a for a in op.inputs if a.name != name]):
            text = refused(op, one_of(op, i, t.to("meta")), kernelwright.ArgumentError, "is on ", way)
            assert "meta" in text and name in text

    def test_dtypes(self, op, i, way):
        t, name = tensor_of(op, i), op.inputs[i].name
        for dtype in (torch.complex64, torch.int16, torch.bool):
            refused(op, one_of(op, i, t.to(dtype)), kernelwright.ArgumentError, f" {name}", way)

    def test_ranks(self, op, i, way):
        t, name = tensor_of(op, i), op.inputs[i].name
        refused(op, one_of(op, i, t.reshape(*[1] * (9 - t.dim()), *t.shape)), kernelwright.ArgumentError, f"{name} has 9 dimensions", way)
        if t.dim():
            refused(op, one_of(op, i, t.new_ones(())), kernelwright.ArgumentError, f" {name}", way)

    def test_sizes(self, op, i, way):
        t, name = tensor_of(op, i), op.inputs[i].name
        if not t.dim() or len(op.inputs) < 2:
            return
        longer = torch.cat([t, t[..., :1]], -1)
        arguments = one_of(op, i, longer)
        if op.inputs[i].is_list:  # item k has dimensions of its own
            return
        text = refused(op, arguments, kernelwright.ArgumentError, "", way)
        assert any(a.name in text for a in op.inputs)

    def test_devices(self, op, i, way):
        if not torch.cuda.is_available() or s.devices_of(op) == ["cpu"] or len(op.inputs) < 2:
            pytest.skip("needs a GPU")
        text = refused(op, one_of(op, i, tensor_of(op, i).cpu()), kernelwright.ArgumentError, " is on ", way)
        assert op.inputs[i].name in text


def test_devices_of_others(monkeypatch):
    """Torch's own answer to a tensor of another device, two pages about keys, becomes a sentence. There is no such device here."""
    from torch._subclasses import fake_tensor
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    monkeypatch.setattr(fake_tensor, "init_gpu_context", lambda device: None)  # where there is a GPU, torch would start that device
    op, answer = PUBLIC[0], NotImplementedError(f"Could not run 'kernelwright::{PUBLIC[0].name}' with arguments from the 'XPU' backend.")
    arguments = good(op)
    assert own_error(op, arguments, answer) is answer
    arguments[0] = FakeTensor(FakeTensorMode(), arguments[0].to("meta"), torch.device("xpu:0"))
    e = own_error(op, arguments, answer)
    assert type(e) is kernelwright.ArgumentError
    assert str(e) == f"{op.name}: {op.inputs[0].name} is on xpu:0, but must be on cpu or cuda"


@pytest.mark.parametrize("op,i", ARGUMENTS, ids=ids)
def test_python_types(op, i):
    """None, a list, a text, an object, a numpy array, a number where a tensor is wanted; the same where a number or a word is."""
    a = op.arguments[i]
    values = [None, [1.0], {}, object(), torch.ones(2).numpy(), torch.ones(2), torch.ones(()), 1, 1.5, "word", b"word"]
    fits = {"float": (1, 1.5), "int": (1,), "str": ("word",), "enum": ("word",), "bool": ()}
    refusals = 0
    for value in values:
        if isinstance(a, Tensor):
            if isinstance(value, torch.Tensor) or (value is None and a.optional):
                continue
        elif any(value is v for v in fits[a.type]):
            continue
        arguments = good(op)
        arguments[i] = value
        got = "float" if isinstance(value, list) and getattr(a, "is_list", False) else type(value).__name__
        text = refused(op, arguments, kernelwright.ArgumentTypeError, f"{a.name} must be ")
        assert text.endswith(f", got {got}"), text
        with pytest.raises(TypeError):
            s.function(op)(*arguments)
        refusals += 1
    assert refusals >= 5
    s.function(op)(*good(op))


@pytest.mark.parametrize("op,i", [a for a in ARGUMENTS if not tensors(a)], ids=ids)
def test_values(op, i):
    """Beyond the bounds, NaN, numbers that no machine word holds, words that the contract does not know."""
    a = op.arguments[i]
    wrong = []
    if a.type in ("int", "float"):
        wrong += [10**400, -(10**400)] if a.type == "float" else [2**63, -(2**63) - 1, 2**200]
        wrong += [a.bounds["at_least"] - 1] if "at_least" in a.bounds else []
        wrong += [a.bounds["above"]] if "above" in a.bounds else []
        wrong += [a.bounds["at_most"] + 1] if "at_most" in a.bounds else []
        wrong += [a.bounds["below"]] if "below" in a.bounds else []
        wrong += [float("nan")] if a.type == "float" and a.bounds else []
        wrong = [int(w) if a.type == "int" else w for w in wrong]
    elif a.type == "enum":
        wrong += ["nonsense", "", a.values[0].upper(), a.values[0] + "\0", "\ud800"]
    elif a.type == "str":
        wrong += ["a\0b", "\ud800"]
    for value in wrong:
        arguments = good(op)
        arguments[i] = value
        refused(op, arguments, kernelwright.ArgumentError, f"{a.name} ")


def test_a_tensor_that_wants_a_gradient_is_no_number():
    """A learned eps would silently get no gradient."""
    for op, i in ARGUMENTS:
        if getattr(op.arguments[i], "type", "") == "float":
            arguments = good(op)
            arguments[i] = torch.tensor(1e-3, requires_grad=True)
            refused(op, arguments, kernelwright.ArgumentTypeError, f"{op.arguments[i].name} must be a number, got Tensor")
            arguments[i] = torch.nn.Parameter(torch.tensor(1e-3))
            refused(op, arguments, kernelwright.ArgumentTypeError, f"{op.arguments[i].name} must be a number, got Parameter")


def like_the_first(op) -> list[int]:
    """The other inputs of its shape and dtype."""
    shapes = [(t.shape, str(t.element)) for t in op.inputs]
    return [i for i in range(1, len(shapes)) if shapes[i] == shapes[0]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", [op for op in PUBLIC if op.gradient and like_the_first(op)], ids=lambda op: op.name)
def test_one_tensor_as_several_arguments(op, way):
    """The result and every gradient are those of equal copies."""
    types, same = s.dtype_choices(op)[-1], like_the_first(op)
    one = s.sample(op, types, (3,), 8)
    for i in same:
        one[i] = one[0]
    two = [a.clone() if isinstance(a, torch.Tensor) else a for a in one]
    one[0].requires_grad_()
    copies = [two[0].requires_grad_(), *(two[i].requires_grad_() for i in same)]
    a, b = WAYS[way](op)(*one), WAYS[way](op)(*two)
    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))
    assert torch.equal(a, b)
    dy = torch.randn_like(a)
    assert torch.equal(torch.autograd.grad(a, one[0], dy)[0], sum(torch.autograd.grad(b, copies, dy)))


def test_python_signature_by_name():
    for op in PUBLIC:
        named = dict(zip([a.name for a in op.arguments], good(op)))
        getattr(kt, op.name)(**named)
