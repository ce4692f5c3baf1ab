"""KERNELWRIGHT_DISABLE=op,...: the functions of kernelwright.torch run torch's own ops, and everything above them with them."""

import itertools
import logging

import pytest
import samples as s
import torch
from test_process import python
from truth import TRUTH, assert_close

import kernelwright
import kernelwright.torch as kt
from kernelwright.torch import _plain

OPS = [op for op in s.all_ops() if op.name in TRUTH]


def tupled(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.fixture
def disable():
    """What the variable does at import, for one test."""
    kept = {name: dict(getattr(kt, name).__globals__) for name in TRUTH}
    yield lambda names: _plain.disable(names, vars(kt))
    for name, scope in kept.items():
        getattr(kt, name).__globals__.update(scope)
    _plain.disabled.clear()


def calls():
    return {name: kernelwright.calls(name) for name in kernelwright.ops()}


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_values_and_gradients_agree_with_ours(op, way, disable):
    """Within the roundings of both: each is at most as far from the truth as test_gradients.py allows. torch.ops stays ours."""
    disable(op.name)
    call = s.function(op) if way == "eager" else torch.compile(s.function(op), backend="aot_eager", fullgraph=True)
    optional = [t.name for t in op.inputs if t.optional]
    for types in s.dtype_choices(op) if way == "eager" else s.dtype_choices(op)[-1:]:
        for absent, attributes in itertools.product(([], optional) if optional else ([],), s.attribute_choices(op)):
            torch._dynamo.reset()
            # Small values: with a softcap of 0.25, larger ones saturate tanh, and 1 - t * t is then 50 (torch) to 70 (ours) roundings off.
            tensors = s.sample(op, types, (7,), 64, absent)[: len(op.inputs)]
            tensors = [t / 8 if t is not None and t.is_floating_point() else t for t in tensors]
            inputs = [t.requires_grad_() for t in s.wanted(op, tensors)]
            arguments = [*tensors, *attributes]
            before = calls()
            plain = tupled(call(*arguments))
            upstream = [torch.randn_like(y) for y in plain]
            of_plain = torch.autograd.grad(plain, inputs, upstream)
            assert calls() == before, "one of our kernels ran"
            ours = tupled(s.public_op(op)(*arguments))
            assert calls() != before
            what = f"{op.name} {types} {attributes} without {absent}"
            for a, b in zip(plain, ours, strict=True):
                assert a.dtype == b.dtype
                assert_close(a.detach(), b.detach().double(), what, roundings=4.0 * len(ours) + 8.0 * (b.dtype == torch.float64))
            for x, a, b in zip(inputs, of_plain, torch.autograd.grad(ours, inputs, upstream), strict=True):
                assert a.dtype == b.dtype == x.dtype
                through = max([t.dtype for t in (*inputs, *ours)], key=lambda t: torch.finfo(t).eps)  # what is rounded on the way
                assert_close(a, b.double(), f"gradient of {what}", roundings=16.0, dtype=through)


@s.needs_room("cross_entropy")
def test_a_target_that_does_not_count_has_no_weight(disable):
    """None counts: NaN as in torch, and as ours."""
    logits, target, weight = torch.randn(4, 9), torch.tensor([-100, 3, -100, 8]), torch.rand(9)
    options = dict(weight=weight, label_smoothing=0.1, z_loss=0.01, softcap=5.0)
    ours = [kt.cross_entropy(logits, target, **options), kt.cross_entropy_unreduced(logits, target, **options)]
    disable("cross_entropy,cross_entropy_unreduced")
    torch.testing.assert_close([kt.cross_entropy(logits, target, **options), kt.cross_entropy_unreduced(logits, target, **options)], ours)
    assert kt.cross_entropy(logits, torch.full_like(target, -100)).isnan()


@s.needs_room("rms_norm")
def test_both_orders_of_rounding(disable):
    """Half a rounding apart, so the bits tell."""
    disable("rms_norm,add_rms_norm")
    x, w = torch.randn(8, 512).bfloat16(), torch.rand(512).bfloat16() * 7
    twice = kt.rms_norm(x, w, rounding="before_weight")
    assert torch.equal(twice, w * kt.rms_norm(x)) and not torch.equal(twice, kt.rms_norm(x, w))
    assert torch.equal(kt.add_rms_norm(x, x, w, rounding="before_weight")[0], w * kt.rms_norm(x + x))


def test_only_what_is_named(disable):
    op, *others = OPS
    disable(f" {op.name} ,")
    before = calls()
    for other in OPS:
        s.function(other)(*s.sample(other, s.dtype_choices(other)[0]))
    assert {name for name, n in calls().items() if n != before[name]} == {other.name for other in others}


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("nonsense", "KERNELWRIGHT_DISABLE names 'nonsense', but there is no such op; there are: "),
        ("test_blend", "KERNELWRIGHT_DISABLE names 'test_blend', but its room does not say what it is in torch's own ops: it stays on"),
        *((op.gradient.op, f"KERNELWRIGHT_DISABLE names '{op.gradient.op}', but there is no such op") for op in OPS[:1]),
    ],
)
def test_names_that_cannot_be(names, sentence, disable, caplog):
    with caplog.at_level(logging.WARNING, "kernelwright"):
        disable(names)
    assert [r.getMessage()[: len(sentence)] for r in caplog.records] == [sentence] and not _plain.disabled
    before = kernelwright.calls("test_blend")
    kt.test_blend(torch.ones(2, 3))
    assert kernelwright.calls("test_blend") == before + 1


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("family", ["llama", "gemma2", "phi3"])
def test_accelerate(family, compiled, disable):
    """Every op named: the stock model, bit for bit. One of them: its classes are left with a reason, the rest is swapped, and logits, loss
    and gradients stay within the roundings of f32."""
    pytest.importorskip("transformers")
    from families import build, results

    def run(model):
        torch._dynamo.reset()
        model = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
        return {name.removeprefix("_orig_mod."): value for name, value in results(model).items()}

    want = run(build(family))
    model = build(family)
    served = kt.accelerate(model).counts()
    assert len(served) == 4
    disable("rms_norm")
    one = build(family)
    report = kt.accelerate(one)
    assert report.counts().keys() == served.keys() - {"rms_norm", "add_rms_norm"}  # the latter needs the norm that reads the sum
    assert "KERNELWRIGHT_DISABLE names rms_norm" in {why for _, _, why in report.left}
    before = calls()
    outcomes = {"one": run(one), "swapped before": run(model)}
    assert {name for name, n in calls().items() if n != before[name]} >= report.counts().keys()
    disable(",".join(TRUTH))
    every = build(family)
    assert not kt.accelerate(every).swapped
    before = calls()
    for name, value in run(every).items():
        assert torch.equal(value, want[name]), name
    outcomes["all, swapped before"] = run(model)
    assert calls() == before
    for which, got in outcomes.items():
        for name, value in got.items():
            torch.testing.assert_close(value, want[name], rtol=1e-4, atol=1e-5, msg=lambda m: f"{which}, {name}: {m}")


def test_the_variable():
    """Of a whole process: read at import, for functions, modules and compiled functions; what is wrong in it is said on stderr."""
    done = python(
        """
import torch, kernelwright, kernelwright.torch as kt
x = torch.randn(3, 8, requires_grad=True)
for norm in (kt.RMSNorm(8), torch.compile(kt.RMSNorm(8), backend="aot_eager", fullgraph=True)):
    norm(x).sum().backward()
kt.rms_norm(x).sum().backward()
assert kernelwright.calls("rms_norm") == kernelwright.calls("rms_norm_backward") == 0
kt.swiglu(x, x)
assert kernelwright.calls("swiglu") == 1
""",
        KERNELWRIGHT_DISABLE="rms_norm,nonsense",
    )
    assert done.returncode == 0, done.stderr
    assert "KERNELWRIGHT_DISABLE names 'nonsense', but there is no such op; there are: " in done.stderr, done.stderr
