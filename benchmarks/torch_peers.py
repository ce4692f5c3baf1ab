"""Our operators beside their peers in PyTorch, on one GPU, in one run: eager, torch.compile (max-autotune), Liger-Kernel, quack.

    python benchmarks/torch_peers.py --json benchmarks/results/DATE-NAME.json [--quick]

Device time by CUDA events, the L2 cache flushed before each measurement (a write of 256 MB), candidates interleaved, medians of the rounds
with the 20th and 80th percentile. Bytes are the least possible: each input read once, each result written once. The rate to beat is the
copy rate of the same run and the same size. A peer that is not installed is left out and named. Results are compared before they are timed.
Host cost (last table): microseconds of the caller's thread per eager call with autograd on, queue never full.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

import kernelwright.torch as kt

EPS = 1e-6
FLUSH = None


def flush() -> None:
    global FLUSH
    if FLUSH is None:
        FLUSH = torch.empty(64 * 2**20, dtype=torch.int32, device="cuda")
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
    return {n: dict(zip(("p20", "median", "p80"), (sorted(t)[len(t) // 5], statistics.median(t), sorted(t)[-1 - len(t) // 5]))) for n, t in times.items()}


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true", help="one shape, few rounds")
    args = parser.parse_args()
    torch.manual_seed(0)
    extra_norm, extra_gated, missing = optional_peers()
    rounds = 9 if args.quick else 31
    rows_out = []
    lengths = [4096] if args.quick else [1024, 4096, 8192, 16384]
    for dtype in (torch.bfloat16, torch.float32):
        size = dtype.itemsize
        for length in lengths:
            rows = (2**28 if dtype == torch.bfloat16 else 2**27) // length
            for family, eager, ours, extra in (("norm", eager_norm, lambda x, w: kt.rms_norm(x, w, EPS), extra_norm),
                                               ("gated", eager_gated, kt.swiglu, extra_gated)):
                x = torch.randn(rows, length, device="cuda", dtype=dtype).requires_grad_()
                second = torch.randn(*((length,) if family == "norm" else (rows, length)), device="cuda", dtype=dtype).requires_grad_()
                dy = torch.randn(rows, length, device="cuda", dtype=dtype)
                torch._dynamo.reset()
                functions = {"kernelwright": ours, "eager": eager, "compile": torch.compile(eager, mode="max-autotune-no-cudagraphs", dynamic=False), **extra}
                graphs, forward, backward = {}, {}, {}
                truth = None
                for name, f in functions.items():
                    try:
                        y = f(x, second)
                        grads = torch.autograd.grad(y, (x, second), dy, retain_graph=True)
                    except Exception as error:
                        missing.append(f"{name} {family} {dtype} {length}: {type(error).__name__}: {str(error)[:120]}")
                        continue
                    if truth is None:
                        xs, ss = x[:256].detach().double().requires_grad_(), second.detach()[: 256 if family == "gated" else None].double().requires_grad_()
                        t = eager(xs, ss)
                        truth = (t, *torch.autograd.grad(t, (xs,) if family == "norm" else (xs, ss), dy[:256].double()))
                    got = (y[:256], grads[0][:256]) + ((grads[1][:256],) if family == "gated" else ())
                    agree(f"{name} {family} {dtype} {length}", got, truth, dtype)
                    graphs[name] = y
                    with_no_grad = torch.no_grad()(f)
                    forward[name] = lambda f=with_no_grad: f(x, second)
                    backward[name] = lambda y=y: torch.autograd.grad(y, (x, second), dy, retain_graph=True)
                target = torch.empty_like(dy)
                forward["copy"] = lambda: target.copy_(dy)
                passes = {"norm": (2, 3), "gated": (3, 5)}[family]
                for what, candidates, n in (("forward", forward, passes[0]), ("backward", backward, passes[1])):
                    copied = {"copy": forward["copy"], **candidates}
                    times = measure(copied, rounds)
                    rate = 2 * rows * length * size / times["copy"]["median"] / 1e3
                    moved = n * rows * length * size
                    row = {"op": {"norm": "rms_norm", "gated": "swiglu"}[family], "pass": what, "dtype": str(dtype).removeprefix("torch."), "rows": rows,
                           "length": length, "bytes": moved, "copy_GBps": rate, "times_us": times}
                    rows_out.append(row)
                    shares = "  ".join(f"{k} {t['median']:7.1f} us {100 * moved / t['median'] / 1e3 / rate:5.1f}%" for k, t in times.items() if k != "copy")
                    print(f"{row['op']:<9}{what:<9}{row['dtype']:<9}{rows:>7} x {length:<6} copy {rate:6.0f} GB/s  {shares}", flush=True)
                del x, second, dy, target, graphs, forward, backward, functions
                torch.cuda.empty_cache()
    host = host_cost(extra_norm, 200 if args.quick else 1000)
    print("host, microseconds per eager call with autograd, 128 x 4096 bf16: " + "  ".join(f"{k} {v['median']:.2f}" for k, v in host.items()))
    for line in missing:
        print("left out:", line)
    if args.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        record = {"kind": "torch_peers", "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "command": " ".join(sys.argv),
                  "commit": commit, "machine": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
                  "python": sys.version.split()[0], "rounds": rounds, "rows": rows_out, "host_us": host, "left_out": missing}
        with open(args.json, "w") as f:
            json.dump(record, f, indent=1)
    return 0


def host_cost(extra: dict, calls: int) -> dict:
    x = torch.randn(128, 4096, device="cuda", dtype=torch.bfloat16).requires_grad_()
    w = torch.randn(4096, device="cuda", dtype=torch.bfloat16).requires_grad_()
    functions = {"kernelwright": lambda: kt.rms_norm(x, w, EPS), "eager": lambda: eager_norm(x, w), **{k: (lambda f=f: f(x, w)) for k, f in extra.items()}}
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
    return {k: {"median": statistics.median(t), "p20": sorted(t)[len(t) // 5], "p80": sorted(t)[-1 - len(t) // 5]} for k, t in times.items()}


if __name__ == "__main__":
    sys.exit(main())
