"""Module classes that rooms bring: found by the package, equal to torch's own, good for training, saving and compiling."""

import importlib

import pytest
import samples as s
import torch
import torch.nn.functional as F
from conftest import DEVICES

import kernelwright.torch as kt


class TorchMLP(torch.nn.Module):
    def __init__(self, h, i):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (torch.nn.Linear(a, b, bias=False) for a, b in ((h, i), (h, i), (i, h)))

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def hugging_face(name):
    folder, family = name.split(".")
    return getattr(importlib.import_module(f"transformers.models.{folder}.modeling_{folder}"), f"{family}RMSNorm")


PAIRS = {
    "RMSNorm": (lambda: kt.RMSNorm(32), lambda: torch.nn.RMSNorm(32, eps=1e-6)),
    "RMSNorm without weight": (lambda: kt.RMSNorm(32, elementwise_affine=False), lambda: torch.nn.RMSNorm(32, 1e-6, False)),
    "RMSNorm with an offset": (lambda: kt.RMSNorm(32, offset=1.0), lambda: hugging_face("gemma.Gemma")(32)),
    "RMSNorm rounded before": (lambda: kt.RMSNorm(32, rounding="before_weight"), lambda: hugging_face("llama.Llama")(32)),
    "GatedMLP": (lambda: kt.GatedMLP(32, 48), lambda: TorchMLP(32, 48)),
}
PAIRS = {k: v for k, v in PAIRS.items() if hasattr(kt, k.split()[0])}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PAIRS)
def test_equal_to_torch(name, device):
    ours, theirs = (make().to(device) for make in PAIRS[name])
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(4, 6, 32, device=device, requires_grad=True)
    a, b = ours(x), theirs(x)
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    ga = torch.autograd.grad(a.square().sum(), [x, *ours.parameters()])
    gb = torch.autograd.grad(b.square().sum(), [x, *theirs.parameters()])
    for p, q in zip(ga, gb, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-4)
    compiled = torch.compile(ours, fullgraph=True, dynamic=True)
    torch.testing.assert_close(compiled(x), a, rtol=1e-5, atol=1e-5)


@s.needs_room("rms_norm")
@pytest.mark.parametrize("device", DEVICES)
def test_norm_of_a_sum(device):
    norm = kt.AddRMSNorm(32, offset=1.0, rounding="before_weight", device=device, dtype=torch.bfloat16)
    assert torch.equal(norm.weight, torch.zeros_like(norm.weight)) and "offset=1.0, rounding=before_weight" in repr(norm)
    x, residual = (torch.randn(2, 5, 32, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    y, total = norm(x, residual)
    assert torch.equal(total, x + residual) and torch.equal(y, kt.RMSNorm.forward(norm, total))
    dx, dresidual = torch.autograd.grad(y.sum() + total.sum(), [x, residual])
    assert torch.equal(dx, dresidual) and dx.data_ptr() != x.data_ptr()


@s.needs_room("swiglu")
def test_halves():
    x = torch.randn(3, 64)
    assert torch.equal(kt.SwiGLU()(x), kt.SwiGLU()(x[:, :32].contiguous(), x[:, 32:].contiguous()))
    with pytest.raises(ValueError, match=r"swiglu_packed: x has shape \[3, 5\], but its dimension 1 must be 2\*N"):
        kt.SwiGLU()(torch.randn(3, 5))
