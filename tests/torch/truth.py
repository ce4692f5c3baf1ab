"""What the built-in rooms compute, in torch and at any precision: the truth in float64, and torch's own result for comparison."""

import torch


def _rms_norm(x, weight, eps, offset=0.0, rounding="once"):
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return y * ((1 if weight is None else weight) + offset)


def _add_rms_norm(x, residual, weight, *attributes):
    return _rms_norm(x + residual, weight, *attributes), x + residual


def _swiglu(gate, up, activation="silu"):
    return (torch.nn.functional.silu(gate) if activation == "silu" else torch.nn.functional.gelu(gate, approximate="tanh")) * up


def _swiglu_packed(x, activation="silu"):
    return _swiglu(*x.chunk(2, -1), activation)


TRUTH = {"rms_norm": _rms_norm, "add_rms_norm": _add_rms_norm, "swiglu": _swiglu, "swiglu_packed": _swiglu_packed}


def in_double(function, arguments):
    """Result and gradient function in float64, from the very values that the op gets."""
    doubles = [a.detach().double().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in arguments]
    return function(*doubles), [d for d in doubles if isinstance(d, torch.Tensor) and d.requires_grad]


def assert_close(got, truth, what, roundings=2.0, dtype=None):
    """Within `roundings` roundings of got's dtype (or of another that it went through), of the largest value of the row: sums cancel, so a
    small element carries the error of the large ones that it was made from."""
    assert got.shape == truth.shape, what
    if not got.numel():
        return
    unit = torch.finfo(dtype or got.dtype).eps
    scale = truth.abs().amax(-1, keepdim=True).clamp_min(truth.abs().max() * 0.1)
    error = ((got.double() - truth).abs() / scale).max().item()
    assert error <= roundings * unit, f"{what}: off by {error / unit:.2f} roundings, allowed {roundings}"
