"""Formatting, clang-tidy and a small check of the Python files. `--format` formats the C++ and CUDA sources in place instead."""
import argparse
import ast
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("kw", "emulator", "faces", "python", "tools", "testing", "tests", "benchmarks", "examples", "scripts")
COLUMNS = 140
# The pinned tools lie beside the Python of .venv, also where that is not on the PATH.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def files(*endings: str) -> list[Path]:
    return sorted(f for folder in FOLDERS for f in (ROOT / folder).rglob("*") if f.suffix in endings and f.is_file())


def check_format() -> int:
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *files(".h", ".cpp", ".cuh")], capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line})
    if wrong:
        print("\n".join(wrong) + "\nare not formatted: make format mends it")
    elif done.returncode:
        print(done.stderr)
    return done.returncode


def check_tidy(build: Path, jobs: int) -> int:
    """clang-tidy over the sources of the library and its tools, as compile_commands.json lists them; not over tests or generated files."""
    commands = json.loads((build / "compile_commands.json").read_text())
    own = {str(ROOT / folder) + os.sep for folder in ("kw", "emulator", "faces", "tools", "testing")}
    sources = sorted({c["file"] for c in commands if any(c["file"].startswith(p) for p in own) and not c["file"].endswith("_test.cpp")})
    sources.sort(key=lambda f: -os.path.getsize(f))  # the long ones first: the last to finish is a short one

    def tidy(source: str) -> tuple[int, str]:
        done = subprocess.run(["clang-tidy", "-p", build, "--quiet", "--warnings-as-errors=*", source], capture_output=True, text=True)
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(tidy, sources))
    for status, output in results:
        if status:
            print(output)
    print(f"clang-tidy: {len(sources)} files")
    return any(status for status, _ in results) or not sources


def check_python() -> int:
    """Every file parses, no name is imported for nothing, no line is longer than the limit or ends in a space."""
    problems = []
    for file in files(".py"):
        text = file.read_text()
        try:
            tree = ast.parse(text, str(file))
        except SyntaxError as error:
            problems.append(f"{file}:{error.lineno}: {error.msg}")
            continue
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        exported = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)) and file.name != "__init__.py":
                for alias in node.names:
                    name = (alias.asname or alias.name).split(".")[0]
                    if name not in used | exported and name not in ("*", "annotations"):
                        problems.append(f"{file}:{node.lineno}: '{name}' is imported and never used")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS or line != line.rstrip() or "\t" in line:
                problems.append(f"{file}:{number}: longer than {COLUMNS} columns, a tab, or a space at the end")
    print("\n".join(problems))
    return bool(problems)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", type=Path, default=Path("build"))
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--only", choices=("format", "tidy", "python"))
    options.add_argument("--format", action="store_true")
    given = options.parse_args()
    if given.format:
        return subprocess.run(["clang-format", "-i", *files(".h", ".cpp", ".cuh")]).returncode
    checks = {"format": check_format, "tidy": lambda: check_tidy((ROOT / given.build).resolve(), given.jobs), "python": check_python}
    status = 0
    for name in [given.only] if given.only else checks:
        failed = checks[name]()
        print(f"{name}: {'failed' if failed else 'ok'}")
        status |= bool(failed)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
