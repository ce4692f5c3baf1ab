"""SwiGLU and GeGLU as torch modules."""

import torch
import torch.nn.functional as F

from kernelwright.torch import check_options, check_sizes, function_fingerprint, is_served, only_forwards, served_dtypes, swiglu
from kernelwright.torch import swiglu_packed, transformers_swaps

__all__ = ["GatedMLP", "SwiGLU"]


class SwiGLU(torch.nn.Module):
    """act(gate) * up, elementwise; activation: "silu" or "gelu_tanh" (GeGLU). forward(gate, up); with one tensor, its halves along the last
    dimension are gate and up."""

    def __init__(self, activation: str = "silu"):
        super().__init__()
        check_options("SwiGLU", "swiglu", activation=activation)
        self.activation = activation

    def forward(self, gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
        if up is not None:
            return swiglu(gate, up, activation=self.activation)
        return swiglu_packed(gate, activation=self.activation)

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


class GatedMLP(torch.nn.Module):
    """down_proj(act(gate_proj(x)) * up_proj(x)), the feed-forward block of Llama-style models (of Gemma's with activation="gelu_tanh");
    x and the result: [..., hidden].

    Parameter names are those of the Hugging Face classes, so state dicts load unchanged."""

    def __init__(self, hidden: int, intermediate: int, bias: bool = False, device=None, dtype=None, activation: str = "silu"):
        super().__init__()
        check_sizes("GatedMLP", hidden=hidden, intermediate=intermediate)
        check_options("GatedMLP", "swiglu", activation=activation)
        self.gate_proj = torch.nn.Linear(hidden, intermediate, bias, device, dtype)
        self.up_proj = torch.nn.Linear(hidden, intermediate, bias, device, dtype)
        self.down_proj = torch.nn.Linear(intermediate, hidden, bias, device, dtype)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x), activation=self.activation))


# ---- the same in torch's own ops: what KERNELWRIGHT_DISABLE falls back to ---------------------------------------------------------------


def _plain_gated(gate, up, activation="silu"):
    return (F.silu(gate) if activation == "silu" else F.gelu(gate, approximate="tanh")) * up


def _plain_packed(x, activation="silu"):
    return _plain_gated(*x.chunk(2, dim=-1), activation)


PLAIN = {"swiglu": _plain_gated, "swiglu_packed": _plain_packed}

# ---- what accelerate() may swap ----------------------------------------------------------------------------------------------------

_SERVED = served_dtypes("swiglu", "gate")
# Modules of the activations that the ops know; others, as the exact GELU, are left alone.
_ACTIVATIONS = {"SiLU": "silu", "SiLUActivation": "silu", "GELUTanh": "gelu_tanh"}


def _name(activation: torch.nn.Module) -> str | None:
    return _ACTIVATIONS.get(type(activation).__name__)


def _gated_forward(self, x):
    gate, up = self.gate_proj(x), self.up_proj(x)
    if not is_served(gate, _SERVED) or up.dtype != gate.dtype or not only_forwards(self.act_fn):
        return self.down_proj(self.act_fn(gate) * up)
    return self.down_proj(swiglu(gate, up, activation=_name(self.act_fn)))


def _packed_forward(self, hidden_states):
    both = self.gate_up_proj(hidden_states)
    if not is_served(both, _SERVED) or not only_forwards(self.activation_fn):
        gate, up = both.chunk(2, dim=-1)
        return self.down_proj(up * self.activation_fn(gate))
    return self.down_proj(swiglu_packed(both, activation=_name(self.activation_fn)))


def _another_activation(attribute: str):
    def refuse(mlp: torch.nn.Module) -> str | None:
        kind = type(getattr(mlp, attribute))
        if kind.__name__ not in _ACTIVATIONS:
            return f"its activation is {kind.__name__}, not SiLU or the tanh form of GELU"
        if function_fingerprint(kind.forward) is None or not kind.__module__.startswith(("torch.nn.", "transformers.")):
            return f"its activation, {kind.__name__}, has been changed by other hands"
        return None

    return refuse


def _no_gate(mlp: torch.nn.Module) -> str:
    return "it has no gate: one matrix product, an activation, another product"


# Classes of one text: down_proj(act_fn(gate_proj(x)) * up_proj(x)).
_GATED = "llama.LlamaMLP mistral.MistralMLP qwen2.Qwen2MLP qwen3.Qwen3MLP gemma.GemmaMLP gemma2.Gemma2MLP gemma3.Gemma3MLP"
SWAPS = [
    *transformers_swaps(_GATED, "swiglu", _gated_forward, _another_activation("act_fn"), ("7d2027d4464e",)),
    # gate and up are halves of one product.
    *transformers_swaps("phi3.Phi3MLP", "swiglu_packed", _packed_forward, _another_activation("activation_fn"), ("e8d404cbecb9",)),
    *transformers_swaps("phi.PhiMLP", None, refuse=_no_gate),
]
