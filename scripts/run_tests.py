"""Runs every part of `make test`, prints one line for each, and ends with the sums: `N passed, N failed`.

A part's own output is shown when something in it failed, and always lies in <build>/test-logs/. Skipped tests are counted apart.
"""
import argparse
import ctypes
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import sources

ROOT = Path(__file__).resolve().parent.parent
FULL_RUN = ROOT / "benchmarks" / "results" / "test-full.json"
PART_LIMIT = 900  # seconds; a part that hangs fails, it does not hold up the rest


class Runner:
    def __init__(self, build: Path, jobs: int, full: bool):
        self.build, self.jobs = build, jobs
        self.logs = build / "test-logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.passed = self.failed = self.skipped = 0
        self.parts: list[dict] = []
        self.environment = dict(os.environ, KW_BUILD=str(build), KW_SOURCE_DIR=str(ROOT), PYTHONPATH=str(build / "python"),
                                VIRTUAL_ENV=sys.prefix, PYTHONDONTWRITEBYTECODE="1")
        if full:
            self.environment["KW_FULL"] = "1"

    def part(self, name: str, *commands: list, junit: bool = False, limit: int = PART_LIMIT, environment: dict | None = None) -> bool:
        """Runs the commands in turn. With `junit` the last one counts its own tests, else each command is one test."""
        print(f"{name:<28}", end="", flush=True)
        start, log, report = time.monotonic(), self.logs / f"{name.replace('/', '-')}.log", self.logs / f"{name.replace('/', '-')}.xml"
        report.unlink(missing_ok=True)
        passed = failed = skipped = 0
        with open(log, "w", errors="replace") as out:
            for position, words in enumerate(commands, 1):
                last = position == len(commands)
                command = [str(word).replace("{junit}", str(report)) for word in words]
                out.write(f"$ {' '.join(command)}\n")
                out.flush()
                try:
                    ok = subprocess.run(command, cwd=ROOT, env=environment or self.environment, stdout=out, stderr=subprocess.STDOUT,
                                        timeout=limit).returncode == 0
                except subprocess.TimeoutExpired:
                    ok = False
                    out.write(f"stopped after {limit} s\n")
                except OSError as error:
                    ok = False
                    out.write(f"{error}\n")
                if junit and last:
                    passed, failed, skipped = count(report)
                    failed += not ok and not failed  # ended badly with no failing test: a crash, or nothing was collected
                elif not junit or not ok:
                    passed, failed = passed + ok, failed + (not ok)
                if junit and not ok:
                    break  # what follows needs it
        note = f", {skipped} skipped" if skipped else ""
        print(f"{passed:5} passed  {failed:3} failed  {time.monotonic() - start:7.1f} s{note}", flush=True)
        if failed:
            for line in log.read_text(errors="replace").splitlines()[-300:]:
                print("    " + line)
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
        self.parts.append({"part": name, "passed": passed, "failed": failed, "skipped": skipped,
                           "seconds": round(time.monotonic() - start, 1)})
        return not failed

    def ctest(self, build: Path) -> list:
        return ["ctest", "--test-dir", build, "-j", self.jobs, "--timeout", 120, "--output-on-failure", "--no-tests=error",
                "--output-junit", "{junit}"]

    def pytest(self, folder: Path, *more: str) -> list:
        return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", "{junit}", folder, *more]

    def finish(self) -> int:
        if self.skipped:
            print(f"({self.skipped} skipped)")
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def keep_full_run(run: Runner) -> None:
    """The record of `make test-full`, to be committed: what ran, and the hash of the sources that it covered."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()}
    FULL_RUN.write_text(json.dumps({"date": now, "command": "make test-full", "machine": machine, "sources": sources.digest(),
                                    "passed": run.passed, "failed": run.failed, "parts": run.parts}, indent=1) + "\n")
    print(f"wrote {FULL_RUN.relative_to(ROOT)}")


def say_when_stale() -> None:
    """The long tests are not part of `make test`: say so when the last full run was of other sources."""
    held = json.loads(FULL_RUN.read_text()) if FULL_RUN.exists() else None
    if held is None:
        print("no full run is on record: run `make test-full` and commit its record")
    elif held["sources"] != sources.digest():
        print(f"the full run on record ({held['date']}) covered other sources: run `make test-full` again and commit its record")
    elif held["failed"]:
        print(f"the full run on record ({held['date']}) had {held['failed']} failures")


def count(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of a JUnit file, whoever wrote it."""
    if not report.exists():
        return 0, 0, 0
    passed = failed = skipped = 0
    for case in xml.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def test(run: Runner, full: bool) -> None:
    run.part("C++", run.ctest(run.build), junit=True)
    for folder in sorted({file.parent for file in (ROOT / "tests").glob("**/test_*.py")}):
        run.part(f"tests/{folder.relative_to(ROOT / 'tests')}", run.pytest(folder), junit=True)
    # The sanitizers watch the host code: contract, binding, C face, caches, CPU kernels. Kernels have the emulator for that, and its own
    # instrumentation does not go together with theirs.
    asan = run.build.parent / f"{run.build.name}-asan"
    configure = ["cmake", "-S", ROOT, "-B", asan, "-G", "Ninja", "--log-level=WARNING", "-DKW_SANITIZE=address,undefined"]
    run.part("C++, sanitizers", configure, ["cmake", "--build", asan, "-j", run.jobs, "--target", "sanitizer_tests"], run.ctest(asan),
             junit=True)
    run.part("lint", [sys.executable, "scripts/lint.py", "--build", run.build, "--jobs", run.jobs, "--only", "format"],
             [sys.executable, "scripts/lint.py", "--build", run.build, "--jobs", run.jobs, "--only", "tidy"],
             [sys.executable, "scripts/lint.py", "--only", "python"], [sys.executable, "scripts/bench_table.py", "--check"])
    if full:
        run.part("check on the CPU", [run.build / "kw", "check", "--device", "cpu"])
        run.part("check on the emulator", [run.build / "kw", "check", "--device", "emulate"], limit=3600)
        older = dict(run.environment, KWEMU_ARCH="75")
        run.part("check on the emulator, sm_75", [run.build / "kw", "check", "--device", "emulate", "--quick"], limit=3600,
                 environment=older)
        run.part("planted bugs", [run.build / "kw", "mutate", "--jobs", run.jobs, "--record", run.build / "planted-bugs.txt"],
                 limit=3 * 3600)
        run.part("demo", [sys.executable, "examples/train_llama.py", "--device", "cpu", "--out", run.build / "demo"])


def gpu_test(run: Runner) -> None:
    """Needs a GPU, a build folder and this Python with torch; no network, no set-up."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        sys.exit("gpu-test: this machine has no NVIDIA driver (libcuda.so.1), so there is nothing to test here")
    kw = run.build / "kw"
    run.part("doctor", [kw, "doctor"])
    run.part("check on the GPU", [kw, "check", "--device", "cuda"])
    run.part("device words on the GPU", [run.build / "device_words_test"])
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    for tool in ("memcheck", "racecheck"):
        watched = [kw, "check", "--device", "cuda", "--quick"]
        run.part(f"compute-sanitizer {tool}", [sanitizer, "--tool", tool, "--error-exitcode", 9, *watched])
    run.part("tests/torch on the GPU", run.pytest(ROOT / "tests" / "torch"), junit=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", type=Path, default=ROOT / "build")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--full", action="store_true", help="long versions of the tests (KW_FULL=1)")
    options.add_argument("--gpu", action="store_true", help="what needs a GPU, instead of the rest")
    given = options.parse_args()
    run = Runner((ROOT / given.build).resolve(), given.jobs, given.full)
    if given.gpu:
        gpu_test(run)
    else:
        test(run, given.full)
    if given.full:
        keep_full_run(run)
    elif not given.gpu:
        say_when_stale()
    return run.finish()


if __name__ == "__main__":
    sys.exit(main())
