"""What leaves the house: the shared library's size, symbols and needs, and that every header stands alone."""
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))
LIBRARY = BUILD / "libkernelwright.so"
FLAGS = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-I", str(ROOT)]


def output(*command) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def test_size(tmp_path):
    stripped = tmp_path / "library.so"
    output("strip", "-o", stripped, LIBRARY)
    assert stripped.stat().st_size <= 3_000_000  # three rooms in four dtypes for three instruction sets, without packs


def exported(library: Path) -> list[str]:
    return [line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()]


def test_only_c_crosses_the_border():
    names = exported(LIBRARY)
    assert "kw_run" in names and [name for name in names if not name.startswith("kw_")] == []


def test_no_framework_no_cuda_no_cpp_runtime_is_linked():
    needed = {line.split("[")[1].split("]")[0] for line in output("readelf", "-d", LIBRARY).splitlines() if "(NEEDED)" in line}
    assert needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


# emulator/device is text that the emulator's compiler puts before a kernel in a fixed order, no header of the host.
HEADERS = sorted(f for folder in ("kw", "faces", "testing", "tools", "emulator") for f in (ROOT / folder).rglob("*.h")
                 if (ROOT / "emulator/device") not in f.parents)


def cuda_include() -> str:
    return next(line.split("=", 1)[1].strip() for line in (BUILD / "CMakeCache.txt").read_text().splitlines() if
                line.startswith("KW_CUDA_INCLUDE:"))


def compile_alone(text: str, language: str = "c++", standard: str = "c++20") -> str:
    command = [os.environ.get("CXX", "g++"), f"-x{language}", f"-std={standard}", "-fsyntax-only", *FLAGS, "-isystem", cuda_include(), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True).stderr


def test_every_header_compiles_alone_and_twice():
    def problem(header: Path) -> str:
        # A text that is meant to be read several times is a .inc, not a header.
        include = f'#include "{header.relative_to(ROOT)}"\n'
        return compile_alone(include + include)

    assert len(HEADERS) > 10
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [f"{header}: {text[:400]}" for header, text in zip(HEADERS, pool.map(problem, HEADERS)) if text]
    assert not found, "\n".join(found)


def test_a_header_that_leans_on_another_is_noticed():
    assert "string" in compile_alone("inline std::string f();\n")


@pytest.mark.parametrize("standard", ["c11", "c17"])
def test_the_c_face_is_c(standard):
    assert compile_alone('#include "faces/c/kernelwright.h"\n', "c", standard) == ""
