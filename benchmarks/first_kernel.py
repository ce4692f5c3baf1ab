"""How long the first call of a kernel takes: compiled by NVRTC, from the disk cache, from memory. Needs a GPU.

    python benchmarks/first_kernel.py [--json benchmarks/results/DATE-NAME.json]

Every measurement is the wall time of one call with a synchronisation, in a fresh process whose CUDA context exists already; the driver's
and NVRTC's own caches are off (CUDA_CACHE_DISABLE=1). Ours is off ("compiled"), then on in a second process ("disk"); "again" is the same
call once more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def calls() -> list[tuple[str, float, float]]:
    """In a child: name, seconds of the first call, seconds of the second."""
    import torch

    import kernelwright.torch as kt

    x = torch.randn(64, 4096, device="cuda", dtype=torch.bfloat16)
    w = torch.ones(4096, device="cuda", dtype=torch.bfloat16)
    torch.cuda.synchronize()
    ops = torch.ops.kernelwright
    cases = {
        "rms_norm bf16": lambda: kt.rms_norm(x, w),
        "swiglu bf16": lambda: kt.swiglu(x, x),
        "swiglu_backward bf16": lambda: ops.swiglu_backward(x, x, x),
        "rms_norm_backward bf16": lambda: ops.rms_norm_backward(x, x, w, 1e-6),
        "rms_norm f32": lambda x=x.float(), w=w.float(): kt.rms_norm(x, w),
        "swiglu f32": lambda x=x.float(): kt.swiglu(x, x),
    }
    out = []
    for name, call in cases.items():
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        out.append((name, *seconds))
    return out


def child(environment: dict[str, str]) -> list:
    done = subprocess.run(
        [sys.executable, __file__, "--child"], env={**os.environ, "CUDA_CACHE_DISABLE": "1", **environment}, stdout=subprocess.PIPE
    )
    if done.returncode:
        raise SystemExit("first_kernel: the measured process failed")
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(calls()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cold = [child({"KW_CACHE": "0"}) for _ in range(args.rounds)]
        child({"KW_CACHE_DIR": folder})  # fills it
        disk = [child({"KW_CACHE_DIR": folder}) for _ in range(args.rounds)]
    rows = []
    print(f"{'call, in this order':<28}{'compiled ms':>12}{'disk ms':>10}{'again ms':>10}   kernels")
    for i, (name, _, _) in enumerate(cold[0]):
        times = [1e3 * statistics.median(run[i][k] for run in runs) for runs, k in ((cold, 1), (disk, 1), (cold, 2))]
        rows.append({"call": name, "compiled_ms": times[0], "disk_ms": times[1], "again_ms": times[2]})
        print(f"{name:<28}{times[0]:12.1f}{times[1]:10.2f}{times[2]:10.3f}   {2 if 'norm_backward' in name else 1}")
    if args.json:
        import record

        record.write(args.json, "first_kernel", rounds=args.rounds, rows=rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
