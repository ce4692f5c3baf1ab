"""RMSNorm as a torch module, with and without a residual that is added first."""

import torch

from kernelwright.torch import Swap, add_rms_norm, check_options, check_sizes, is_served, only_forwards, rms_norm, served_dtypes
from kernelwright.torch import transformers_swaps

__all__ = ["AddRMSNorm", "RMSNorm"]


class RMSNorm(torch.nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * (weight + offset) over the last dimension; computed in f32 (f64 for f64).

    x: [..., length], f16, bf16, f32 or f64. weight: [length], a parameter in x's dtype or f32, so initialised that weight + offset is 1;
    None, which counts as ones, with elementwise_affine=False. rounding: "once", to x's dtype at the end (Gemma, with offset=1;
    torch.nn.RMSNorm), or "before_weight", of the normalised x too (Llama, Mistral, Qwen, Phi-3). Parameter names are those of
    torch.nn.RMSNorm and of the Hugging Face classes, so state dicts load unchanged."""

    def __init__(
        self,
        length: int,
        eps: float = 1e-6,
        elementwise_affine: bool = True,
        device=None,
        dtype=None,
        *,
        offset: float = 0.0,
        rounding: str = "once",
    ):
        super().__init__()
        name = type(self).__name__
        check_sizes(name, length=length)
        check_options(name, "rms_norm", eps=eps, offset=offset, rounding=rounding)
        self.length, self.eps, self.offset, self.rounding = length, eps, offset, rounding
        if elementwise_affine:
            self.weight = torch.nn.Parameter(torch.full((length,), 1.0 - offset, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)

    def reset_parameters(self) -> None:
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1.0 - self.offset)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.weight, self.eps, self.offset, self.rounding)

    def extra_repr(self) -> str:
        text = f"{self.length}, eps={self.eps}, elementwise_affine={self.weight is not None}"
        rounding = f", rounding={self.rounding}" if self.rounding != "once" else ""
        return text + (f", offset={self.offset}" if self.offset else "") + rounding


class AddRMSNorm(RMSNorm):
    """(y, total): total = x + residual, rounded to their dtype, and y = RMSNorm of total. x, residual: [..., length], of one dtype."""

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return add_rms_norm(x, residual, self.weight, self.eps, self.offset, self.rounding)


# ---- the same in torch's own ops: what KERNELWRIGHT_DISABLE falls back to ---------------------------------------------------------------


def _plain(x, weight=None, eps=1e-6, offset=0.0, rounding="once"):
    wide = torch.promote_types(x.dtype, torch.float32)
    y = torch.nn.functional.rms_norm(x.to(wide), x.shape[-1:], eps=eps)
    if rounding == "before_weight":
        y = y.to(x.dtype).to(wide)
    return (y * ((1.0 if weight is None else weight.to(wide)) + offset)).to(x.dtype)


def _plain_add(x, residual, weight=None, eps=1e-6, offset=0.0, rounding="once"):
    total = x + residual
    return _plain(total, weight, eps, offset, rounding), total


PLAIN = {"rms_norm": _plain, "add_rms_norm": _plain_add}

# ---- what accelerate() may swap: norms ------------------------------------------------------------------------------------------------
# Each kind of norm is forward(x) and add(x, residual) -> (norm of the sum, the sum); add is for the decoder layers below.

_SERVED = served_dtypes("rms_norm", "x")


def _stock_add(norm, x, residual):
    total = residual + x
    return norm(total), total


def _llama_forward(self, hidden_states):
    if not is_served(hidden_states, _SERVED) or hidden_states.dtype != self.weight.dtype:  # the stock result has the wider dtype then
        return self._stock_forward(hidden_states)
    return rms_norm(hidden_states, self.weight, self.variance_epsilon, rounding="before_weight")


def _llama_add(self, x, residual):
    if not is_served(x, _SERVED) or not x.dtype == residual.dtype == self.weight.dtype or x.shape != residual.shape:
        return _stock_add(self, x, residual)
    return add_rms_norm(x, residual, self.weight, self.variance_epsilon, rounding="before_weight")


def _gemma_serves(self, x):  # the stock result has x's dtype whatever the weight's
    return is_served(x, _SERVED) and self.weight.dtype in (x.dtype, torch.float32)


def _gemma_forward(self, x):
    return rms_norm(x, self.weight, self.eps, offset=1.0) if _gemma_serves(self, x) else self._stock_forward(x)


def _gemma_add(self, x, residual):
    if not _gemma_serves(self, x) or x.dtype != residual.dtype or x.shape != residual.shape:
        return _stock_add(self, x, residual)
    return add_rms_norm(x, residual, self.weight, self.eps, offset=1.0)


def _torch_forward(self, x):
    if not is_served(x, _SERVED) or (self.weight is not None and x.dtype != self.weight.dtype):
        return self._stock_forward(x)
    return rms_norm(x, self.weight, torch.finfo(x.dtype).eps if self.eps is None else self.eps)


def _many_dimensions(norm: torch.nn.Module) -> str | None:
    return None if len(norm.normalized_shape) == 1 else f"it normalises {len(norm.normalized_shape)} dimensions, not the last one alone"


def _subtracts(norm: torch.nn.Module) -> str:
    return "it subtracts the mean, which no op of ours does"


# ---- decoder layers: the sum after attention is made together with the norm that reads it -------------------------------------------
# The sum after the MLP stays: its norm is in the next layer, and what crosses from layer to layer belongs to hooks and checkpoints.


def _add_norm(norm, x, residual):
    add = getattr(norm, "_kernelwright_add", None)
    return _stock_add(norm, x, residual) if add is None or not only_forwards(norm) else add(x, residual)


def _llama_layer(
    self, hidden_states, attention_mask=None, position_ids=None, cache=None, use_cache=False, position_embeddings=None, **more
):
    if "past_key_values" in more:  # an older name, which the stock code still translates
        return self._stock_forward(hidden_states, attention_mask, position_ids, cache, use_cache, position_embeddings, **more)
    attended, _ = self.self_attn(
        hidden_states=self.input_layernorm(hidden_states), attention_mask=attention_mask, position_ids=position_ids, cache=cache,
        use_cache=use_cache, position_embeddings=position_embeddings, **more,
    )  # fmt: skip
    dropout = getattr(self, "resid_attn_dropout", None)
    if dropout is not None:
        attended = dropout(attended)
    normed, total = _add_norm(self.post_attention_layernorm, attended, hidden_states)
    out = self.mlp(normed)
    return total + (out if dropout is None else self.resid_mlp_dropout(out))


def _gemma_layer(self, hidden_states, position_embeddings=None, attention_mask=None, position_ids=None, cache=None, **more):
    if "past_key_values" in more:
        return self._stock_forward(hidden_states, position_embeddings, attention_mask, position_ids, cache, **more)
    attended, _ = self.self_attn(
        hidden_states=self.input_layernorm(hidden_states), position_embeddings=position_embeddings, attention_mask=attention_mask,
        position_ids=position_ids, cache=cache, **more,
    )  # fmt: skip
    normed, total = _add_norm(self.pre_feedforward_layernorm, self.post_attention_layernorm(attended), hidden_states)
    return total + self.post_feedforward_layernorm(self.mlp(normed))


def _norm_is_ours(attribute: str):
    def refuse(layer: torch.nn.Module) -> str | None:
        return None if hasattr(getattr(layer, attribute), "_kernelwright_add") else f"its {attribute} is left alone"

    return refuse


def _no_norm_of_the_sum(layer: torch.nn.Module) -> str:
    return "no RMSNorm reads the sum after attention"


# ---- the classes; those of one line have one text ------------------------------------------------------------------------------------

# Llama's kind of norm rounds x * rstd to x's dtype before it multiplies by the weight; Gemma's multiplies by 1 + weight and rounds once.
_LLAMA_NORMS = "llama.LlamaRMSNorm mistral.MistralRMSNorm phi3.Phi3RMSNorm qwen2.Qwen2RMSNorm qwen3.Qwen3RMSNorm"
_GEMMA_NORMS = "gemma.GemmaRMSNorm gemma2.Gemma2RMSNorm gemma3.Gemma3RMSNorm"
_LLAMA_LAYERS = """llama.LlamaDecoderLayer mistral.MistralDecoderLayer qwen2.Qwen2DecoderLayer qwen3.Qwen3DecoderLayer
                   gemma.GemmaDecoderLayer"""
_PHI_LAYERS = "phi3.Phi3DecoderLayer"
_GEMMA_LAYERS = "gemma2.Gemma2DecoderLayer gemma3.Gemma3DecoderLayer"

_llama_refuse, _gemma_refuse = _norm_is_ours("post_attention_layernorm"), _norm_is_ours("pre_feedforward_layernorm")
_named = transformers_swaps
SWAPS = [
    *_named(_LLAMA_NORMS, "rms_norm", _llama_forward, fingerprints=("9635bcd843f3",), members={"_kernelwright_add": _llama_add}),
    *_named(_GEMMA_NORMS, "rms_norm", _gemma_forward, fingerprints=("d2c09eabcc5e",), members={"_kernelwright_add": _gemma_add}),
    Swap("torch.nn.modules.normalization.RMSNorm", "rms_norm", _torch_forward, _many_dimensions),
    Swap("torch.nn.modules.normalization.LayerNorm", None, refuse=_subtracts),
    *_named(_LLAMA_LAYERS, "add_rms_norm", _llama_layer, _llama_refuse, ("223a3cfccaa8",)),
    *_named(_PHI_LAYERS, "add_rms_norm", _llama_layer, _llama_refuse, ("ecfa3793899b",)),
    *_named(_GEMMA_LAYERS, "add_rms_norm", _gemma_layer, _gemma_refuse, ("e663eabb52c0",)),
    *_named("phi.PhiDecoderLayer", None, refuse=_no_norm_of_the_sum),
]
