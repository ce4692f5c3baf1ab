"""What an eager PyTorch call costs on the host: ours beside torch's own, interleaved in one run, medians. Small tensors, so that the kernel
itself hardly counts. On a GPU: time until the call returns.

    python benchmarks/torch_call.py [--rounds 60] [--json F]
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.nn.functional as F

import kernelwright.torch as kt

EPS = 1e-6


def cases(device, dtype, shape):
    d = shape[-1]
    x, w = torch.randn(shape, device=device, dtype=dtype), torch.randn(d, device=device, dtype=dtype)
    a, b = torch.randn(2, *shape, device=device, dtype=dtype)
    gx, gw, ga, gb = (t.clone().requires_grad_() for t in (x, w, a, b))
    op = torch.ops.kernelwright
    dy = torch.randn_like(x)

    def back(f, *inputs):
        return lambda: torch.autograd.grad(f(*inputs), inputs, dy)

    norm = {
        "torch": lambda x, w: F.rms_norm(x, (d,), w, EPS),
        "kernelwright": lambda x, w: kt.rms_norm(x, w, EPS),
        "dispatcher": lambda x, w: op.rms_norm.default(x, w, EPS),
    }
    gated = {"torch": lambda a, b: F.silu(a) * b, "kernelwright": kt.swiglu, "dispatcher": op.swiglu.default}
    out = {}
    for name, ways, plain, grad in (("rms_norm", norm, (x, w), (gx, gw)), ("swiglu", gated, (a, b), (ga, gb))):
        for way, f in ways.items():
            out[name, "no_grad", way] = (torch.no_grad, lambda f=f, v=plain: f(*v))
            out[name, "grad", way] = (torch.enable_grad, lambda f=f, v=grad: f(*v))
            out[name, "forward+backward", way] = (torch.enable_grad, back(f, *grad))
    return out


def measure(table, rounds, burst, synchronize):
    times = {k: [] for k in table}
    for mode, f in table.values():
        with mode():
            for _ in range(burst):
                f()
    for _ in range(rounds):
        for key, (mode, f) in table.items():
            with mode():
                synchronize()
                f()
                start = time.perf_counter()
                for _ in range(burst):
                    f()
                times[key].append((time.perf_counter() - start) / burst * 1e6)
    return {k: statistics.median(v) for k, v in times.items()}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=60)
    options.add_argument("--burst", type=int, default=100)
    options.add_argument("--json")
    given = options.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core: threads that wander cost more than they help here
    torch.set_num_threads(1)
    gpu = torch.cuda.is_available()
    setting = ("cuda", torch.bfloat16, (128, 4096)) if gpu else ("cpu", torch.float32, (2, 8))
    result = measure(cases(*setting), given.rounds, given.burst, torch.cuda.synchronize if gpu else lambda: None)
    print(f"{setting[0]} {setting[1]} {list(setting[2])}, torch {torch.__version__}, fast path {kt.fast_path()}; us per call, median of {given.rounds}")
    print(f"{'op':10} {'mode':18} {'torch':>8} {'kernelwright':>13} {'ratio':>6} {'dispatcher':>11}")
    rows = []
    for op, mode in dict.fromkeys((k[0], k[1]) for k in result):
        t, k, d = (result[op, mode, way] for way in ("torch", "kernelwright", "dispatcher"))
        rows.append({"op": op, "mode": mode, "torch_us": t, "kernelwright_us": k, "dispatcher_us": d})
        print(f"{op:10} {mode:18} {t:8.2f} {k:13.2f} {k / t:6.2f} {d:11.2f}")
    if given.json:
        with open(given.json, "w") as f:
            json.dump({"device": setting[0], "torch": torch.__version__, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
