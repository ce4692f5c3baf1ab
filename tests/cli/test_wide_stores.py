"""Kernels for rows aligned to 16 bytes store 16 bytes at once. The emulator sees the source's accesses; what the compiler makes of them
shows in PTX alone: it once split every store of the cluster tiles into four, which took 20-40 % of the copy rate (H200, 2026-12-01)."""

import ctypes
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))


def ops() -> list[str]:
    listed = subprocess.run([BUILD / "kw", "list", "--json"], capture_output=True, text=True, check=True).stdout
    return [op["name"] for op in json.loads(listed)["ops"]]


def nvrtc():
    found = subprocess.run([BUILD / "kw", "doctor"], capture_output=True, text=True, check=False).stdout
    path = re.search(r"^nvrtc +ok .*?(/\S+libnvrtc\.so\S*)", found, re.M)
    return ctypes.CDLL(path[1].rstrip(",")) if path else None


def ptx(library, tree: Path, launch: dict) -> str:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = f'#include "{launch["source"]}"\n'.encode()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None) == 0
    assert library.nvrtcAddNameExpression(program, launch["kernel"].encode()) == 0
    options = [b"--gpu-architecture=compute_90", b"-I" + str(tree).encode(), b"--std=c++20", b"--fmad=false"]
    assert library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)) == 0
    assert library.nvrtcGetPTXSize(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert library.nvrtcGetPTX(program, text) == 0
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode()


def narrow_stores(text: str) -> int:
    stores = re.findall(r"\bst\.global(?:\.v([24]))?\.[a-z]+(\d+)", text)
    return sum(int(count or 1) * int(bits) < 128 for count, bits in stores)


@pytest.fixture(scope="module")
def launches() -> dict:
    """One launch of each kind of kernel and tile (single block, cluster) whose rows are aligned, from the rooms' bench cases."""
    chosen, names = {}, ops()
    for bench in sorted((ROOT / "kw" / "ops").glob("*/*_bench.h")):
        for case in re.findall(r'\{"([^"]+)"', bench.read_text()):
            for op in names:
                arguments = [x for word in case.split() for x in ("--arg", word)]
                found = subprocess.run(
                    [BUILD / "kw", "plan", op, *arguments, "--gpu", "h200", "--json"], capture_output=True, text=True, check=False
                )
                if found.returncode:
                    continue
                for launch in json.loads(found.stdout)[0]["launches"]:
                    tile = re.search(r"RowTile<([\d, ]+)>", launch["kernel"])
                    if not tile or tile[1].split(", ")[4] != "16":
                        continue
                    kind = launch["kernel"].split("<")[0], len(tile[1].split(", ")) > 5, "float" in launch["kernel"]
                    chosen.setdefault(kind, launch)
    return chosen


@pytest.fixture(scope="module")
def library():
    found = nvrtc()
    assert found, "there is no NVRTC here, which make setup installs"
    return found


def test_rows_are_stored_by_16_bytes(library, launches):
    assert len(launches) >= 12 and any(kind[1] for kind in launches)
    # A result of a row (the loss, the gradient of the target) is stored alone, once or twice in the code.
    narrow = {launch["kernel"]: narrow_stores(ptx(library, ROOT, launch)) for launch in launches.values()}
    assert {kernel: count for kernel, count in narrow.items() if count > 2} == {}


def test_a_split_store_is_seen(library, launches, tmp_path, monkeypatch):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "kw", tree / "kw")
    words = tree / "kw" / "device" / "vector.cuh"
    words.write_text(words.read_text().replace("if constexpr (bytes == 16) {", "if constexpr (bytes == 1) {"))
    monkeypatch.chdir(tree)  # NVRTC looks there before -I
    assert max(narrow_stores(ptx(library, tree, launch)) for kind, launch in launches.items() if kind[1]) > 2
