"""RMSNorm as a torch module."""

import torch

from kernelwright.torch import rms_norm

__all__ = ["RMSNorm"]


class RMSNorm(torch.nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * weight over the last dimension; sums in f32, rounded once to x's dtype.

    x: [..., length], f32 or bf16. weight: [length], a parameter (ones) in x's dtype or f32; None with elementwise_affine=False.
    Parameter names are those of torch.nn.RMSNorm and of the Hugging Face classes, so state dicts load unchanged."""

    def __init__(self, length: int, eps: float = 1e-6, elementwise_affine: bool = True, device=None, dtype=None):
        super().__init__()
        self.length = length
        self.eps = eps
        if elementwise_affine:
            self.weight = torch.nn.Parameter(torch.ones(length, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)

    def reset_parameters(self) -> None:
        if self.weight is not None:
            torch.nn.init.ones_(self.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.length}, eps={self.eps}, elementwise_affine={self.weight is not None}"
