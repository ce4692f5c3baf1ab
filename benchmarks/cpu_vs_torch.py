"""Our CPU kernels beside PyTorch's CPU eager, in one process: forward and backward of every room, f32 and bf16.

    python benchmarks/cpu_vs_torch.py [--shapes 2048x4096,64x32000] [--threads 2] [--json benchmarks/results/DATE-NAME.json]

The library is called through its C face, by ctypes. Both sides allocate their results (torch.empty for ours, scratch included) within the
measured time, and take turns, so that whatever else the machine does hits both. Results are compared before they are timed. PyTorch's
backward is torch.autograd.grad on a kept graph; that of the loss includes its forward on both sides, because ours writes the gradient in
the forward pass. Wall time; the ratio is of the least times, because on a machine that others use
at the same moment a median says how often they were in the way. Exit status 1 if a ratio is below 1.
KW_CPU_ISA and ATEN_CPU_CAPABILITY (avx2, ...) restrict the two sides to older instruction sets.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import itertools
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
EPS = 1e-6
DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3, torch.int64: 7}  # kw_dtype


class Tensor(ctypes.Structure):  # kw_tensor
    _fields_ = [("data", ctypes.c_void_p), ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_int32), ("dtype", ctypes.c_int32),
                ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32)]  # fmt: skip


class Argument(ctypes.Structure):  # kw_argument
    _fields_ = [("tensors", ctypes.POINTER(Tensor)), ("count", ctypes.c_int32)]


class Attribute(ctypes.Union):  # kw_attribute
    _fields_ = [("f", ctypes.c_double), ("i", ctypes.c_int64), ("s", ctypes.c_char_p)]


class Call(ctypes.Structure):  # kw_call
    _fields_ = [("inputs", ctypes.POINTER(Argument)), ("results", ctypes.POINTER(Argument)), ("attributes", ctypes.POINTER(Attribute)),
                ("stream", ctypes.c_void_p)]  # fmt: skip


class Library:
    def __init__(self, path: str):
        self.c = ctypes.CDLL(path)
        self.c.kw_op_find.restype = ctypes.c_void_p
        self.c.kw_op_find.argtypes = [ctypes.c_char_p]
        self.c.kw_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(Call)]
        self.c.kw_last_error.restype = self.c.kw_version.restype = ctypes.c_char_p

    def run(self, op: str, inputs: list, results: list, *attributes: float | int) -> None:
        """`attributes`: all that the op's contract has, of the types that it says; a choice by its number."""
        arrays = [(Argument * len(tensors))(*(argument(t) for t in tensors)) for tensors in (inputs, results)]
        values = [Attribute(i=a) if isinstance(a, int) else Attribute(f=a) for a in attributes]
        call = Call(*arrays, (Attribute * max(1, len(values)))(*values), None)
        if self.c.kw_run(self.c.kw_op_find(op.encode()), ctypes.byref(call)) != 0:
            raise RuntimeError(self.c.kw_last_error().decode())


def argument(t: torch.Tensor | None) -> Argument:
    if t is None:
        return Argument(None, 0)
    dims = ctypes.c_int64 * t.dim()
    return Argument(ctypes.pointer(Tensor(t.data_ptr(), dims(*t.shape), dims(*t.stride()), t.dim(), DTYPES[t.dtype], 1, 0)), 1)


def cases(library: Library, rows: int, length: int, dtype: torch.dtype) -> dict:
    """name -> (PyTorch's way, ours), each a function that returns a tuple of results."""
    torch.manual_seed(0)
    x, dy, gate, up = (torch.randn(rows, length).to(dtype) for _ in range(4))
    weight = torch.randn(length).to(dtype)
    target = torch.randint(length, (rows,))
    leaves = [t.clone().requires_grad_() for t in (x, weight, gate, up)]
    norm = F.rms_norm(leaves[0], (length,), leaves[1], EPS)
    gated = F.silu(leaves[2]) * leaves[3]

    def rms_norm():
        y = torch.empty_like(x)
        library.run("rms_norm", [x, weight], [y], EPS, 0.0, 0)
        return (y,)

    def rms_norm_backward():
        dx, dweight, part = torch.empty_like(x), torch.empty_like(weight), torch.empty(min(rows, 1024), length)
        library.run("rms_norm_backward", [dy, x, weight], [dx, dweight, part], EPS, 0.0)
        return dx, dweight

    def add_rms_norm():
        y, total = torch.empty_like(x), torch.empty_like(x)
        library.run("add_rms_norm", [x, dy, weight], [y, total], EPS, 0.0, 0)
        return y, total

    def torch_add_rms_norm():
        total = x + dy
        return F.rms_norm(total, (length,), weight, EPS), total

    def swiglu():
        y = torch.empty_like(gate)
        library.run("swiglu", [gate, up], [y], 0)
        return (y,)

    def swiglu_backward():
        dgate, dup = torch.empty_like(gate), torch.empty_like(up)
        library.run("swiglu_backward", [dy, gate, up], [dgate, dup], 0)
        return dgate, dup

    def cross_entropy(gradient: bool):
        loss, losses, parts = torch.empty(()), torch.empty(rows), torch.empty(256)
        dlogits = torch.empty_like(x) if gradient else None
        library.run("cross_entropy", [x, target, None, None], [loss, dlogits, losses, parts], -100, 0.0, 0.0, 0.0, 0)
        return (loss, dlogits) if gradient else (loss,)

    def torch_cross_entropy():
        loss = F.cross_entropy(leaves[0], target)
        return loss, *torch.autograd.grad(loss, leaves[:1])

    return {
        "rms_norm forward": (lambda: (F.rms_norm(x, (length,), weight, EPS),), rms_norm),
        "rms_norm backward": (lambda: torch.autograd.grad(norm, leaves[:2], dy, retain_graph=True), rms_norm_backward),
        "add_rms_norm forward": (torch_add_rms_norm, add_rms_norm),
        "swiglu forward": (lambda: (F.silu(gate) * up,), swiglu),
        "swiglu backward": (lambda: torch.autograd.grad(gated, leaves[2:], dy, retain_graph=True), swiglu_backward),
        "cross_entropy loss": (lambda: (F.cross_entropy(x, target),), lambda: cross_entropy(False)),
        "cross_entropy loss, gradient": (torch_cross_entropy, lambda: cross_entropy(True)),
    }


def compare(name: str, theirs, ours) -> None:
    for a, b in zip(theirs, ours, strict=True):
        error = (a.double() - b.double()).abs().max().item() / a.double().abs().max().item()
        bound = 0.02 if a.dtype == torch.bfloat16 else 1e-5  # PyTorch rounds bf16 between its steps
        if not error <= bound:
            raise SystemExit(f"{name}: the results differ by {error:.3g} of the largest value, more than {bound}")


def measure(functions, rounds: int) -> list[list[float]]:
    times = [[] for _ in functions]
    end = time.perf_counter() + 3  # of a short call more: among 30 of them, none may have had both cores to itself
    while len(times[0]) < rounds or time.perf_counter() < end:
        for f, t in zip(functions, times):
            start = time.perf_counter()
            f()
            t.append(1e3 * (time.perf_counter() - start))
    return times


def facts(library: Library, arguments: argparse.Namespace) -> dict:
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": "python " + " ".join([os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]),
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load_average": os.getloadavg()[0],
        "system": platform.platform(),
        "torch": torch.__version__,
        "torch_cpu": torch.backends.cpu.get_cpu_capability(),
        "kernelwright": f"{library.c.kw_version().decode()} {commit}",
        "kernelwright_isa": os.environ.get("KW_CPU_ISA", "best"),
        "rounds": arguments.rounds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="2048x4096,64x32000", help="rows x length, with commas between")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=21, help="at least so many, and for 3 seconds")
    parser.add_argument("--library", default=str(ROOT / "build" / "libkernelwright.so"))
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    library = Library(arguments.library)
    report = {**facts(library, arguments), "results": []}
    print(f"{report['cpu']}, {report['threads']} threads, torch {report['torch']} ({report['torch_cpu']})")
    print(f"{'':46}{'PyTorch ms':>12}{'(min)':>9}{'ours ms':>10}{'(min)':>9}{'ratio':>8}")
    shapes = [[int(n) for n in shape.split("x")] for shape in arguments.shapes.split(",")]
    for (rows, length), dtype in itertools.product(shapes, (torch.float32, torch.bfloat16)):
        short = str(dtype).removeprefix("torch.")
        for name, (theirs, ours) in cases(library, rows, length, dtype).items():
            compare(name, theirs(), ours())
            a, b = measure((theirs, ours), arguments.rounds)
            ratio = min(a) / min(b)
            numbers = f"{statistics.median(a):12.2f}{min(a):9.2f}{statistics.median(b):10.2f}{min(b):9.2f}{ratio:8.2f}"
            print(f"{name:28}{short:>8}{f'{rows}x{length}':>10}{numbers}", flush=True)
            result = {"case": name, "shape": [rows, length], "dtype": short, "torch_ms": a, "ours_ms": b, "ratio": round(ratio, 3)}
            report["results"].append(result)
    if arguments.json:
        for r in report["results"]:
            for side in ("torch_ms", "ours_ms"):
                t = sorted(r[side])
                r[side] = {"median": round(statistics.median(t), 3), "min": round(t[0], 3), "max": round(t[-1], 3)}
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all(r["ratio"] >= 1 for r in report["results"]) else 1


if __name__ == "__main__":
    sys.exit(main())
