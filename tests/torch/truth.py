"""What ops compute, in torch and at any precision: the truth in float64, and torch's own result for comparison. Every room says it."""

import torch

from kernelwright.torch import _plain

TRUTH = _plain.functions


def in_double(function, arguments):
    """Results and the inputs that want a gradient, in float64, from the very values that the op gets."""
    doubles = [
        a.detach().double().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) and a.is_floating_point() else a
        for a in arguments
    ]
    return function(*doubles), [d for d in doubles if isinstance(d, torch.Tensor) and d.requires_grad]


def assert_close(got, truth, what, roundings=2.0, dtype=None):
    """Within `roundings` roundings of got's dtype (or of another that it went through), of the largest value of the row: sums cancel, so a
    small element carries the error of the large ones that it was made from."""
    assert got.shape == truth.shape, what
    if not got.numel():
        return
    assert torch.equal(got.isnan(), truth.isnan()), what  # where none of the targets counts
    got, truth = got.nan_to_num(nan=0.0), truth.nan_to_num(nan=0.0)
    unit = torch.finfo(dtype or got.dtype).eps
    scale = truth.abs().amax(-1, keepdim=True).clamp_min(truth.abs().max() * 0.1).clamp_min(torch.finfo(torch.float64).tiny)
    error = ((got.double() - truth).abs() / scale).max().item()
    assert error <= roundings * unit, f"{what}: off by {error / unit:.2f} roundings, allowed {roundings}"
