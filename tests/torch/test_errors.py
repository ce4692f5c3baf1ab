"""Bad input: a sentence of the right kind on every way in, nothing written, everything usable afterwards."""

import pytest
import samples as s
import torch

import kernelwright
import kernelwright.torch as kt

PUBLIC = [op for op in s.all_ops() if op.backward_of is None and not op.writes and not any(i.is_list for i in op.inputs)]


def first(y):
    return y[0] if isinstance(y, tuple) else y


def good(op, grad=False):
    return s.sample(op, s.dtype_choices(op)[-1], (3,), 8, grad=grad)


def wrong_dtype(op):
    a = [t.to(torch.int32) if isinstance(t, torch.Tensor) else t for t in good(op)]
    return a, f"{op.inputs[0].name} is i32, but must be "


def complex_dtype(op):
    a = good(op)
    a[0] = a[0].detach().to(torch.complex64)
    return a, f"{op.inputs[0].name} has a dtype that no contract knows"


def rank(op):
    a = good(op)
    a[0] = torch.ones((), dtype=a[0].dtype, device=a[0].device)
    return a, f"{op.inputs[0].name} has shape [], but "


def nine_dimensions(op):
    a = good(op)
    a[0] = a[0].reshape(*[1] * 7, *a[0].shape)
    return a, f"{op.inputs[0].name} has 9 dimensions, but at most 8 are supported"


def length(op):
    a, last = good(op), [i for i, t in enumerate(op.inputs) if t.shape][-1]
    if last == 0:
        return None
    a[last] = a[last][..., :7].contiguous()
    return a, f"{op.inputs[last].name} has "


def device(op):
    if len(op.inputs) < 2 or not torch.cuda.is_available() or s.devices_of(op) == ["cpu"]:
        return None
    a = good(op)
    a[1] = a[1].cpu()
    return a, f"{op.inputs[1].name} is on cpu, but {op.inputs[0].name} is on cuda:0"


FAULTS = [wrong_dtype, complex_dtype, rank, nine_dimensions, length, device]


APPLY = [(op, fault) for op in PUBLIC for fault in FAULTS if fault(op)]


@pytest.mark.parametrize("op,fault", APPLY, ids=lambda p: p.name if p in PUBLIC else p.__name__)
def test_sentence_on_every_way(op, fault):
    arguments, part = fault(op)
    before = s.library.calls(op.name)
    for grad in (False, True):
        given = [a.detach().requires_grad_(grad and a.is_floating_point()) if isinstance(a, torch.Tensor) else a for a in arguments]
        with pytest.raises(kernelwright.ArgumentError) as e:
            getattr(kt, op.name)(*given)
        assert str(e.value).startswith(f"{op.name}: {part}"), str(e.value)
        assert isinstance(e.value, ValueError) and isinstance(e.value, RuntimeError)
        with pytest.raises(RuntimeError) as e:
            s.public_op(op)(*given)
        assert str(e.value).startswith(f"{op.name}: {part}"), str(e.value)
    assert s.library.calls(op.name) == before
    getattr(kt, op.name)(*good(op))  # and on it goes
    assert s.library.calls(op.name) == before + 1


WAYS = {
    "function": s.function,
    "dispatcher": s.public_op,
    "compiled": lambda op: torch.compile(s.function(op), backend="aot_eager", fullgraph=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", [op for op in PUBLIC if op.outputs[0].shape[:1] == ["*B"]], ids=lambda op: op.name)
def test_no_memory(op, way):
    """For a result, and for a copy of an input: one exception, which is what a program that catches torch's, ours or Python's expects."""
    torch._dynamo.reset()
    call, arguments = WAYS[way](op), good(op)
    wanted = first(call(*arguments))
    before = s.library.calls(op.name)
    for what in ("a result", "a contiguous copy"):
        many, copied = list(arguments), False
        for i, t in enumerate(op.inputs):
            if t.shape[:1] != ["*B"]:
                continue
            if what != "a result" and len(t.shape) > 1:  # rows of stride 0 are copied
                many[i], copied = many[i][:, :1].expand_as(many[i]), True
            many[i] = many[i][:1].expand(2**46, *many[i].shape[1:])
        for grad in (False, True) if op.gradient and way != "compiled" else (False,):
            given = [a.detach().requires_grad_(grad and a.is_floating_point()) if isinstance(a, torch.Tensor) else a for a in many]
            for kind in (torch.OutOfMemoryError, kernelwright.OutOfMemoryError, MemoryError, RuntimeError):
                with pytest.raises(kind) as e:
                    call(*given)
            part = f"{op.name}: torch could not allocate " + ("a contiguous copy of " if copied else "")
            assert str(e.value).startswith(part) and (copied or str(e.value).endswith(" bytes")), str(e.value)
    assert s.library.calls(op.name) == before
    assert torch.equal(first(call(*arguments)), wanted)  # and on it goes


@pytest.mark.parametrize("op", PUBLIC, ids=lambda op: op.name)
def test_not_a_tensor(op):
    for value in ([1.0, 2.0], 3, "x", torch.ones(3).numpy(), None):
        arguments = good(op)
        arguments[0] = value
        with pytest.raises(TypeError, match=f"{op.name}: {op.inputs[0].name} must be a torch.Tensor, got {type(value).__name__}"):
            getattr(kt, op.name)(*arguments)


@pytest.mark.parametrize("op", PUBLIC, ids=lambda op: op.name)
def test_python_signature(op):
    with pytest.raises(TypeError, match="positional argument|required"):
        getattr(kt, op.name)()
    with pytest.raises(TypeError, match="unexpected keyword"):
        getattr(kt, op.name)(*good(op), nonsense=1)
    by_name = dict(zip([a.name for a in op.arguments], good(op)))
    getattr(kt, op.name)(**by_name)


@pytest.mark.parametrize("op", PUBLIC, ids=lambda op: op.name)
def test_foreign_tensors(op):
    """Sparse, nested, quantised and undefined tensors, and mixtures with meta: an exception, never a crash."""
    x = good(op)[0].detach().float()
    nested = torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(2, 8)])
    for strange in (x.to_sparse(), nested, torch.quantize_per_tensor(x.cpu(), 1.0, 0, torch.qint8)):
        arguments = good(op)
        arguments[0] = strange
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(kt, op.name)(*arguments)
    if len(op.inputs) > 1:
        arguments = good(op)
        arguments[1] = arguments[1].to("meta")
        with pytest.raises(RuntimeError):
            getattr(kt, op.name)(*arguments)


def test_attributes():
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="test_blend: factor is 0, but must be > 0"):
        kt.test_blend(x, factor=0.0)
    with pytest.raises(ValueError, match="test_blend: factor is nan, but must be > 0"):
        kt.test_blend(x, factor=float("nan"))
    with pytest.raises(ValueError, match="test_blend: kind is 'cubed', but must be one of plain, squared"):
        kt.test_blend(x, kind="cubed")
    with pytest.raises(ValueError, match="test_add: times is 0, but must be >= 1"):
        kt.test_add(torch.ones(3), torch.ones(3), times=0)
    with pytest.raises(Exception, match="factor|float"):
        kt.test_blend(x, factor="two")
    for same in (2, 2.0, True + 1):
        assert kt.test_blend(x, factor=same)[0].eq(2).all()
    with pytest.raises(Exception):
        kt.test_add(torch.ones(3), torch.ones(3), times=2**70)


def test_list_arguments():
    like = torch.ones(2)
    with pytest.raises(RuntimeError, match="test_total: xs is an empty list"):
        kt.test_total([], like)
    with pytest.raises(TypeError, match="xs must be a list of torch.Tensor, got int"):
        kt.test_total([1], like)
    with pytest.raises(ValueError, match=r"test_total: like has shape \[3\], but its dimension 0 must be 2\*M"):
        kt.test_total([torch.ones(2, 2)], torch.ones(3))
    many = [torch.full((2,), float(i)) for i in range(500)]
    assert kt.test_total(many, like)[0] == sum(2 * i for i in range(500))
    assert kt.test_total(tuple(many[:3]), like, negate=True, note="").tolist() == [-6, 0]


@pytest.mark.parametrize("op", PUBLIC, ids=lambda op: op.name)
def test_empty_tensors(op):
    for leading in ((0,), (3, 0), (0, 5)):
        arguments = s.sample(op, s.dtype_choices(op)[-1], leading, 8, grad=bool(op.gradient))
        y = getattr(kt, op.name)(*arguments)
        y = y[0] if isinstance(y, tuple) else y
        assert y.shape[: len(leading)] == (leading if op.outputs[0].shape[:1] == ["*B"] else ())
        if op.gradient:
            wanted = s.wanted(op, arguments)
            for a, g in zip(wanted, torch.autograd.grad(y.sum(), wanted), strict=True):
                assert g.shape == a.shape and not g.any()  # a weight's gradient over no rows is zero, not garbage
    rows = [bool(t.shape) and t.shape[-1] != "*B" for t in op.inputs]  # inputs with something inside a row
    arguments = [a[..., :0] if isinstance(a, torch.Tensor) and r else a for a, r in zip(good(op), rows + [False] * 16)]
    y = getattr(kt, op.name)(*arguments)
    assert not (y[0] if isinstance(y, tuple) else y).numel() or not rows[0] or op.outputs[0].shape in ([], ["*B"])


def test_absent_library(tmp_path):
    with pytest.raises(OSError, match="cannot be loaded"):
        kernelwright.load_library(str(tmp_path / "none.so"))
    assert "test_blend" in kernelwright.ops()
    with pytest.raises(kernelwright.ArgumentError, match="there is no op 'nonsense'; there are: "):
        kernelwright.calls("nonsense")
