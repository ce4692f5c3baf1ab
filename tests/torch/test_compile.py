"""torch.compile, export, make_fx, fake tensors, functionalisation."""

import pytest
import samples as s
import torch
import torch._dynamo.testing

import kernelwright.torch as kt

FORWARD = [op for op in s.all_ops() if op.gradient]


def first(y):
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_fullgraph_dynamic(op):
    """Forward and backward at several shapes, one graph, the same bits as eager."""
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("inductor")
    call = getattr(kt, op.name)
    compiled = torch.compile(lambda *a: first(call(a[0] * 2, *a[1:])), fullgraph=True, dynamic=True, backend=counter)
    types = s.dtype_choices(op)[-1]
    for leading, inner in (((4,), 8), ((7,), 24), ((9,), 40)):
        arguments = s.sample(op, types, leading, inner, grad=True)
        wanted = s.wanted(op, arguments)
        y, eager = compiled(*arguments), first(call(arguments[0] * 2, *arguments[1:]))
        assert torch.equal(y, eager)
        dy = torch.randn_like(y)
        for a, b in zip(torch.autograd.grad(y, wanted, dy), torch.autograd.grad(eager, wanted, dy), strict=True):
            assert torch.equal(a, b)
    assert counter.frame_count <= 2  # newer torch specialises once before it goes dynamic


def last_tensor(op) -> int:
    return [i for i, t in enumerate(op.inputs) if t.shape][-1]


@pytest.mark.parametrize("op", [op for op in FORWARD if last_tensor(op) > 0], ids=lambda op: op.name)  # one tensor agrees with itself
def test_sentence_under_compile(op):
    arguments, last = s.sample(op, s.dtype_choices(op)[-1], (3,), 8), last_tensor(op)
    arguments[last] = arguments[last][..., :3].contiguous()
    torch._dynamo.reset()
    with pytest.raises(Exception, match=f"{op.name}: {op.inputs[last].name} has "):
        torch.compile(getattr(kt, op.name), fullgraph=True, backend="aot_eager")(*arguments)


def test_written_op():
    torch._dynamo.reset()

    def f(into, x):
        kt.test_add(into, x, 2.0, 3)
        return into + 1

    a, b, x = torch.ones(2, 5), torch.ones(2, 5), torch.randn(2, 5)
    assert torch.equal(torch.compile(f, fullgraph=True, dynamic=True)(a, x), f(b, x))
    assert torch.equal(a, b)


def test_list_op():
    torch._dynamo.reset()
    xs, like = [torch.randn(2, 3), torch.randn(4)], torch.ones(6)
    f = torch.compile(lambda xs, like: kt.test_total([x + 1 for x in xs], like, note="four") * 2, fullgraph=True)
    torch.testing.assert_close(f(xs, like), kt.test_total([x + 1 for x in xs], like, note="four") * 2)


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_export_with_a_dynamic_dimension(op):
    types = s.dtype_choices(op)[-1]
    call = getattr(kt, op.name)

    class Module(torch.nn.Module):
        def forward(self, *tensors):
            return first(call(*tensors))

    arguments = s.sample(op, types, (4,), 8)[: len(op.inputs)]
    rows = torch.export.Dim("rows", min=2, max=64)
    dynamic = tuple({0: rows} if t.shape and t.shape[0].startswith("*") else None for t in op.inputs)
    program = torch.export.export(Module(), tuple(arguments), dynamic_shapes={"tensors": dynamic})
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert f"kernelwright.{op.name}.default" in targets
    more = s.sample(op, types, (9,), 8)[: len(op.inputs)]
    assert torch.equal(program.module()(*more), first(call(*more)))


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_fake_tensor_mode_and_make_fx(op):
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    arguments = s.sample(op, s.dtype_choices(op)[-1], (3,), 8)
    call = getattr(kt, op.name)
    real = first(call(*arguments))
    before = s.library.calls(op.name)
    with FakeTensorMode() as mode:
        fake = first(call(*(mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments)))
        made_inside = [torch.empty(a.shape, dtype=a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments]
        assert first(call(*made_inside)).shape == real.shape
    assert type(fake).__name__ == "FakeTensor" and (fake.shape, fake.dtype) == (real.shape, real.dtype)
    assert s.library.calls(op.name) == before  # no kernel ran
    graph = make_fx(lambda x: first(call(x, *arguments[1:])))(arguments[0])
    assert f"kernelwright.{op.name}.default" in [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
    assert torch.equal(graph(arguments[0]), real)


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_jit_trace(op):
    arguments = s.sample(op, s.dtype_choices(op)[-1], (3,), 8)
    call = getattr(kt, op.name)
    traced = torch.jit.trace(lambda x: first(call(x, *arguments[1:])), arguments[0], check_trace=False)
    other = torch.randn_like(arguments[0])
    assert torch.equal(traced(other), first(call(other, *arguments[1:])))


def test_dispatch_mode_sees_the_op():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x = torch.randn(2, 3, requires_grad=True)
    with Log() as log:
        kt.test_blend(x)[0].sum().backward()
    assert "kernelwright.test_blend.default" in log.seen and "kernelwright.test_blend_backward.default" in log.seen
