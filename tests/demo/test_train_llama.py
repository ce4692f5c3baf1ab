"""The demo's own judgement: it must fail when something is wrong, so every fault is planted once."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import train_llama as demo  # noqa: E402

SETTING = demo.Setting("small", "cpu", "float32", 8, 1, 1, 8, 8, 1, 4, 1e-3)


def make(losses=(4.0, 3.0, 2.5, 2.0), norm=1.5, swapped=demo.EXPECTED, calls=(3, 3, 3, 3)):
    summary = {"swapped": {op: 2 for op in swapped}}
    return demo.Run("run", list(losses), [norm] * 4, [0.1] * 4, [{op: n for op in swapped} for n in calls], summary)


def test_a_good_run_has_no_faults():
    assert demo.faults(SETTING, make(), 0.2, make(losses=(4.0, 3.0, 2.6, 1.9))) == []


@pytest.mark.parametrize(
    ("ours", "part"),
    [
        *((make(swapped=[o for o in demo.EXPECTED if o != op]), f"no module was swapped for {op}") for op in demo.EXPECTED),
        (make(calls=(3, 3, 0, 3)), "was not called in step 2"),
        (make(losses=(4.0, 3.0, 2.5, 2.3)), "the loss curves part by 0.3"),
        (make(losses=(4.0, float("nan"), 2.5, 2.0)), "the loss curves part by nan"),
        (make(losses=(4.00002, 3.0, 2.5, 2.0)), "the first loss is 4.00002"),
        (make(norm=1.50002), "the first gradient norm is 1.50002"),
    ],
)
def test_each_fault_is_a_sentence(ours, part):
    assert any(part in fault for fault in demo.faults(SETTING, make(), 0.2, ours))


def test_a_gap_is_the_largest_over_the_curve():
    assert demo.gap(make(), make(losses=(4.5, 3.0, 2.5, 2.1))) == pytest.approx(0.5)
