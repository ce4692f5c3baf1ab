"""Cross-entropy as a torch module."""

import torch

from kernelwright.torch import cross_entropy, cross_entropy_unreduced

__all__ = ["CrossEntropyLoss"]


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
            raise ValueError(f"CrossEntropyLoss: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing
        self.z_loss = z_loss
        self.softcap = softcap

    def forward(self, logits: torch.Tensor, target: torch.Tensor, divisor=None) -> torch.Tensor:
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        weight = None if self.weight is None else self.weight.to(wide)
        options = (self.ignore_index, self.label_smoothing, self.z_loss, self.softcap)
        if self.reduction == "none":
            if divisor is not None:
                raise ValueError("CrossEntropyLoss: divisor is for a reduced loss, but reduction is 'none'")
            return cross_entropy_unreduced(logits, target, weight, *options)
        if divisor is not None:  # filled on the device: a copy from the host would wait for it
            tensor = isinstance(divisor, torch.Tensor)
            divisor = divisor.to(logits.device, wide).reshape(()) if tensor else torch.full((), divisor, dtype=wide, device=logits.device)
        return cross_entropy(logits, target, weight, divisor, *options, self.reduction)

    def extra_repr(self) -> str:
        words = [f"ignore_index={self.ignore_index}", f"reduction={self.reduction!r}"]
        words += [f"{k}={v}" for k in ("label_smoothing", "z_loss", "softcap") if (v := getattr(self, k))]
        return ", ".join(words)
