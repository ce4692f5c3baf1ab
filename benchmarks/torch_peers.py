"""Our operators beside their peers in PyTorch, on one GPU, in one run: eager, torch.compile (max-autotune), Liger-Kernel, quack.

    python benchmarks/torch_peers.py --json benchmarks/results/DATE-NAME.json [--quick]

Device time by CUDA events, the L2 cache flushed before each measurement (a write of 256 MB), candidates interleaved, medians of the rounds
with the 20th and 80th percentile. Bytes are the least possible: each input read once, each result written once. The rate to beat is the
copy rate of the same run and the same size. A peer that is not installed is left out and named. Results are compared before they are timed.
Host cost (last table): microseconds of the caller's thread per eager call with autograd on, queue never full.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

import kernelwright.torch as kt
import record

EPS = 1e-6
FLUSH = None


def flush() -> None:
    global FLUSH
    if FLUSH is None:
        FLUSH = torch.empty(256 * 2**20, dtype=torch.int32, device="cuda")
    FLUSH.zero_()


def measure(candidates: dict, rounds: int) -> dict:
    """name -> {median, p20, p80} in microseconds."""
    times = {name: [] for name in candidates}
    for name, f in candidates.items():
        for _ in range(3):
            f()
    for _ in range(rounds):
        for name, f in candidates.items():
            flush()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            f()
            end.record()
            end.synchronize()
            times[name].append(1e3 * start.elapsed_time(end))
    return {
        n: dict(zip(("p20", "median", "p80"), (sorted(t)[len(t) // 5], statistics.median(t), sorted(t)[-1 - len(t) // 5])))
        for n, t in times.items()
    }


def optional_peers() -> tuple[dict, dict, list[str]]:
    norm, gated, missing = {}, {}, []
    try:
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
        from liger_kernel.ops.swiglu import LigerSiLUMulFunction

        norm["liger"] = lambda x, w: LigerRMSNormFunction.apply(x, w, EPS, 0.0, "llama", False)
        gated["liger"] = LigerSiLUMulFunction.apply
    except Exception as error:  # not installed, or too new or old for this torch: named, never hidden
        missing.append(f"liger: {type(error).__name__}: {error}")
    try:
        from quack.rmsnorm import rmsnorm

        norm["quack"] = lambda x, w: rmsnorm(x, w, eps=EPS)
    except Exception as error:
        missing.append(f"quack: {type(error).__name__}: {error}")
    return norm, gated, missing


def eager_norm(x, w):
    return F.rms_norm(x, (x.shape[-1],), w, EPS)


def eager_gated(gate, up):
    return F.silu(gate) * up


def agree(name: str, got, want, dtype) -> None:
    bound = {torch.float32: 2e-5, torch.bfloat16: 2e-2}[dtype]
    for g, w in zip(got, want, strict=True):
        error = ((g.double() - w.double()).norm() / w.double().norm().clamp_min(1e-30)).item()
        if not error <= bound:
            raise SystemExit(f"{name} is wrong: relative error {error:.3g}, more than {bound}")


@dataclasses.dataclass
class Family:
    """One op, its peers, and how many passes over [rows, length] a call has to make at least."""

    op: str
    eager: Callable
    ours: Callable
    extra: dict[str, Callable]
    passes: dict[str, int]
    vector: bool  # the second input is [length], not [rows, length]


def time_case(family: Family, dtype: torch.dtype, rows: int, length: int, rounds: int, missing: list[str]) -> list[dict]:
    x = torch.randn(rows, length, device="cuda", dtype=dtype).requires_grad_()
    second = torch.randn((length,) if family.vector else (rows, length), device="cuda", dtype=dtype).requires_grad_()
    dy = torch.randn(rows, length, device="cuda", dtype=dtype)
    truth = first_rows(family, family.eager, x[:256].double(), (second if family.vector else second[:256]).double(), dy[:256].double())
    torch._dynamo.reset()
    compiled = torch.compile(family.eager, mode="max-autotune-no-cudagraphs", dynamic=False)
    forward, backward = {}, {}
    for name, f in {"kernelwright": family.ours, "eager": family.eager, "compile": compiled, **family.extra}.items():
        label = f"{name} {family.op} {dtype} {rows} x {length}"
        try:
            y = f(x, second)
            gradients = torch.autograd.grad(y, (x, second), dy, retain_graph=True)
        except Exception as error:  # a peer that cannot do this case: named, never hidden
            missing.append(f"{label}: {type(error).__name__}: {str(error)[:120]}")
            continue
        got = (y[:256], gradients[0][:256]) + (() if family.vector else (gradients[1][:256],))
        agree(label, got, truth, dtype)
        forward[name] = lambda f=torch.no_grad()(f): f(x, second)
        backward[name] = lambda y=y: torch.autograd.grad(y, (x, second), dy, retain_graph=True)
    target = torch.empty_like(dy)
    out = []
    for what, candidates in (("forward", forward), ("backward", backward)):
        times = measure({"copy": lambda: target.copy_(dy), **candidates}, rounds)
        one_pass = rows * length * dtype.itemsize
        row = {
            "op": family.op,
            "pass": what,
            "dtype": str(dtype).removeprefix("torch."),
            "rows": rows,
            "length": length,
            "bytes": family.passes[what] * one_pass,
            "copy_GBps": 2 * one_pass / times["copy"]["median"] / 1e3,
            "times_us": times,
        }
        shares = "".join(f"  {k} {v['median']:7.1f} us {share(row, k):5.1f}%" for k, v in times.items() if k != "copy")
        print(f"{row['op']:<9}{what:<9}{row['dtype']:<9}{rows:>7} x {length:<6} copy {row['copy_GBps']:6.0f} GB/s{shares}", flush=True)
        out.append(row)
    return out


def first_rows(family: Family, f: Callable, x: torch.Tensor, second: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Result and gradients in fp64; a vector's gradient sums over all rows, so it is not among them."""
    x, second = x.detach().requires_grad_(), second.detach().requires_grad_()
    y = f(x, second)
    return (y, *torch.autograd.grad(y, (x,) if family.vector else (x, second), dy))


def share(row: dict, name: str) -> float:
    return 100 * row["bytes"] / row["times_us"][name]["median"] / 1e3 / row["copy_GBps"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true", help="one shape, few rounds")
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 4096, 8192, 16384])
    args = parser.parse_args()
    torch.manual_seed(0)
    extra_norm, extra_gated, missing = optional_peers()
    families = [
        Family("rms_norm", eager_norm, lambda x, w: kt.rms_norm(x, w, EPS), extra_norm, {"forward": 2, "backward": 3}, vector=True),
        Family("swiglu", eager_gated, kt.swiglu, extra_gated, {"forward": 3, "backward": 5}, vector=False),
    ]
    rounds = 9 if args.quick else 31
    rows_out = []
    for dtype, elements in ((torch.bfloat16, 2**28), (torch.float32, 2**27)):
        for length in [4096] if args.quick else args.lengths:
            for family in families:
                rows_out += time_case(family, dtype, elements // length, length, rounds, missing)
                if args.json:  # as it goes: the machine may be taken away
                    record.write(args.json, "torch_peers", rounds=rounds, rows=rows_out, host_us={}, left_out=missing)
                torch.cuda.empty_cache()
    host = host_cost(extra_norm, 200 if args.quick else 1000)
    listed = "  ".join(f"{k} {v['median']:.2f}" for k, v in host.items())
    print(f"host, microseconds per eager call with autograd, 128 x 4096 bf16: {listed}")
    for line in missing:
        print("left out:", line)
    if args.json:
        record.write(args.json, "torch_peers", rounds=rounds, rows=rows_out, host_us=host, left_out=missing)
    return 0


def host_cost(extra: dict, calls: int) -> dict:
    x = torch.randn(128, 4096, device="cuda", dtype=torch.bfloat16).requires_grad_()
    w = torch.randn(4096, device="cuda", dtype=torch.bfloat16).requires_grad_()
    functions = {
        "kernelwright": lambda: kt.rms_norm(x, w, EPS),
        "eager": lambda: eager_norm(x, w),
        **{k: (lambda f=f: f(x, w)) for k, f in extra.items()},
    }
    times = {k: [] for k in functions}
    for _ in range(20):
        for name, f in functions.items():
            for _ in range(20):
                f()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls // 10):
                f()
            times[name].append(1e6 * (time.perf_counter() - start) / (calls // 10))
            torch.cuda.synchronize()
    return {
        k: {"median": statistics.median(t), "p20": sorted(t)[len(t) // 5], "p80": sorted(t)[-1 - len(t) // 5]} for k, t in times.items()
    }


if __name__ == "__main__":
    sys.exit(main())
