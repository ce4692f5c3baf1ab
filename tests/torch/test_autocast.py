"""torch.autocast: ops run in the dtypes that they are given; what does not fit together is promoted; on every way, with the gradients."""

import pytest
import samples as s
import torch
from conftest import DEVICES

import kernelwright.torch as kt
from kernelwright._library import library
from kernelwright.torch._autocast import promoted
from kernelwright.torch._fake import DTYPES

FORWARD = [op for op in s.all_ops() if op.gradient]
WAYS = {
    "function": s.function,
    "dispatcher": s.public_op,
    "compiled": lambda op: torch.compile(s.function(op), backend="aot_eager", fullgraph=True),
}


def device(op):
    return s.devices_of(op)[0]


def first(y):
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", FORWARD, ids=lambda op: op.name)
class TestAutocast:
    def test_t05_what_fits_together_stays(self, op, way):
        """pytorch/pytorch#137033: a dtype error, or always cast up. For every assignment of types that the contract knows, bf16 beside
        an f32 weight among them, autocast of any kind changes nothing: not the dtype, not a bit."""
        for types in s.dtype_choices(op):
            torch._dynamo.reset()
            call = WAYS[way](op)
            arguments = s.sample(op, types)
            want = first(s.function(op)(*arguments))
            for dtype in (torch.bfloat16, torch.float16):
                with torch.autocast(device(op), dtype):
                    got = first(call(*arguments))
                    with torch.autocast(device(op), enabled=False):
                        inside = first(call(*arguments))
                assert got.dtype == inside.dtype == want.dtype and torch.equal(got, want) and torch.equal(inside, want)

    def test_what_does_not_fit_is_promoted(self, op, way):
        """One input in another floating type at a time: refused outside; inside, the bits of the call with the widest type throughout."""
        options = op.types["T"]
        for i, t in enumerate(op.inputs):
            for dtype in [DTYPES[o] for o in options]:
                arguments = s.sample(op, s.dtype_choices(op)[0])
                if not arguments[i].is_floating_point() or arguments[i].dtype == dtype:
                    continue
                arguments[i] = arguments[i].to(dtype)
                try:
                    s.function(op)(*arguments)
                    continue  # the contract knows the pair
                except RuntimeError as e:
                    assert "T" in op.types and str(e).startswith(op.name)
                fit = promoted(op, arguments)
                changed = [f is not a for f, a in zip(fit, arguments)]
                for f, a, u in zip(fit, arguments, op.inputs):  # nothing loses digits
                    if isinstance(u.element, dict) and "variable" in u.element:
                        assert torch.promote_types(f.dtype, a.dtype) == f.dtype
                leaves = [a.detach().requires_grad_(t.name in s.differentiable(op)) if isinstance(a, torch.Tensor) else a
                          for a, t in zip(arguments, [*op.inputs, *op.attributes])]
                torch._dynamo.reset()
                with torch.autocast(device(op), torch.bfloat16):
                    got = first(WAYS[way](op)(*leaves))
                want = first(s.function(op)(*fit))
                assert any(changed) and got.dtype == want.dtype and torch.equal(got.detach(), want)
                gradients = torch.autograd.grad(got.float().sum(), s.wanted(op, leaves))
                assert [g.dtype for g in gradients] == [a.dtype for a in s.wanted(op, leaves)]
                with pytest.raises(RuntimeError, match=op.name):  # and outside it is refused as before
                    s.function(op)(*arguments)

    def test_other_errors_stay(self, op, way):
        if way == "compiled":
            pytest.skip("the compiler wraps them")
        arguments = s.sample(op, s.dtype_choices(op)[-1])
        arguments[0] = arguments[0][..., :0, :0].reshape(-1)[:0].to(torch.int32)
        with torch.autocast(device(op), torch.bfloat16), pytest.raises(ValueError, match=f"^{op.name}: "):
            WAYS[way](op)(*arguments)


@pytest.mark.parametrize("where", DEVICES)
def test_t06_the_backward_has_the_forwards_dtype(where):
    """pytorch/pytorch#88029: a backward forced to f16 inside a bf16 region overflows."""
    op = next(op for op in FORWARD if "bf16" in op.types["T"] and [t.name for t in op.inputs][0] == "x")
    arguments = s.sample(op, {n: "bf16" for n in op.types}, device=where)
    arguments[0] = (arguments[0] * 1e6).requires_grad_()
    with torch.autocast(where, torch.bfloat16):
        y = first(s.function(op)(*arguments))
        (g,) = torch.autograd.grad(y.float().sum() * 1e6, arguments[0])
    assert g.dtype == torch.bfloat16 and g.isfinite().all()


def test_the_fast_path_serves_autocast():
    """No dispatcher where nothing has to be promoted."""
    from test_fast_path import Watch

    op = library.op("test_blend")
    arguments = s.sample(op, {"T": "f32"}, grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        watch = Watch(lambda: kt.test_blend(*arguments[:2])[0].backward(torch.ones_like(arguments[0])))
    assert watch.fast == ["test_blend", "test_blend_backward"] and not watch.dispatched


@s.needs_room("swiglu")
def test_models_in_autocast():
    """A bf16 projection beside f32 parameters and an f32 residual, as autocast makes them."""
    mlp, x = kt.GatedMLP(16, 24), torch.randn(5, 16)
    with torch.autocast("cpu", torch.bfloat16):
        assert mlp(x).dtype == torch.bfloat16
    mlp(x).sum().backward()
