"""What autograd must refuse, detect or leave alone."""

import gc
import time
import sys
import weakref

import pytest
import samples as s
import torch

import kernelwright.torch as kt
from kernelwright.torch import _autograd

FORWARD = [op for op in s.all_ops() if op.gradient]
WAYS = {"function": lambda op: s.function(op), "dispatcher": s.public_op}


def first(y):
    return y[0] if isinstance(y, tuple) else y


def sample(op, grad=True):
    return s.sample(op, s.dtype_choices(op)[-1], (3,), 8, grad=grad)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
class TestForward:
    def test_second_derivative_is_refused(self, op, way):
        arguments = sample(op)
        (g,) = torch.autograd.grad(first(WAYS[way](op)(*arguments)).sum(), arguments[0], create_graph=True)
        sentence = f"{op.gradient.op} has no gradient of its own: {op.name} cannot be differentiated a second time"
        with pytest.raises(RuntimeError, match=sentence):
            torch.autograd.grad(g.sum(), arguments[0])

    def test_saved_tensor_changed_in_place_is_detected(self, op, way):
        arguments = sample(op)
        arguments[0] = arguments[0] * 1
        y = first(WAYS[way](op)(*arguments))
        arguments[0].mul_(2)
        if op.inputs[0].name in op.gradient.arguments:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()

    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_nothing_is_kept_without_a_gradient(self, op, way, mode):
        arguments = sample(op)
        before = sys.getrefcount(arguments[0])
        with mode():
            y = WAYS[way](op)(*arguments)
        assert first(y).grad_fn is None and not first(y).requires_grad
        after = sys.getrefcount(arguments[0])  # not inside the assert: pytest keeps references of its own
        assert after == before
        gone = weakref.ref(arguments[0])
        arguments.clear()
        until = time.monotonic() + 5  # on a GPU, autograd's own thread lets go of the graph a moment after backward has returned
        while gone() is not None and time.monotonic() < until:
            gc.collect()
        assert gone() is None

    def test_graph_is_freed(self, op, way):
        arguments = sample(op)
        y = first(WAYS[way](op)(*arguments))
        gone = weakref.ref(arguments[0])
        y.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.sum().backward()
        del y
        arguments.clear()
        gc.collect()
        assert gone() is None

    def test_retain_graph(self, op, way):
        """However often, and whatever flows in: each gradient has the bits of a call of its own, and none changes afterwards."""
        arguments, call = sample(op), WAYS[way](op)
        y = first(call(*arguments))
        got = [torch.autograd.grad((k * y).sum(), arguments[0], retain_graph=k < 3)[0] for k in (1, 2, 3)]
        for k, g in zip((1, 2, 3), got):
            assert torch.equal(g, torch.autograd.grad((k * first(call(*arguments))).sum(), arguments[0])[0])
        with pytest.raises(RuntimeError, match="second time.* retain_graph=True"):
            torch.autograd.grad(y.sum(), arguments[0])

    def test_checkpoint_and_hooks(self, op, way):
        from torch.utils.checkpoint import checkpoint

        arguments = sample(op)
        call = WAYS[way](op)
        count = 0

        def pack(t):
            nonlocal count
            count += 1
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = first(call(*arguments))
        assert count > 0
        one = torch.autograd.grad(y.sum(), arguments[0])[0]
        y = checkpoint(lambda *a: first(call(*a)), *arguments, use_reentrant=False)
        assert torch.equal(one, torch.autograd.grad(y.sum(), arguments[0])[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", [op for op in FORWARD if s.spends(op)], ids=lambda op: op.name)
class TestSpending:
    """An op whose backward writes the gradient over what the forward saved: it runs once, unless the graph lives on."""

    def test_second_backward_is_refused(self, op, way):
        arguments = sample(op)
        y = first(WAYS[way](op)(*arguments)).sum()
        (one,) = torch.autograd.grad(y, arguments[0])
        kept = one.clone()
        with pytest.raises(RuntimeError, match=f"{op.name} cannot go backward a second time: {op.gradient.op} has written"):
            torch.autograd.grad(y, arguments[0])
        assert torch.equal(one, kept)

    def test_the_gradient_is_what_was_saved(self, op, way):
        """No second tensor of that size, and no copy, where the graph ends."""
        arguments, saved = sample(op), []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
            y = first(WAYS[way](op)(*arguments)).sum()
        for retain, taken in ((True, 0), (False, 1)):
            (g,) = torch.autograd.grad(y, arguments[0], retain_graph=retain)
            assert sum(t.data_ptr() == g.data_ptr() for t in saved) == taken

    def test_without_torchs_private_name_a_retained_graph_is_refused(self, op, way, monkeypatch):
        monkeypatch.setattr(_autograd, "_graph_is_retained", lambda: False)
        arguments = sample(op)
        y = first(WAYS[way](op)(*arguments)).sum()
        torch.autograd.grad(y, arguments[0], retain_graph=True)
        with pytest.raises(RuntimeError, match=f"{op.name} cannot go backward a second time"):
            torch.autograd.grad(y, arguments[0], retain_graph=True)

    def test_a_graph_of_gradients_does_not_spend(self, op, way):
        """With create_graph=True the backward works on copies: it may run again, and give the same bits."""
        arguments = sample(op)
        y = first(WAYS[way](op)(*arguments)).sum()
        (one,) = torch.autograd.grad(y, arguments[0], create_graph=True)
        assert torch.equal(one, torch.autograd.grad(y, arguments[0])[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
def test_forward_mode_is_refused(op, way):
    import torch.autograd.forward_ad as forward_ad

    arguments, call = sample(op, grad=False), WAYS[way](op)
    for grad in (False, True):
        with forward_ad.dual_level():
            x = arguments[0].detach().requires_grad_(grad)
            dual = [forward_ad.make_dual(x, torch.ones_like(x)), *arguments[1:]]
            with pytest.raises(RuntimeError, match=f"{op.name} has no forward-mode derivative"):
                call(*dual)
            assert first(call(x, *arguments[1:])) is not None  # no tangent: allowed
    with pytest.raises(RuntimeError, match=f"{op.name} has no forward-mode derivative"):
        torch.func.jvp(lambda x: first(call(x, *arguments[1:])), (arguments[0],), (arguments[0],))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
class TestTransforms:
    """torch.func, on the functions and on torch.ops."""

    def setup(self, op, way):
        call = WAYS[way](op)
        batch = [s.sample(op, s.dtype_choices(op)[-1], (3,), 8) for _ in range(4)]
        n = len(op.inputs)
        rest = batch[0][n:]

        def f(*tensors):
            return first(call(*tensors, *rest))

        def loss(*tensors):
            return f(*tensors).float().square().sum()

        every = tuple(i for i, t in enumerate(op.inputs) if t.name in s.differentiable(op))
        return f, loss, every, [b[:n] for b in batch]

    def with_autograd(self, loss, every, tensors):
        leaves = [t.detach().requires_grad_(i in every) for i, t in enumerate(tensors)]
        return torch.autograd.grad(loss(*leaves), [leaves[i] for i in every])

    def test_grad_and_vjp(self, op, way):
        f, loss, every, batch = self.setup(op, way)
        want = self.with_autograd(loss, every, batch[0])
        for g, w in zip(torch.func.grad(loss, argnums=every)(*batch[0]), want, strict=True):
            assert torch.equal(g, w)

        def of_every(*chosen):
            full = list(batch[0])
            for i, t in zip(every, chosen):
                full[i] = t
            return f(*full)

        y, pull = torch.func.vjp(of_every, *(batch[0][i] for i in every))
        dy = torch.randn_like(y)
        leaves = [batch[0][i].detach().requires_grad_() for i in every]
        assert torch.equal(y, f(*batch[0]))
        for g, w in zip(pull(dy), torch.autograd.grad(of_every(*leaves), leaves, dy), strict=True):
            assert torch.equal(g, w)

    def test_jacrev(self, op, way):
        f, _, every, batch = self.setup(op, way)
        i = every[0]

        def of_one(t):
            return f(*batch[0][:i], t, *batch[0][i + 1 :])

        jacobian = torch.func.jacrev(of_one)(batch[0][i])
        leaf = batch[0][i].detach().requires_grad_()
        size = of_one(leaf).numel()
        for k in range(0, size, max(1, size // 3)):
            (want,) = torch.autograd.grad(of_one(leaf).flatten()[k], leaf)
            torch.testing.assert_close(jacobian.reshape(size, *leaf.shape)[k], want)

    def test_vmap(self, op, way):
        f, _, _, batch = self.setup(op, way)
        stacked = [torch.stack(column) for column in zip(*batch)]
        one_by_one = torch.stack([f(*b) for b in batch])
        assert torch.equal(torch.func.vmap(f)(*stacked), one_by_one)
        moved = [t.movedim(0, -1) for t in stacked]
        assert torch.equal(torch.func.vmap(f, in_dims=-1)(*moved), one_by_one)
        only_first = torch.func.vmap(f, in_dims=(0, *[None] * (len(stacked) - 1)))(stacked[0], *batch[0][1:])
        assert torch.equal(only_first, torch.stack([f(b[0], *batch[0][1:]) for b in batch]))

    @pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
    def test_gradients_of_samples(self, op, way, compiled):
        """vmap of grad and, where the batch shares every gradient, grad of vmap."""
        f, loss, every, batch = self.setup(op, way)
        stacked = [torch.stack(column) for column in zip(*batch)]
        per_sample, one = torch.func.vmap(torch.func.grad(loss, argnums=every)), torch.func.grad(loss, argnums=every)
        if compiled:
            torch._dynamo.reset()
            per_sample, one = (torch.compile(g, backend="aot_eager", fullgraph=True) for g in (per_sample, one))
        got = per_sample(*stacked)
        for k, b in enumerate(batch):
            for g, w in zip(got, self.with_autograd(loss, every, b), strict=True):
                torch.testing.assert_close(g[k], w, rtol=1e-6, atol=1e-7)
        for g, w in zip(one(*batch[0]), self.with_autograd(loss, every, batch[0]), strict=True):
            torch.testing.assert_close(g, w, rtol=1e-6, atol=1e-7)
        whole = torch.func.grad(lambda *t: torch.func.vmap(f)(*t).float().square().sum(), argnums=every)(*stacked)
        for g, w in zip(whole, got, strict=True):
            torch.testing.assert_close(g, w, rtol=1e-6, atol=1e-7)

    def test_second_order_is_refused(self, op, way):
        _, loss, every, batch = self.setup(op, way)
        with pytest.raises(RuntimeError, match=f"{op.name} cannot be differentiated a second time"):
            torch.func.grad(lambda *t: torch.func.grad(loss, argnums=every[0])(*t).sum(), argnums=every[0])(*batch[0])


def test_op_without_gradient_refuses_at_backward():
    xs, like = [torch.ones(2, 3, requires_grad=True)], torch.ones(4)
    y = kt.test_total(xs, like)
    with pytest.raises(RuntimeError, match="test_total has no gradient"):
        y.sum().backward()


class TestWritten:
    def test_version_counter(self):
        into = torch.ones(3)
        before = into._version
        assert kt.test_add(into, torch.ones(3), times=2) is None
        assert into.tolist() == [3, 3, 3] and into._version == before + 1
        torch.ops.kernelwright.test_add(into, torch.ones(3), -3.0)
        assert into.tolist() == [0, 0, 0] and into._version == before + 2

    def test_overwritten_saved_tensor_is_detected(self):
        a = torch.ones(3, requires_grad=True)
        h = a * 1
        y = h * h
        with torch.no_grad():
            kt.test_add(h, torch.ones(3))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_leaf_is_refused(self):
        a = torch.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="test_add writes to its arguments and has no gradient"):
            kt.test_add(a, torch.ones(3))
        assert a.tolist() == [1, 1, 1]

    def test_strided_target_is_refused_untouched(self):
        t = torch.zeros(4, 4)
        with pytest.raises(ValueError, match="into is written in place, so its rows must be"):
            kt.test_add(t.t(), torch.ones(4, 4))
        assert not t.any()
        kt.test_add(t[:, 1:3], torch.ones(4, 2))  # rows at one distance are fine
        assert t.sum() == 8 and t[:, 1:3].sum() == 8


def test_saved_result_only_where_a_gradient_is_wanted():
    """The private op computes it, the public one does not: seen by what autograd keeps."""
    x = torch.randn(2, 3, dtype=torch.float64)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t, lambda t: t):
        kt.test_grow(x)
        assert not kept
        kt.test_grow(x.requires_grad_())
    assert kept == [x.shape]
