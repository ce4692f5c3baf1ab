"""A folder below kw/ops is the whole registration: deleting one removes its ops from every face, adding one adds them.

No other file is touched. Works on a copy of the tree with a build folder of its own, without optimisation.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("kw", "emulator", "faces", "python", "tools", "testing", "cmake")


class Tree:
    """A copy of the sources and its build."""

    def __init__(self, root: Path):
        self.root, self.build = root, root / "build"
        for folder in FOLDERS:
            if (ROOT / folder).exists():
                shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*_test.cpp"))
        shutil.copy(ROOT / "CMakeLists.txt", root)
        if (ROOT / ".venv").exists():
            (root / ".venv").symlink_to((ROOT / ".venv").resolve())  # the CUDA headers may be there

    def make(self) -> None:
        if not (self.build / "build.ninja").exists():
            options = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0 -DKW_ONLY_BASELINE"]
            self.run("cmake", "-S", self.root, "-B", self.build, "-G", "Ninja", *options)
        self.run("cmake", "--build", self.build, "-j", os.cpu_count())

    def run(self, *command, ok: bool = True, **environment: str) -> str:
        environment = dict(os.environ, PYTHONPATH=str(self.build / "python"), PYTHONDONTWRITEBYTECODE="1", **environment)
        done = subprocess.run([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert not ok or done.returncode == 0, done.stdout
        return done.stdout

    def ops(self) -> set[str]:
        return {op["name"] for op in json.loads(self.run(self.build / "kw", "list", "--json"))["ops"]}

    def python(self, text: str, ok: bool = True) -> str:
        return self.run(sys.executable, "-c", text, ok=ok)


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Tree:
    return Tree(tmp_path_factory.mktemp("rooms") / "tree")


def names_in_torch(tree: Tree) -> set[str]:
    return set(tree.python("import torch, kernelwright.torch as kt\n"
                           "print(*[n for n in ('rms_norm', 'swiglu', 'swiglu_backward', 'axpby') "
                           "if hasattr(kt, n) and hasattr(torch.ops.kernelwright, n)])").split())


def test_one_room_goes_and_one_comes(tree):
    shutil.rmtree(tree.root / "kw/ops/swiglu")
    shutil.copytree(ROOT / "examples/rooms/axpby", tree.root / "kw/ops/axpby")
    tree.make()
    assert {"axpby", "rms_norm"} <= tree.ops() and not {"swiglu", "swiglu_backward"} & tree.ops()
    assert names_in_torch(tree) == {"rms_norm", "axpby"}
    # The C face, without any framework.
    assert tree.python("import ctypes, sys\n"
                       f"kw = ctypes.CDLL({str(tree.build / 'libkernelwright.so')!r})\n"
                       "kw.kw_op_find.restype = ctypes.c_void_p\n"
                       "print(bool(kw.kw_op_find(b'axpby')), bool(kw.kw_op_find(b'swiglu')))").split() == ["True", "False"]


def test_the_new_op_computes(tree):
    assert tree.python("import torch, kernelwright.torch as kt\n"
                       "x, y = torch.randn(5, 7), torch.randn(5, 7)\n"
                       "torch.testing.assert_close(kt.axpby(x, y, a=2.0, b=-1.0), 2 * x - y)\n"
                       "print('equal')").strip() == "equal"
    assert "axpby" in tree.run(tree.build / "kw", "check", "axpby", "--device", "cpu")
    assert "axpby" in tree.run(tree.build / "kw", "check", "axpby", "--device", "emulate")


def test_back_again_in_the_same_build_folder(tree):
    shutil.rmtree(tree.root / "kw/ops/axpby")
    shutil.copytree(ROOT / "kw/ops/swiglu", tree.root / "kw/ops/swiglu", ignore=shutil.ignore_patterns("__pycache__", "*_test.cpp"))
    tree.make()
    assert {"swiglu", "swiglu_backward"} <= tree.ops() and "axpby" not in tree.ops()
    assert {"rms_norm", "swiglu"} <= names_in_torch(tree) and "axpby" not in names_in_torch(tree)


def included_from(root: Path, path: str) -> set[str]:
    """The device files that `path` includes, and those that they include."""
    found, todo = set(), [path]
    while todo:
        for name in re.findall(r'#include "([^"]+)"', (root / todo.pop()).read_text()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def test_an_edit_of_a_device_word_is_seen_with_a_warm_cache(tree, tmp_path):
    """A cache that was filled from the words as they were does not hide what they are now."""
    kernels = tmp_path / "kernels"
    shutil.copytree(ROOT / "kw", kernels / "kw", ignore=shutil.ignore_patterns("*.cpp", "*.h"))
    (tmp_path / "cache").mkdir(mode=0o700)
    settings = {"KW_KERNEL_PATH": str(kernels), "KW_CACHE_DIR": str(tmp_path / "cache")}
    check = (tree.build / "kw", "check", "rms_norm", "rms_norm_backward", "--device", "emulate", "--quick")  # all words, together
    tree.run(*check, **settings)
    tree.run(*check, **settings)  # warm
    words = [f for f in included_from(kernels, "kw/ops/rms_norm/rms_norm.cuh") if f.startswith("kw/device/")]
    assert len(words) > 2
    for word in (kernels / path for path in words):
        text = word.read_text()
        word.write_text(text + "\n#error an edit of this word\n")
        assert "an edit of this word" in tree.run(*check, ok=False, **settings), word.name
        word.write_text(text)
    tree.run(*check, **settings)
