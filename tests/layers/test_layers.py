"""The tree keeps the house rules (rules.py), and each rule notices when it is broken."""
from pathlib import Path

import pytest
import rules

ROOT = Path(__file__).resolve().parents[2]


def test_this_tree_keeps_the_rules():
    found = rules.breaches(ROOT)
    assert not found, "\n".join(found)


def test_op_names_are_found():
    names = rules.op_names(ROOT)
    assert len(names) >= len(list((ROOT / "kw/ops").glob("*/"))) > 0
    assert any(name.endswith("_backward") for name in names)  # a contract's name, which no folder has


# A small tree without a fault, and the one line that breaks it: (file, what it then holds, part of the sentence).
CLEAN = {
    "kw/core/a.h": "#include <string>\n#include \"kw/core/b.h\"\n",
    "kw/device/row.cuh": "#include \"kw/device/types.cuh\"\n",
    "kw/cpu/a.cpp": "#include <dlfcn.h>\n#include \"kw/core/a.h\"\n",
    "kw/runtime/a.cpp": "#include <cuda.h>\n#include \"kw/core/a.h\"\n",
    "kw/ops/norm/norm.h": "#include \"faces/c/typed.h\"\n",
    "kw/ops/norm/norm.cpp": "#include \"kw/core/room.h\"\n"
    "#include \"kw/ops/norm/norm_inner.h\"\nauto c = R\"(norm(x: T[N])\n -> y: T[N])\";\n",
    "kw/ops/norm/norm.cuh": "#include \"kw/device/row.cuh\"\n#include \"kw/ops/norm/norm_shared.cuh\"\n",
    "kw/ops/norm/norm_test.cpp": "#include \"testing/expect.h\"\n",
    "kw/ops/other/other.cpp": "#include \"kw/ops/norm/norm.h\"\nauto c = R\"(other(x: T[N]) -> y: T[N])\";\n",
    "faces/c/a.cpp": "#include \"kw/runtime/dispatch.h\"\n",
    "tools/kw/a.cpp": "#include \"testing/inputs.h\"\n// enormous another_normal\n",
    "testing/a.h": "#include \"kw/core/op.h\"\n",
    "emulator/a.cpp": "#include \"emulator/clock.h\"\n#include <cuda.h>\n",
    "python/kernelwright/a.py": "import torch\n",
}
FAULTS = [
    ("kw/core/a.h", "\n#include <cuda.h>\n", "kw/core/a.h:2: includes cuda.h (core includes the standard library only"),
    ("kw/core/a.h", "#include \"kw/runtime/dispatch.h\"\n", "kw/core includes kw/core only"),
    ("kw/device/row.cuh", "#include <cuda_fp16.h>\n", "no header of the host"),
    ("kw/device/row.cuh", "#include \"kw/core/abi.h\"\n", "device code includes kw/device"),
    ("kw/cpu/a.cpp", "#include \"kw/runtime/dispatch.h\"\n", "kw/cpu includes"),
    ("kw/runtime/a.cpp", "#include \"kw/cpu/parallel.h\"\n", "kw/runtime includes"),
    ("kw/runtime/a.cpp", "#include \"kw/ops/norm/norm.h\"\n", "no layer knows a room"),
    ("kw/ops/norm/norm.cpp", "#include \"faces/c/typed.h\"\n", "kw/ops/norm includes"),
    ("kw/ops/norm/norm.cpp", "#include \"testing/expect.h\"\n", "kw/ops/norm includes"),
    ("kw/ops/norm/norm.cuh", "#include \"kw/ops/other/other.cuh\"\n", "its own room"),
    ("kw/ops/norm/norm.cuh", "#include \"kw/ops/norm/norm.h\"\n", "its own room"),
    ("kw/ops/other/other.cpp", "#include \"kw/ops/norm/norm_inner.h\"\n", "no layer knows a room"),
    ("faces/c/a.cpp", "#include \"testing/expect.h\"\n", "faces includes"),
    ("faces/c/a.cpp", "// as norm does\n", "faces/c/a.cpp:1: names the op norm"),
    ("tools/kw/a.cpp", "#include \"faces/c/kernelwright.h\"\n", "tools includes"),
    ("tools/kw/a.cpp", "call(\"other\");\n", "names the op other"),
    ("python/kernelwright/a.py", "def norm(x): pass\n", "names the op norm"),
    ("testing/a.h", "#include \"kw/runtime/dispatch.h\"\n", "testing includes"),
    ("emulator/a.cpp", "#include \"kw/core/abi.h\"\n", "emulator includes"),
    ("kw/runtime/a.cpp", "#include \"driver.h\"\n", "by paths from the root"),
    ("kw/runtime/a.cpp", "\n" * 401, "has 401 lines"),
    ("kw/ops/norm/norm_11.cpp", "\n", "has 15 files"),
]


def plant(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_a_clean_tree_is_clean(tmp_path):
    plant(tmp_path, CLEAN)
    assert rules.breaches(tmp_path) == []


@pytest.mark.parametrize("path, text, sentence", FAULTS)
def test_a_planted_fault_is_named(tmp_path, path, text, sentence):
    plant(tmp_path, CLEAN)
    if "files" in sentence:
        plant(tmp_path, {f"kw/ops/norm/norm_{i}.cpp": "\n" for i in range(10)})
    plant(tmp_path, {path: text})
    found = rules.breaches(tmp_path)
    assert len(found) == 1 and sentence in found[0], found
