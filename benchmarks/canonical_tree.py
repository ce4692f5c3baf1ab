"""What the canonical tree costs: the same kernels with sums along it, and along each tile's own tree, alternately.

    python benchmarks/canonical_tree.py build/kw rms_norm rms_norm_backward

Writes a copy of the device code whose row words add as a tile would on its own (each thread one running sum, shuffles within a warp, then
one value per warp), lets KW_KERNEL_PATH point to it, and runs `kw bench` on both, in turns, so that a clock that drifts meets both. Needs
a GPU. --write FOLDER only writes that copy.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# (file, what stands there, what the tile would do on its own)
EDITS = [
    ("kw/device/row.cuh", "static constexpr int lanes = detail::least(vectors, tree / threads);", "static constexpr int lanes = 1;"),
    (
        "kw/device/reduce.cuh",
        """  const int group = threadIdx.x / threads, thread = threadIdx.x % threads, lane = threadIdx.x % 32;
  if constexpr (threads > 256) {""",
        """  const int group = threadIdx.x / threads, thread = threadIdx.x % threads, lane = threadIdx.x % 32;
  v = warp_sum<detail::least(threads, 32)>(v);
  if constexpr (threads > 32) {
    constexpr int warps = threads / 32;
    __shared__ S values[2][groups][warps];
    if (lane == 0) values[turn][group][thread / 32] = v;
    __syncthreads();
    v = warp_sum<warps>(values[turn][group][lane % warps]);
  }
  return v;
  if constexpr (threads > 256) {""",
    ),
]


def write(folder: Path) -> None:
    for file in ROOT.glob("kw/**/*.cuh"):
        to = folder / file.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
    for name, canonical, native in EDITS:
        text = (folder / name).read_text()
        assert text.count(canonical) == 1, f"{name} has changed: look at EDITS"
        (folder / name).write_text(text.replace(canonical, native))


def bench(kw: str, ops: list[str], kernels: Path, min_time: str) -> dict[tuple[str, str], float]:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [kw, "bench", *ops, "--device", "cuda", "--min-time", min_time, "--json", str(results)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "KW_KERNEL_PATH": str(kernels)})
        return {(c["op"], c["arguments"]): c["median_us"] for c in json.loads(results.read_text())["cases"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kw", nargs="?")
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--min-time", default="0.2", help="seconds of `kw bench` for one case")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    if arguments.write:
        return write(arguments.write)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        runs = {"canonical": [], "native": []}
        for _ in range(arguments.rounds):
            runs["canonical"].append(bench(arguments.kw, arguments.ops, ROOT, arguments.min_time))
            runs["native"].append(bench(arguments.kw, arguments.ops, Path(folder), arguments.min_time))
    print("median of the rounds' medians, us: canonical tree, tile's own, difference")
    costs = []
    for case in runs["canonical"][0]:
        canonical, native = (statistics.median(r[case] for r in runs[tree]) for tree in ("canonical", "native"))
        costs.append(canonical / native - 1)
        print(f"{case[0]} {case[1]}: {canonical:.1f} {native:.1f} {100 * costs[-1]:+.2f} %")
    print(f"in the median of the cases: {100 * statistics.median(costs):+.2f} %, at most {100 * max(costs):+.2f} %")


if __name__ == "__main__":
    main()
