"""A stranger's CMake project (examples/cpp) builds and runs, against the build folder and against an install prefix."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))


def run(*command) -> str:
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("source", ["build folder", "install prefix"])
def test_find_package(tmp_path, source):
    prefix = BUILD
    if source == "install prefix":
        prefix = tmp_path / "with a space"
        run("cmake", "--install", BUILD, "--prefix", prefix)
    mine = tmp_path / "mine"
    run("cmake", "-S", ROOT / "examples/cpp", "-B", mine, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror -Wno-missing-field-initializers")
    run("cmake", "--build", mine)
    if source == "install prefix":  # nothing of this tree is needed at run time
        assert str(prefix) in run("ldd", mine / "norm")
    said = run(mine / "norm")
    assert "largest difference" in said and "weight has 999 elements" in said
    assert "7 14 21 28" in run(mine / "own_op")
