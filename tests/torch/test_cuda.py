"""On a GPU: the caller's stream and device, graph capture, memory. Every op that has GPU kernels, from its contract alone."""

import gc
import threading
import time

import pytest
import samples as s
import torch

import kernelwright.torch as kt

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
FORWARD = [op for op in s.all_ops() if op.gradient and not op.name.startswith("test_")]
WAYS = {"function": lambda op: getattr(kt, op.name), "dispatcher": s.public_op}


def first(y):
    return y[0] if isinstance(y, tuple) else y


def sample(op, grad=False, device="cuda"):
    return s.sample(op, s.dtype_choices(op)[-1], (4,), 64, device=device, grad=grad)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
class TestStreams:
    def test_runs_on_the_current_stream(self, op, way):
        call, stream = WAYS[way](op), torch.cuda.Stream()
        arguments = sample(op)
        wanted = first(call(*arguments))
        source = arguments[0].clone()
        arguments[0].zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)  # the right values arrive late, and on this stream only
            arguments[0].copy_(source)
            y = first(call(*arguments))
        stream.synchronize()
        assert torch.equal(y, wanted)

    def test_capture_and_replay(self, op, way):
        call, arguments = WAYS[way](op), sample(op)
        call(*arguments)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = first(call(*arguments))
        arguments[0].normal_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, first(call(*arguments)))

    def test_capture_with_backward(self, op, way):
        call, arguments = WAYS[way](op), sample(op, grad=True)
        wanted = s.wanted(op, arguments)
        dy = torch.randn_like(first(call(*arguments)))
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.autograd.grad(first(call(*arguments)), wanted, dy)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = torch.autograd.grad(first(call(*arguments)), wanted, dy)
        with torch.no_grad():
            arguments[0].normal_()
        graph.replay()
        torch.cuda.synchronize()
        for a, b in zip(got, torch.autograd.grad(first(call(*arguments)), wanted, dy), strict=True):
            assert torch.equal(a, b)

    def test_other_device_than_the_current_one(self, op, way):
        if torch.cuda.device_count() < 2:
            pytest.skip("needs two GPUs")
        call, arguments = WAYS[way](op), sample(op, grad=True, device="cuda:1")
        assert torch.cuda.current_device() == 0
        y = first(call(*arguments))
        grads = torch.autograd.grad(y, s.wanted(op, arguments), torch.ones_like(y))
        torch.cuda.synchronize(1)
        assert y.device.index == 1 and all(g.device.index == 1 for g in grads) and torch.cuda.current_device() == 0
        mixed = [arguments[0], *(a.to("cuda:0") if isinstance(a, torch.Tensor) else a for a in arguments[1:])]
        with pytest.raises(RuntimeError, match=f"{op.name}: .* is on cuda:0, but .* is on cuda:1"):
            call(*mixed)


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_thread_without_a_context(op):
    arguments, out = sample(op), []
    thread = threading.Thread(target=lambda: out.append(first(getattr(kt, op.name)(*arguments))))
    thread.start()
    thread.join()
    assert torch.equal(out[0], first(getattr(kt, op.name)(*arguments)))


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_device_memory_is_given_back(op):
    arguments = sample(op, grad=True)

    def step():
        y = first(getattr(kt, op.name)(*arguments))
        torch.autograd.grad(y, s.wanted(op, arguments), torch.ones_like(y))

    step()
    gc.collect()  # what earlier tests left in cycles would be given back while we count
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(2000):
        step()
    torch.cuda.synchronize()
    for _ in range(200):  # the thread of the backward may still be giving the last gradients back
        if torch.cuda.memory_allocated() == before:
            break
        time.sleep(0.01)
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_reduce_overhead(op):
    torch._dynamo.reset()
    call, arguments = getattr(kt, op.name), sample(op)
    compiled = torch.compile(lambda x: first(call(x, *arguments[1:])) + 1, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        x = torch.randn_like(arguments[0])
        torch.compiler.cudagraph_mark_step_begin()
        assert torch.equal(compiled(x), first(call(x, *arguments[1:])) + 1)

