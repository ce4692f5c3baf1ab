"""The emulator's access report against Nsight Compute's counters, for the same calls. Needs a GPU, ncu, and a build; no torch.

    python benchmarks/access_ncu.py [--build build] [--json benchmarks/results/DATE-access.json] [--only rms_norm] [--emulated FILE]
    python benchmarks/access_ncu.py --emulate build/access.json      only the emulator's half, on any machine with g++

For every case `kw plan OP --access` counts on the emulator, and `kw bench OP` runs once under ncu; kernels are matched in their order. So
are those of access_patterns.cu, one for each pattern of access. Printed: requests, sectors and wavefronts of both, and their ratio.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# One call of every kind of kernel that the rooms have. Small: the emulator takes its time.
CASES = [
    ("rms_norm", "x=bf16[528,4096] weight=bf16[4096]"),
    ("rms_norm", "x=f32[132,32768] weight=f32[32768]"),
    ("rms_norm", "x=bf16[132,100003] weight=bf16[100003]"),
    ("rms_norm_backward", "dy=bf16[1056,4096] x=bf16[1056,4096] weight=bf16[4096]"),
    ("swiglu", "gate=bf16[132,11008] up=bf16[132,11008]"),
    ("swiglu_backward", "dy=bf16[132,11008] gate=bf16[132,11008] up=bf16[132,11008]"),
    ("rms_norm_backward", "dy=f32[528,256] x=f32[528,256] weight=f32[256]"),
    ("cross_entropy", "logits=bf16[132,4096] target=i64[132]"),
    ("cross_entropy", "logits=bf16[132,32000] target=i64[132]"),
    ("cross_entropy", "logits=bf16[66,128256] target=i64[66]"),
    ("cross_entropy_backward", "dloss=f32[] dlogits=bf16[132,32000]"),
]

PATTERNS = "access_patterns.cu"  # beside this file; stands in the list of cases as an op without arguments

# What is compared: our name, the emulator's accesses and their field, the counter. The sass_ ones count cp.async apart by what it bypasses.
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}"
COPY = "smsp__sass_l1tex_t_{}_pipe_lsu_mem_global_op_ldgsts_cache_bypass"
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}"
COMPARED = [
    ("load requests", "global load", "requests", GLOBAL.format("requests", "ld")),
    ("load sectors", "global load", "sectors", GLOBAL.format("sectors", "ld")),
    ("store requests", "global store", "requests", GLOBAL.format("requests", "st")),
    ("store sectors", "global store", "sectors", GLOBAL.format("sectors", "st")),
    ("copy requests", "copy from global", "requests", COPY.format("requests")),
    ("copy sectors", "copy from global", "sectors", COPY.format("sectors")),
    ("shared load wavefronts", "shared load", "wavefronts", SHARED.format("ld")),
    ("shared load conflicts", "shared load", "conflicts", CONFLICTS.format("ld")),
    ("shared store wavefronts", "shared store", "wavefronts", SHARED.format("st")),
    ("shared store conflicts", "shared store", "conflicts", CONFLICTS.format("st")),
]
# Kept beside them, because how the counters above treat cp.async is not documented.
ALSO = re.compile(
    r"(smsp__sass_l1tex_(t_(requests|sectors)_pipe_lsu_mem_global_op_(ld|st|ldgsts_cache_(access|bypass))"
    r"|data_(pipe_lsu_wavefronts|bank_conflicts_pipe_lsu)_mem_shared_op_(ld|st|ldgsts))"
    r"|smsp__inst_executed_op_(global_ld|global_st|shared_ld|shared_st|ldgsts))"
)


def emulated(kw: Path, op: str, arguments: str, gpu: str) -> list[dict]:
    """The kernels of the call in their order, each with its counts."""
    if op == PATTERNS:
        with tempfile.TemporaryDirectory() as folder:
            command = [kw, "emulate", HERE / PATTERNS, "--access", "--json", f"{folder}/report.json"]
            done = subprocess.run(command, capture_output=True, text=True)
            report = json.loads(Path(folder, "report.json").read_text()) if not done.returncode else {}
    else:
        words = [word for argument in arguments.split() for word in ("--arg", argument)]
        done = subprocess.run([kw, "plan", op, "--access", "--json", "--gpu", gpu, *words], capture_output=True, text=True)
        report = json.loads(done.stdout)[0] if not done.returncode else {}
    if not report:
        sys.exit(f"{op} {arguments} on the emulator: {done.stderr.strip()}")
    kernels = []
    for kernel in report["access"]["kernels"]:
        counts = {name: 0 for name, *_ in COMPARED}
        for access in kernel["accesses"]:
            access["conflicts"] = access.get("wavefronts", 0) - access["least"]
            for name, what, field, _ in COMPARED:
                counts[name] += access[field] if access["what"] == what else 0
        kernels.append({"kernel": kernel["kernel"], "counts": counts})
    return kernels


def nvcc() -> str:
    return shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def known_counters(ncu: str) -> list[str]:
    """Of this GPU, those that we want."""
    listed = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True)
    names = re.findall(r"^\s*([a-z]\w+__\w+)", listed.stdout, re.M)
    wanted = {counter for *_, counter in COMPARED}
    return sorted({name for name in names if name in wanted or ALSO.fullmatch(name)}) or sorted(wanted)


def counted(ncu: str, kw: Path, op: str, arguments: str, launches: int, counters: list[str]) -> list[dict]:
    """The same kernels under ncu: {"kernel", "counters"}."""
    watch = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--kernel-name-base", "demangled",
             "--launch-count", str(launches), "--metrics", ",".join(f"{name}.sum" for name in counters)]  # fmt: skip
    if op == PATTERNS:
        with tempfile.TemporaryDirectory() as folder:
            command = [nvcc(), "-O3", "-arch=native", "-o", f"{folder}/patterns", HERE / PATTERNS]
            built = subprocess.run(command, capture_output=True, text=True)
            if built.returncode:
                print(f"{PATTERNS} is left out, because nvcc cannot build it: {built.stderr.strip()[:400]}")
                return []
            done = subprocess.run([*watch, f"{folder}/patterns"], capture_output=True, text=True)
    else:
        words = [word for argument in arguments.split() for word in ("--arg", argument)]
        call = [kw, "bench", op, "--device", "cuda", "--min-time", "0.001", *words]
        done = subprocess.run([*watch, "--kernel-name", "regex:kw::ops", *call], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        print(f"ncu gave no table for {op} {arguments}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return []
    kernels = []
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if not (row.get("ID") or "").isdigit():
            continue  # the units
        values = {name: row.get(f"{name}.sum") for name in counters}
        values = {name: float(v.replace(",", "")) for name, v in values.items() if v and re.fullmatch(r"[\d.,]+", v)}
        kernels.append({"kernel": row["Kernel Name"], "counters": values})
    return kernels


def compare(case: dict) -> list[str]:
    """Fills in case["compared"]; gives lines to print."""
    lines = []
    for ours, theirs in zip(case["emulator"], case["ncu"], strict=False):
        lines.append(f"  {ours['kernel']}")
        ours["ratio"] = {}
        for name, _, _, counter in COMPARED:
            here, there = ours["counts"][name], theirs["counters"].get(counter)
            if there is not None and name.startswith("load "):  # ncu's loads are loads and cp.async together (seen: their sum, exactly)
                there -= theirs["counters"].get(COPY.format(name.split()[1]), 0)
            if not here and not there:
                continue
            ratio = here / there if there else None
            ours["ratio"][name] = ratio
            there_text = "not counted" if there is None else f"{there:.0f}"
            lines.append(f"    {name:<26} emulator {here:>12} ncu {there_text:>12} " + (f"ratio {ratio:.4f}" if ratio is not None else ""))
    if len(case["emulator"]) != len(case["ncu"]):
        lines.append(f"  {len(case['emulator'])} kernels on the emulator, {len(case['ncu'])} under ncu")
    return lines


def commit() -> str:
    """KW_COMMIT, for trees that were carried without their .git; else git's HEAD. (record.py's needs torch.)"""
    asked = ["git", "rev-parse", "--verify", "-q", "HEAD"]
    return os.environ.get("KW_COMMIT") or subprocess.run(asked, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=Path, default=ROOT / "build", help="the folder with kw")
    options.add_argument("--gpu", default="h200", help="as kw plan takes it: what the emulator takes itself for")
    options.add_argument("--only", default="", help="ops whose names begin so")
    options.add_argument("--json", type=Path, help="write the comparison there")
    options.add_argument("--emulate", type=Path, help="only count on the emulator, and write that there")
    options.add_argument("--emulated", type=Path, help="what --emulate wrote, in place of counting again")
    options.add_argument("--seconds", type=float, default=45, help="no case is begun after so long")
    given = options.parse_args()
    start, kw = time.monotonic(), given.build.resolve() / "kw"
    cases = [(op, arguments) for op, arguments in [(PATTERNS, ""), *CASES] if op.startswith(given.only)]

    if given.emulated:
        held = {(case["op"], case["arguments"]): case["emulator"] for case in json.loads(given.emulated.read_text())}
        counts = [held[case] for case in cases]
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            counts = list(pool.map(lambda case: emulated(kw, *case, given.gpu), cases))
    done = [{"op": op, "arguments": arguments, "emulator": c} for (op, arguments), c in zip(cases, counts, strict=True)]
    if given.emulate:
        given.emulate.write_text(json.dumps(done, indent=1) + "\n")
        return 0

    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin:/opt/nvidia/nsight-compute")
    if not ncu:
        sys.exit("access_ncu: there is no ncu here (NVIDIA Nsight Compute)")
    counters, skipped = known_counters(ncu), []
    for case in done:
        if time.monotonic() - start > given.seconds:
            skipped.append(f"{case['op']} {case['arguments']}")
            continue
        case["ncu"] = counted(ncu, kw, case["op"], case["arguments"], len(case["emulator"]), counters)
        print(f"{case['op']} {case['arguments']}", *compare(case), sep="\n", flush=True)
    for case in skipped:
        print(f"not begun, no time left: {case}")
    if given.json:
        asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpu = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        version = subprocess.run([ncu, "--version"], capture_output=True, text=True).stdout.strip().splitlines()[-1]
        given.json.write_text(json.dumps({
            "kind": "access_ncu", "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": " ".join(sys.argv), "commit": commit(), "machine": gpu, "ncu": version,
            "skipped": skipped, "cases": [case for case in done if "ncu" in case]}, indent=1) + "\n")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
