"""Another version of the library in the same process: torch gets its ops and its errors from one, and a sentence about the other."""

import os
import subprocess
import sys
from pathlib import Path

BUILD = Path(os.environ.get("KW_BUILD", Path(__file__).resolve().parents[2] / "build"))

CODE = """
import ctypes, sys
import torch
old = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)  # as a program that was linked with it has it
old.kw_load_library(b"/first")  # leaves an error in the other library
import kernelwright, kernelwright.torch as kt
op = next(op for op in map(kernelwright._registry.op, kernelwright.ops()) if len(op.inputs) == 2 and op.gradient)
for function in (getattr(kt, op.name), getattr(torch.ops.kernelwright, op.name)):
    try:
        function(torch.ones(3, 4), torch.ones(5))
    except RuntimeError as e:
        print(e)
from kernelwright._library import Library
try:
    Library(sys.argv[1]).attach_torch()
except ImportError as e:
    print(e)
"""


def test_two_versions(tmp_path):
    other = tmp_path / "libother.so"
    data = (BUILD / "libkernelwright.so").read_bytes()
    version = subprocess.run([BUILD / "kw", "--version"], capture_output=True, text=True).stdout.split()[1].encode()
    assert version + b"\0" in data
    other.write_bytes(data.replace(version + b"\0", b"0.0.9\0".ljust(len(version) + 1, b"\0")))
    done = subprocess.run([sys.executable, "-c", CODE, other], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    fast, dispatched, refused = done.stdout.splitlines()
    assert fast == dispatched and "5" in fast and "4" in fast and "/first" not in dispatched
    assert refused.startswith("kernelwright: another Kernelwright in this process has defined its ops in torch already (kernelwright::")
    assert f"this one is 0.0.9 of {other}" in refused
