"""Measures on this machine's GPU: every op (`kw bench`), PyTorch beside us (benchmarks/torch_peers.py) and first calls
(benchmarks/first_kernel.py). No set-up, no network.

Writes benchmarks/results/<GPU>-<date>.json (and -torch.json); scripts/bench_table.py turns those into the README's table.
"""
import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", type=Path, default=ROOT / "build")
    options.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    given = options.parse_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    if gpu.returncode or not gpu.stdout.strip():
        print("gpu-bench: nvidia-smi finds no GPU on this machine", file=sys.stderr)
        return 1
    name = re.sub(r"\W+", "-", gpu.stdout.splitlines()[0].lower().replace("nvidia", "")).strip("-")
    stem = given.out / f"{name}-{datetime.date.today().isoformat()}"
    given.out.mkdir(parents=True, exist_ok=True)
    status = subprocess.run([(ROOT / given.build).resolve() / "kw", "bench", "--device", "cuda", "--json", f"{stem}.json"]).returncode
    for script, part in (("torch_peers.py", "torch"), ("first_kernel.py", "first-kernel")):
        status |= subprocess.run([sys.executable, ROOT / "benchmarks" / script, "--json", f"{stem}-{part}.json"]).returncode
    print(f"wrote {stem}*.json")
    return status


if __name__ == "__main__":
    sys.exit(main())
