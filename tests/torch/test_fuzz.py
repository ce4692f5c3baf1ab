"""Inference in the library against inference in Python, on 100,000 calls of contracts that nobody wrote (fuzz_inference.py)."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = range(1, 11) if "KW_FULL" in os.environ else [5]


@pytest.mark.parametrize("seed", SEEDS)
def test_both_say_the_same(seed):
    program = Path(__file__).with_name("fuzz_inference.py")
    done = subprocess.run([sys.executable, program, "100000", str(seed)], capture_output=True, text=True, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 disagreements" in done.stdout
