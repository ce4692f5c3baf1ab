"""Cross-entropy as a torch module."""

import functools
import inspect
import numbers

import torch

from kernelwright import ArgumentError, ArgumentTypeError
from kernelwright.torch import check_options, cross_entropy, cross_entropy_unreduced, function_fingerprint, is_served, served_dtypes
from kernelwright.torch import transformers_swaps

__all__ = ["CrossEntropyLoss"]


def _scalar(value, dtype: torch.dtype, device: torch.device) -> torch.Tensor | None:
    """A number or a tensor of one, as a tensor of rank 0 on the device; None stays."""
    if value is None or isinstance(value, torch.Tensor):
        if value is not None and value.numel() != 1:
            raise ArgumentError(f"cross_entropy: divisor has shape {list(value.shape)}, but must be of one element")
        return value if value is None else value.to(device, dtype).reshape(())
    if not isinstance(value, numbers.Real):
        raise ArgumentTypeError(f"cross_entropy: divisor must be a number, a torch.Tensor or None, got {type(value).__name__}")
    return torch.full((), value, dtype=dtype, device=device)  # filled there: a copy from the host would wait for it


class CrossEntropyLoss(torch.nn.Module):
    """The loss of torch.nn.CrossEntropyLoss for class indices, with the classes last: logits [..., V], targets [...].

    weight: [V] or None, kept as a buffer. reduction: "mean", "sum" or "none". z_loss adds z_loss * logsumexp(logits)^2 to a row's loss,
    softcap replaces logits by softcap * tanh(logits / softcap). The loss is f32 (f64 for f64 logits), whatever the logits are. The call
    takes `divisor`, a number or a tensor of one: the sum over rows is divided by it, whatever the reduction, and its gradient with it, so
    that backward has nothing left to scale (num_items_in_batch of Hugging Face's trainer)."""

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
        softcap: float = 0.0,
    ):
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ArgumentError(f"CrossEntropyLoss: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
        if weight is not None and not isinstance(weight, torch.Tensor):
            raise ArgumentTypeError(f"CrossEntropyLoss: weight must be a torch.Tensor or None, got {type(weight).__name__}")
        options = dict(ignore_index=ignore_index, label_smoothing=label_smoothing, z_loss=z_loss, softcap=softcap)
        check_options("CrossEntropyLoss", "cross_entropy", **options)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing
        self.z_loss = z_loss
        self.softcap = softcap

    def forward(self, logits: torch.Tensor, target: torch.Tensor, divisor=None) -> torch.Tensor:
        wide = torch.float64 if getattr(logits, "dtype", None) == torch.float64 else torch.float32
        weight = None if self.weight is None else self.weight.to(wide)
        options = (self.ignore_index, self.label_smoothing, self.z_loss, self.softcap)
        if self.reduction == "none":
            if divisor is not None:
                raise ArgumentError("CrossEntropyLoss: divisor is for a reduced loss, but reduction is 'none'")
            return cross_entropy_unreduced(logits, target, weight, *options)
        return cross_entropy(logits, target, weight, _scalar(divisor, wide, getattr(logits, "device", None)), *options, self.reduction)

    def extra_repr(self) -> str:
        words = [f"ignore_index={self.ignore_index}", f"reduction={self.reduction!r}"]
        words += [f"{k}={v}" for k in ("label_smoothing", "z_loss", "softcap") if (v := getattr(self, k))]
        return ", ".join(words)


# ---- the same in torch's own ops: what KERNELWRIGHT_DISABLE falls back to -----------------------------------------------------------
# A target outside of [0, V) is what it is in torch: an exception on the CPU, an assertion on a GPU.


def _plain_rows(logits, target, weight, ignore_index, label_smoothing, z_loss, softcap):
    """Each row's loss, and its weight: 0 for one that does not count."""
    wide = logits.reshape(target.numel(), logits.shape[-1]).to(torch.promote_types(logits.dtype, torch.float32))
    if softcap > 0:
        wide = softcap * torch.tanh(wide / softcap)
    target = target.flatten().long()
    counts = target != ignore_index
    own = counts.to(wide.dtype) if weight is None else torch.where(counts, weight[target.where(counts, 0)], 0.0)
    loss = torch.nn.functional.cross_entropy(
        wide, target, weight, ignore_index=ignore_index, reduction="none", label_smoothing=label_smoothing
    )
    return loss + z_loss * own * wide.logsumexp(-1).square() if z_loss > 0 else loss, own


def _plain_unreduced(logits, target, weight=None, ignore_index=-100, label_smoothing=0.0, z_loss=0.0, softcap=0.0):
    return _plain_rows(logits, target, weight, ignore_index, label_smoothing, z_loss, softcap)[0].reshape(target.shape)


def _plain(
    logits,
    target,
    weight=None,
    divisor=None,
    ignore_index=-100,
    label_smoothing=0.0,
    z_loss=0.0,
    softcap=0.0,
    reduction="mean",
):
    loss, own = _plain_rows(logits, target, weight, ignore_index, label_smoothing, z_loss, softcap)
    if divisor is None:
        divisor = own.sum() if reduction == "mean" else 1.0
    return loss.sum() / divisor


PLAIN = {"cross_entropy": _plain, "cross_entropy_unreduced": _plain_unreduced}

# ---- what accelerate() may swap: the loss that causal language models of transformers look up -----------------------------------------
# The stock loss makes an f32 copy of the logits, and of their gradient; the op reads and writes them as they are.

# f16: the gradient would be rounded before a loss scale reaches it. f64: the stock loss is f32 there.
_SERVED = served_dtypes("cross_entropy", "logits") - {torch.float16, torch.float64}


def _causal_loss(stock, logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, shift_labels=None, **more):
    """Cross-entropy of each token's logits with the next token: the mean over rows, or their sum over num_items_in_batch."""
    divisor = num_items_in_batch
    if not is_served(logits, _SERVED) or logits.shape[-1] != vocab_size or (isinstance(divisor, torch.Tensor) and divisor.ndim):
        return stock(logits, labels, vocab_size, divisor, ignore_index, shift_labels, **more)
    if shift_labels is None:
        shift_labels = torch.nn.functional.pad(labels[..., 1:], (0, 1), value=ignore_index)
    target = shift_labels.reshape(-1).to(logits.device)
    divisor = _scalar(divisor, torch.float32, logits.device)
    return cross_entropy(logits.reshape(-1, vocab_size), target, divisor=divisor, ignore_index=ignore_index)


def _property(model: torch.nn.Module) -> property:
    return inspect.getattr_static(type(model), "loss_function", None)


def _another_loss(model: torch.nn.Module) -> str | None:
    where = _property(model)
    if not isinstance(where, property) or function_fingerprint(where.fget) != "08f437bebe52":
        return "how it looks up its loss is not what we know"
    loss = model.loss_function
    if getattr(loss, "__name__", None) != "ForCausalLMLoss":
        return f"its loss is {getattr(loss, '__name__', repr(loss))}, not ForCausalLMLoss"
    inner = getattr(loss, "__globals__", {}).get("fixed_cross_entropy")  # what it calls
    if (function_fingerprint(loss), function_fingerprint(inner)) != ("0637640fcbd0", "7c2fdd59ca33"):
        return f"its loss is not one that we know (fingerprints {function_fingerprint(loss)}, {function_fingerprint(inner)})"
    _known.add(loss)
    return None


_known: set = set()  # the stock losses that have been found to be what _causal_loss is


def _loss_function(self):
    loss = self._stock_loss_function
    return functools.partial(_causal_loss, loss) if loss in _known else loss  # set anew by the user since


_MODELS = """llama.LlamaForCausalLM mistral.MistralForCausalLM qwen2.Qwen2ForCausalLM qwen3.Qwen3ForCausalLM gemma.GemmaForCausalLM
             gemma2.Gemma2ForCausalLM gemma3.Gemma3ForCausalLM phi.PhiForCausalLM phi3.Phi3ForCausalLM"""

_members = {"loss_function": property(_loss_function, lambda self, loss: setattr(self, "_stock_loss_function", loss))}
SWAPS = transformers_swaps(_MODELS, "cross_entropy", refuse=_another_loss, members=_members)
