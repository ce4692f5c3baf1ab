"""RMSNorm as a torch module."""

import torch

from kernelwright.torch import Swap, rms_norm

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
        return rms_norm(x, self.weight, eps=self.eps)

    def extra_repr(self) -> str:
        return f"{self.length}, eps={self.eps}, elementwise_affine={self.weight is not None}"


_SERVED = (torch.float32, torch.bfloat16)


def _llama_forward(self, hidden_states):
    if hidden_states.dtype not in _SERVED or hidden_states.dtype != self.weight.dtype:  # the stock result has the wider dtype then
        return self._stock_forward(hidden_states)
    return rms_norm(hidden_states, self.weight, eps=self.variance_epsilon)


def _torch_forward(self, x):
    if x.dtype not in _SERVED or (self.weight is not None and x.dtype != self.weight.dtype):
        return self._stock_forward(x)
    return rms_norm(x, self.weight, eps=torch.finfo(x.dtype).eps if self.eps is None else self.eps)


def _many_dimensions(norm: torch.nn.Module) -> str | None:
    return None if len(norm.normalized_shape) == 1 else f"it normalises {len(norm.normalized_shape)} dimensions, not the last one alone"


# The Hugging Face class rounds x * rstd to x's dtype before it multiplies by the weight; the op rounds once, after. Equal in f32.
SWAPS = [
    Swap("transformers.models.llama.modeling_llama.LlamaRMSNorm", "rms_norm", _llama_forward),
    Swap("torch.nn.modules.normalization.RMSNorm", "rms_norm", _torch_forward, _many_dimensions),
]
