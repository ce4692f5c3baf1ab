"""Losses in PyTorch: equal to torch's own, and bugs that other projects shipped, by the public report each comes from (S, T, K)."""

import gc
import weakref

import pytest
import samples as s
import torch
import torch.nn.functional as F
from conftest import DEVICES

import kernelwright
import kernelwright.torch as kt

pytestmark = s.needs_room("cross_entropy")
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def example(dtype=torch.float32, device="cpu", leading=(6,), classes=37):
    logits = torch.randn(*leading, classes, device=device).to(dtype).requires_grad_()
    target = torch.randint(0, classes, leading, device=device)
    target.flatten()[::4] = -100
    return logits, target


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_equal_to_torch(dtype, reduction, device):
    for weighted in (False, True):
        for smoothing in (0.0, 0.1):
            logits, target = example(dtype, device)
            weight = torch.rand(37, device=device) if weighted else None
            ours = kt.CrossEntropyLoss(weight, label_smoothing=smoothing, reduction=reduction).to(device)(logits, target)
            exact = logits.detach().double().requires_grad_()
            exact_weight = None if weight is None else weight.double()
            truth = F.cross_entropy(exact, target, exact_weight, label_smoothing=smoothing, reduction=reduction)
            assert ours.dtype == (torch.float64 if dtype == torch.float64 else torch.float32) and ours.shape == truth.shape
            torch.testing.assert_close(ours.double(), truth, rtol=1e-6, atol=1e-6)
            up = torch.rand_like(truth)
            (got,), (want,) = torch.autograd.grad(ours, logits, up.to(ours.dtype)), torch.autograd.grad(truth, exact, up)
            assert got.dtype == dtype
            unit = torch.finfo(torch.float32 if dtype == torch.float64 else dtype).eps
            torch.testing.assert_close(got.double(), want, rtol=2 * unit, atol=max(1e-7, want.abs().max().item() * unit))


def test_options_of_language_models():
    """z-loss, softcap and a divisor against their formulas; the divisor's gradient needs no scaling."""
    logits, target = example(torch.float64, leading=(2, 5))
    capped = 5 * torch.tanh(logits / 5)
    rows = F.cross_entropy(capped.flatten(0, 1), target.flatten(), reduction="none")
    lse = torch.logsumexp(capped, -1).flatten() * (target.flatten() != -100)
    truth = (rows.sum() + 0.01 * lse.square().sum()) / 11
    for divisor in (11, 11.0, torch.tensor(11)):
        ours = kt.CrossEntropyLoss(softcap=5.0, z_loss=0.01)(logits, target, divisor)
        torch.testing.assert_close(ours, truth)
        torch.testing.assert_close(*(torch.autograd.grad(y, logits, retain_graph=y is truth)[0] for y in (ours, truth)))
    with pytest.raises(ValueError, match="divisor is for a reduced loss"):
        kt.CrossEntropyLoss(reduction="none")(logits, target, 11)
    with pytest.raises(ValueError, match="reduction must be 'mean', 'sum' or 'none', got 'max'"):
        kt.CrossEntropyLoss(reduction="max")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_s02_the_gradient_is_not_written_over_the_logits(dtype):
    """linkedin/Liger-Kernel#272, #343, #1251: what the op before it has saved stays as it was."""
    z = torch.randn(4, 8).to(dtype).requires_grad_()
    p = torch.softmax(z, -1)
    before, version = p.detach().clone(), p._version
    target = torch.tensor([0, 3, 7, 1])
    (got,) = torch.autograd.grad(kt.cross_entropy(p, target), z)
    assert torch.equal(p, before) and p._version == version
    exact = z.detach().double().requires_grad_()
    (want,) = torch.autograd.grad(F.cross_entropy(torch.softmax(exact, -1), target), exact)
    torch.testing.assert_close(got.double(), want, rtol=0, atol=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("device", DEVICES)
def test_s09_s11_k01_targets_that_do_not_count(device):
    """pytorch/pytorch#75181, #12670, tensorflow/tensorflow#8484: none counts; out of range is NaN in its row, in every mode."""
    logits, target = example(device=device)
    nothing = kt.cross_entropy(logits, torch.full_like(target, -100))
    (g,) = torch.autograd.grad(nothing, logits)
    assert nothing.isnan() and not g.any()
    target[1], target[2] = 37, -4
    for call in (kt.cross_entropy_unreduced, torch.compile(kt.cross_entropy_unreduced, backend="aot_eager", fullgraph=True)):
        rows = call(logits, target)
        assert rows.isnan().tolist() == [False, True, True, False, False, False]
        (g,) = torch.autograd.grad(rows[3:].sum(), logits)
        assert g[3:].isfinite().all() and g[5].any() and not g[4].any()


def test_s15_s16_shapes_and_values():
    """linkedin/Liger-Kernel#507, #508, #421: the loss is right with and without a gradient, and one per row where that is asked."""
    x = torch.tensor([[-0.1118, 0.0162, 0.0956], [-0.1134, 0.0088, 0.1046], [-0.1737, 0.1315, 0.0422], [-0.0921, 0.0728, 0.0194]])
    zeros = torch.zeros(4, dtype=torch.int64)
    for grad in (False, True):
        assert abs(kt.cross_entropy(x.requires_grad_(grad), zeros).item() - 1.2258567) < 2e-7
    logits, target = example(leading=(12,), classes=5)
    rows = kt.cross_entropy_unreduced(logits, target)
    assert rows.shape == (12,) and not rows[::4].any() and rows[1:4].all()


def test_nothing_but_the_loss_without_a_gradient():
    """Under no_grad no memory of the logits' size is taken, and the bits are the same."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            seen.extend(t.numel() for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, torch.Tensor))
            return out

    logits, target = example(classes=1000)
    seen: list = []
    with Sizes():
        wanted = kt.cross_entropy(logits, target)
    assert logits.numel() in seen
    seen.clear()
    with torch.no_grad(), Sizes():
        assert torch.equal(kt.cross_entropy(logits, target), wanted)
    assert seen and max(seen) == 1


def test_shifted_logits_are_read_as_they_lie():
    logits, target = example(torch.bfloat16, leading=(3, 9))
    copies = kernelwright.copies("cross_entropy")
    shifted = kt.cross_entropy(logits[:, :-1], target[:, 1:])
    assert kernelwright.copies("cross_entropy") == copies
    assert torch.equal(shifted, kt.cross_entropy(logits[:, :-1].contiguous(), target[:, 1:].contiguous()))


def test_graph_and_gradient_are_freed():
    logits, target = example()
    loss = kt.cross_entropy(logits, target)
    (g,) = torch.autograd.grad(loss, logits)
    gone = weakref.ref(g)
    del loss, g
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs 9 GB of a GPU")
def test_s03_more_than_two_to_the_31_logits():
    """pytorch/pytorch#85786, #108345: the last rows have the loss and the gradient that they have alone; far apart, too."""
    logits = torch.randn(42800, 50257, device="cuda", dtype=torch.bfloat16).requires_grad_()
    target = torch.randint(0, 50257, (42800,), device="cuda")
    rows = kt.cross_entropy_unreduced(logits, target)
    (g,) = torch.autograd.grad(rows, logits, torch.ones_like(rows))
    last = logits.detach()[-5:].clone().requires_grad_()
    alone = kt.cross_entropy_unreduced(last, target[-5:])
    assert torch.equal(alone, rows[-5:])
    assert torch.equal(torch.autograd.grad(alone, last, torch.ones_like(alone))[0], g[-5:])
    del g, rows
    wide = logits.detach().flatten()[: 32768 * 65536 + 128].as_strided((32769, 128), (65536, 1))
    near = kt.cross_entropy_unreduced(wide, target[:32769] % 128)
    assert torch.equal(near, kt.cross_entropy_unreduced(wide.contiguous(), target[:32769] % 128))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_t01_graph_replay_follows_the_inputs():
    """pytorch/pytorch#114048: captured with its count of targets, which no host reads."""
    logits, target = example(torch.bfloat16, "cuda", (64,), 40000)
    kt.cross_entropy(logits, target).backward()  # compiles
    logits.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = kt.cross_entropy(logits, target)
        loss.backward()
    other, other_target = example(torch.bfloat16, "cuda", (64,), 40000)
    other_target[:40] = -100
    with torch.no_grad():
        logits.copy_(other), target.copy_(other_target)
    graph.replay()
    wanted = kt.cross_entropy(other, other_target)
    assert torch.equal(loss, wanted) and torch.equal(logits.grad, torch.autograd.grad(wanted, other)[0])
