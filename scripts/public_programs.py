#!/usr/bin/env python3
"""Runs public CUDA programs in the emulator, unmodified but for sizes that are cut.

    public_programs.py list  --from CHECKOUT             chooses the programs by the rule below and writes the list
    public_programs.py run   --from CHECKOUT [NAME...]   builds and runs them (all, or the named ones); results go into RESULTS
    public_programs.py table                             writes docs/public-programs.md from the results

CHECKOUT is a checkout of HeCBench (github.com/zjin-lcf/HeCBench) at COMMIT. Nothing of it enters this repository.

The rule of choice, fixed before the first run: of the folders src/*-cuda in alphabetical order every third (the first, the fourth, ...)
that
- has a Makefile whose target `run` shows, by `make -n -B run`, which sources are compiled and how the program is called, all there,
- uses no CUDA library but cuBLAS and cuRAND, no thrust, CUB or textures (FOREIGN, a search of its files),
- is called with numbers, flags, and files that are in its folder;
the first 60 of these.

Arguments are cut by one rule, because a program for a GPU does more work than a processor can in a minute: the number of repetitions (by
the program's own usage line, else the last of several numbers) becomes 1; of the other numbers those above 256 become at most 65536 if
there is one, 256 if there are two, 64 if there are more; after a time-out all above 16 are divided by 4 (16 stay), at most twice. LIMIT_S
is processor time.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMIT = "f27000a5"
LIST = ROOT / "benchmarks" / "public_programs.json"
RESULTS = ROOT / "benchmarks" / "results" / "public-programs.json"
PAGE = ROOT / "docs" / "public-programs.md"
KW = Path(os.environ.get("KW_BUILD", ROOT / "build")).resolve() / "kw"
LIMIT_S = int(os.environ.get("KW_LIMIT_S", 60))
MOST_MEMORY = 6 << 30
FOREIGN = re.compile(
    r"#\s*include\s*[<\"](cub/|thrust/|cusparse|cufft|cusolver|cudnn|nccl|mpi\.|cutlass|cute/|nvrtc|nvtx|nvToolsExt|nvml|npp|nvshmem"
    r"|cublasLt|cublasXt|cudss|cutensor|nvjpeg|nvgraph|texture_|mma\.h|cudaProfiler|nvcomp|rmm/|raft/|cuco/)"
    r"|\btexture\s*<|\bcudaTextureObject_t\b|\bcudaSurfaceObject_t\b|\btex[123]D(Layered|fetch)?\b|\btex1Dfetch\b"
)
# Sizes that stand in the sources, cut by hand where the published ones take more than LIMIT_S or MOST_MEMORY: --set NAME=VALUE.
SIZES = {
    "atomicCost": {"length": "122880"},
    "atomicReduction": {"arrayLength": "65536"},
    "binomial": {"NUM_STEPS": "256", "MAX_OPTIONS": "16", "NUM_ITERATIONS": "1"},
    "bitpacking": {},
    "blas-gemmBatched": {"num": "100"},
    "blas-gemmStridedBatched": {"num": "100"},
    "bspline-vgh": {"WSIZE": "60", "NSIZE": "67", "cNSIZE": "67"},
    "feynman-kac": {"N": "4"},
    "fresnel": {"interval": "1e-4"},
    "graphExecution": {"size": "600"},
    "grrt": {"IMAGE_SIZE": "8"},
    "hmm": {"nState": "256", "nEmit": "256"},
    "idivide": {"divisor_count": "2", "divident_count": "1000"},
    "lda": {"num_topics": "50", "num_iters": "2"},
}
SOURCE = (".cu", ".cpp", ".cc", ".c", ".cxx")


def make_run(folder):
    """The commands of `make -n -B run`, split into words; None when make does not know how."""
    done = subprocess.run(["make", "-n", "-B", "run"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return None
    text = done.stdout.replace("\\\n", " ")
    try:
        return [shlex.split(line, comments=True) for line in text.splitlines()]
    except ValueError:
        return None


def described(folder):
    """What the Makefile says of a program: sources, include folders, macros, standard, arguments. Or a sentence why not."""
    commands = make_run(folder)
    if commands is None:
        return "make -n run fails"
    sources, dirs, macros, standard, libraries, call = [], [], [], None, [], None
    for words in commands:
        if not words:
            continue
        compiles = os.path.basename(words[0]) in ("nvcc", "g++", "gcc", "cc", "c++") and not words[0].startswith("./")
        if not compiles:
            while words and "=" in words[0]:
                words = words[1:]
            if words and words[0].startswith("./") and call is None:
                call = words
            continue
        at = 1
        while at < len(words):
            w = words[at]
            if w in ("-I", "-D", "-o", "-Xcompiler", "-Xptxas", "-arch", "-gencode", "-x", "-isystem", "-rdc", "-L", "-MF", "-MT"):
                value = words[at + 1] if at + 1 < len(words) else ""
                (dirs if w in ("-I", "-isystem") else macros if w == "-D" else []).append(value)
                at += 2
                continue
            if w.startswith("-I"):
                dirs.append(w[2:])
            elif w.startswith("-D"):
                macros.append(w[2:])
            elif w.startswith(("-std=", "--std=")):
                standard = re.sub(r"\D", "", w.split("=")[1])
            elif w.startswith("-l"):
                libraries.append(w[2:])
            elif w.endswith(SOURCE) and w not in sources:
                sources.append(w)
            at += 1
    if call is None:
        return "the run target calls no program"
    if not sources or not all((folder / s).is_file() for s in sources):
        return "sources are missing"
    for library in libraries:
        if library not in ("cublas", "curand", "cudart", "m", "cuda", "stdc++", "pthread"):
            return "library " + library
    redirect = next((i for i, w in enumerate(call) if w in (">", "<", "|", ">>", "2>&1", "&&", ";")), len(call))
    for word in call[1:redirect]:
        number_or_flag = re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?|-{1,2}[A-Za-z][\w=.-]*|[A-Za-z]+", word)
        if not number_or_flag and not (folder / word).is_file() and not word.endswith((".raw", ".out", ".txt", ".bmp", ".ppm", ".pgm")):
            return "argument " + word
        if not number_or_flag and not (folder / word).is_file() and word not in call[2:redirect]:
            return "no file " + word
    used = [folder / s for s in sources]
    for place in [folder, *(folder / d for d in set(dirs))]:
        used += [p for p in place.glob("*") if p.suffix in (".h", ".hpp", ".cuh", ".inl", ".inc")]
    for path in used:
        found = FOREIGN.search(path.read_text(errors="replace")) if path.is_file() else None
        if found:
            return "uses " + " ".join(found.group(0).split())
    keep = lambda items: list(dict.fromkeys(items))
    return {"sources": sources, "dirs": keep(dirs), "macros": keep(macros), "standard": standard, "arguments": call[1:redirect]}


def choose(args):
    folders = sorted(p for p in (args.checkout / "src").glob("*-cuda") if p.is_dir())
    programs, left_out = [], {}
    for folder in folders[args.offset :: 3]:
        if len(programs) == args.count:
            break
        name, what = folder.name.removesuffix("-cuda"), described(folder)
        if isinstance(what, str):
            left_out[name] = what
        else:
            programs.append({"name": name, **what, **({"set": SIZES[name]} if SIZES.get(name) else {})})
    args.list.write_text(
        json.dumps({"commit": COMMIT, "programs": programs, "left_out": left_out}, indent=1)
        .replace("\n    ", " ")
        .replace("\n   ]", "]")
        + "\n"
    )
    print(f"{len(programs)} programs, {len(left_out)} left out on the way")


def cut(arguments, usage, level):
    """The arguments with which a program is run: see the rule above."""
    integers = [i for i, a in enumerate(arguments) if re.fullmatch(r"\d+", a)]
    named = re.findall(r"<([^>]*)>", usage)
    repeats = [i for i, name in enumerate(named) if re.search(r"repeat|iter", name, re.I) and len(named) == len(arguments)]
    repeat = repeats[0] if repeats and repeats[0] in integers else integers[-1] if len(integers) > 1 else None
    big = [i for i in integers if i != repeat and int(arguments[i]) > 256]
    most = {0: 0, 1: 65536, 2: 256}.get(len(big), 64)
    out = list(arguments)
    for i in integers:
        value = 1 if i == repeat else min(int(arguments[i]), most) if i in big else int(arguments[i])
        for _ in range(level):
            value = max(value // 4, 16) if value > 16 else value
        out[i] = str(value)
    return out


def usage_of(folder, sources):
    text = "".join((folder / s).read_text(errors="replace") for s in sources)
    at = re.search(r"usage", text, re.I)
    return "".join(re.findall(r'"([^"]*)"', text[at.start() - 12 : at.start() + 400].split(";")[0])) if at else ""


GOOD = re.compile(
    r"\bpass(ed)?\b|\bsuccess(ful|fully)?\b|\bcorrect\b|\bok\b|\bverified\b|\bno (errors|mismatch)|results? match|\bvalid\b", re.I
)
BAD = re.compile(r"\bfail(ed|ure|s)?\b|\bmismatch|\bincorrect\b|\binvalid\b|\bwrong\b|\bnan\b|results? (do not|don't|differ)", re.I)


TICKS = os.sysconf("SC_CLK_TCK")


def used(session):
    """Bytes of memory of all processes of a session, and processor seconds of the program itself (not of the compiler)."""
    memory, seconds = 0, 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat_text = stat.read_text()
            fields = stat_text.rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[3] == str(session):
            memory += int(fields[21]) * 4096
            if "(kw)" in stat_text:
                seconds = max(seconds, (int(fields[11]) + int(fields[12])) / TICKS)
    return memory, seconds


def attempt(program, folder, level, extra):
    arguments = cut(program["arguments"], usage_of(folder, program["sources"]), level)
    report = Path(tempfile.gettempdir()) / f"public-{program['name']}.json"
    report.unlink(missing_ok=True)
    command = [str(KW), "emulate", *program["sources"], "--json", str(report), *extra]
    for d in program["dirs"]:
        command += ["-I", d]
    for m in program["macros"]:
        command += ["-D", m]
    if program["standard"]:
        command += ["--std", program["standard"]]
    for name, value in program.get("set", {}).items():
        command += ["--set", f"{name}={value}"]
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        # A session of its own: what the program started ends with it.
        child = subprocess.Popen([*command, "--", *arguments], cwd=folder, stdout=out, stderr=err, start_new_session=True)
        while (status := child.poll()) is None:
            time.sleep(0.2)
            memory, seconds = used(child.pid)
            if time.monotonic() - begin > 8 * LIMIT_S or seconds > LIMIT_S or memory > MOST_MEMORY:
                os.killpg(child.pid, signal.SIGKILL)
                status = child.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read()[-6000:])
    found = json.loads(report.read_text()) if report.is_file() else None
    return {
        "arguments": arguments,
        "built": found is not None or status < 0,
        "status": found["exit_status"] if found else 137 if status < 0 else status,
        "seconds": round(time.monotonic() - begin, 1),
        "out": texts[0],
        "err": texts[1],
        "findings": [{k: f[k] for k in ("severity", "kind", "kernel", "at", "what")} for f in found["findings"]] if found else [],
    }


def one(program, checkout, extra):
    folder = checkout / "src" / (program["name"] + "-cuda")
    for level in range(3):
        result = attempt(program, folder, level, extra)
        if result["status"] not in (137, 152) or not program["arguments"]:
            break
    out, status = result.pop("out", ""), result["status"]
    err = result.pop("err", "")
    result["ended"] = "not built" if not result["built"] else "time-out" if status in (137, 152) else (
        "missing function" if status == 72 else f"signal {status - 128}" if status > 128 else "ran"
    )
    bad = [w.group(0) for w in BAD.finditer(out)]
    result["check"] = "failed" if bad else "passed" if GOOD.search(out) else "none"
    return {"name": program["name"], **result}, out, err


def run(args):
    chosen = json.loads(args.list.read_text())["programs"]
    results = {r["name"]: r for r in json.loads(args.results.read_text())["programs"]} if args.results.is_file() else {}
    args.logs.mkdir(parents=True, exist_ok=True)
    for program in chosen:
        if args.names and program["name"] not in args.names:
            continue
        result, out, err = one(program, args.checkout, args.extra)
        results[program["name"]] = result
        (args.logs / program["name"]).write_text(f"{out}\n---- stderr\n{err}\n")
        kinds = sorted({f["kind"] for f in result["findings"]})
        line = f"{program['name']:28} {result['ended']:12} check {result['check']:7} {result['seconds']:6} s"
        print(f"{line}  {' '.join(result['arguments'])}  {kinds}", flush=True)
        ordered = [results[p["name"]] for p in chosen if p["name"] in results]
        args.results.write_text(json.dumps({"commit": COMMIT, "programs": ordered}, indent=1) + "\n")


def table(args):
    """docs/public-programs.md: one line a program, in the order of the list."""
    chosen = json.loads(args.list.read_text())["programs"]
    done = json.loads(args.results.read_text())
    results = {r["name"]: r for r in done["programs"]}
    ran = [r for r in results.values() if r["ended"] == "ran"]
    lines = [
        "# Public programs in the emulator",
        "",
        f"HeCBench at {COMMIT}; the names of the {len(chosen)} were committed before the first run, by the rule in",
        "`scripts/public_programs.py`; its rule for cutting arguments and the sizes that it cuts in sources by hand came after, when",
        f"programs had run out of time or memory. Written by `scripts/public_programs.py table`. {done.get('note', '')}",
        "",
        f"Of {len(results)} tried {sum(r['built'] for r in results.values())} were built and {len(ran)} ran to their end; of these "
        f"{sum(r['check'] == 'passed' for r in ran)} said that their own check passed, "
        f"{sum(r['check'] == 'failed' for r in ran)} that it failed; the others print no verdict that the script knows.",
        "",
        "| program | arguments | ended | own check | findings |",
        "|---|---|---|---|---|",
    ]
    for program in chosen:
        r = results.get(program["name"])
        if not r:
            lines.append(f"| {program['name']} | | not tried | | |")
            continue
        kinds = [f"{f['kind']} {f['at']}".strip() for f in r["findings"][:3]]
        more = f" and {len(r['findings']) - 3} more" if len(r["findings"]) > 3 else ""
        lines.append(f"| {r['name']} | {' '.join(r['arguments'])} | {r['ended']} | {r['check']} | {'; '.join(kinds)}{more} |")
    PAGE.write_text("\n".join(lines) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--from", dest="checkout", type=Path)
    p.add_argument("--list", type=Path, default=LIST)
    p.add_argument("--offset", type=int, default=0)
    p.add_argument("--count", type=int, default=60)
    p.add_argument("--results", type=Path, default=RESULTS)
    p.add_argument("--logs", type=Path, default=Path(tempfile.gettempdir()) / "public-programs")
    p.add_argument("--extra", nargs="*", default=[], help="more options of kw emulate, as --schedule=greedy")
    p.add_argument("verb", choices=["list", "run", "table"])
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    {"list": choose, "run": run, "table": table}[args.verb](args)


if __name__ == "__main__":
    main()
