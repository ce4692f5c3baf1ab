"""Accelerated models compute what stock models compute: logits, loss and every gradient, against a run in f64."""
import pytest
import torch

import kernelwright
import kernelwright.torch as kt

pytest.importorskip("transformers")
from families import FAMILIES, LAYERS, NORMS, build, error, results, truth  # noqa: E402


def expected(family):
    return {"rms_norm": NORMS.get(family, 2) * LAYERS + 1, "swiglu": LAYERS}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("family", FAMILIES)
def test_as_near_the_truth_as_stock(family, dtype):
    want = truth(family, dtype)
    stock = results(build(family, dtype))
    model = build(family, dtype)
    report = kt.accelerate(model)
    assert report.counts() == expected(family), str(report)
    before = {op: kernelwright.calls(op) for op in report.counts()}
    ours = results(model)
    for op, served in report.counts().items():
        assert kernelwright.calls(op) == before[op] + served, op
    assert ours.keys() == want.keys()
    floor = torch.finfo(dtype).eps / 4  # of stock's error, where luck brings it near 0
    bad = []
    for name, truth_ in want.items():
        assert ours[name].dtype == stock[name].dtype, name
        a, b = error(ours[name], truth_), error(stock[name], truth_)
        if not a <= 2 * max(b, floor):
            bad.append(f"{name}: {a:.3g}, stock {b:.3g}")
    assert not bad, "\n".join(bad)
