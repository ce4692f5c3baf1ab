"""SwiGLU and GeGLU as torch modules."""

import torch

from kernelwright.torch import is_served, only_forwards, served_dtypes, swiglu, swiglu_packed, transformers_swaps

__all__ = ["GatedMLP", "SwiGLU"]


class SwiGLU(torch.nn.Module):
    """act(gate) * up, elementwise; activation: "silu" or "gelu_tanh" (GeGLU). forward(gate, up); with one tensor, its halves along the last
    dimension are gate and up."""

    def __init__(self, activation: str = "silu"):
        super().__init__()
        self.activation = activation

    def forward(self, gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
        if up is not None:
            return swiglu(gate, up, activation=self.activation)
        if gate.shape[-1] % 2:
            raise ValueError(f"SwiGLU: the last dimension is {gate.shape[-1]}, but has to split into two halves")
        return swiglu_packed(gate, activation=self.activation)

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


class GatedMLP(torch.nn.Module):
    """down_proj(act(gate_proj(x)) * up_proj(x)), the feed-forward block of Llama-style models (of Gemma's with activation="gelu_tanh");
    x and the result: [..., hidden].

    Parameter names are those of the Hugging Face classes, so state dicts load unchanged."""

    def __init__(self, hidden: int, intermediate: int, bias: bool = False, device=None, dtype=None, activation: str = "silu"):
        super().__init__()
        self.gate_proj = torch.nn.Linear(hidden, intermediate, bias, device, dtype)
        self.up_proj = torch.nn.Linear(hidden, intermediate, bias, device, dtype)
        self.down_proj = torch.nn.Linear(intermediate, hidden, bias, device, dtype)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x), activation=self.activation))


# ---- what accelerate() may swap ----------------------------------------------------------------------------------------------------

_SERVED = served_dtypes("swiglu", "gate")
_SILU = ("SiLU", "SiLUActivation")


def _gated_forward(self, x):
    gate, up = self.gate_proj(x), self.up_proj(x)
    if not is_served(gate, _SERVED) or up.dtype != gate.dtype or not only_forwards(self.act_fn):
        return self.down_proj(self.act_fn(gate) * up)
    return self.down_proj(swiglu(gate, up))


def _activation(mlp: torch.nn.Module) -> str | None:
    name = type(mlp.act_fn).__name__
    return None if name in _SILU else f"its activation is {name}, not SiLU"


def _plain(mlp: torch.nn.Module) -> str:
    return "it has no gate: one matrix product, an activation, another product"


# Classes of one text: down_proj(act_fn(gate_proj(x)) * up_proj(x)).
_GATED = "llama.LlamaMLP mistral.MistralMLP qwen2.Qwen2MLP qwen3.Qwen3MLP"
SWAPS = [
    *transformers_swaps(_GATED, "swiglu", _gated_forward, _activation, ("7d2027d4464e",)),
    *transformers_swaps("phi.PhiMLP", None, refuse=_plain),
]
