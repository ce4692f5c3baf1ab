"""The wheel: made from the build folder that there is, installed into clean environments, used with this tree out of sight. With KW_FULL=1
also `pip install .` as a stranger does it: a clone, an isolated build, the clone renamed."""
import base64
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))
PACKAGES = next(Path(p) for p in sys.path if (Path(p) / "torch").is_dir())  # of .venv
sys.path.insert(0, str(ROOT / "scripts"))
import wheels  # noqa: E402


def run(*command, status=0, **more) -> str:
    done = subprocess.run([str(w) for w in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=800, **more)
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def hidden(folder: Path = ROOT) -> list[str]:
    """What to put before a command so that it finds this tree (or another folder) empty. Where the kernel does not allow that, nothing;
    test_no_file_knows_this_tree holds all the same."""
    try:
        subprocess.run(["unshare", "-rm", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder)]


class Environment:
    """A virtual environment with the wheel in it, and nothing of this process's own environment."""

    def __init__(self, folder: Path, wheel: Path):
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-deps", "--no-index", wheel)
        self.enter(folder)

    def enter(self, folder: Path):
        self.folder, self.python = folder, folder / "bin/python"
        self.site = next((folder / "lib").glob("python3*/site-packages"))
        home = folder / "home"
        home.mkdir()
        self.environment = {"HOME": str(home), "PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin", "OMP_NUM_THREADS": "2"}

    def kw(self, *words, status=0, hide=()):
        return run(*hide, self.folder / "bin/kw", *words, status=status, env=self.environment, cwd=self.folder / "home")

    def run_python(self, code: str, status=0, **more):
        return run(self.python, "-c", code, status=status, env={**self.environment, **more}, cwd=self.folder / "home")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return folder / wheels.make_wheel(BUILD, folder)


@pytest.fixture(scope="module")
def bare(tmp_path_factory, wheel) -> Environment:
    """Nothing but the wheel."""
    return Environment(tmp_path_factory.mktemp("bare") / "venv", wheel)


CUDA = ("nvidia/cu13/include", "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0")


@pytest.fixture(scope="module")
def tooled(tmp_path_factory, wheel) -> Environment:
    """The wheels of NVRTC and of the CUDA headers beside it."""
    made = Environment(tmp_path_factory.mktemp("tooled") / "venv with a blank", wheel)
    (made.site / "nvidia/cu13/lib").mkdir(parents=True)
    shutil.copytree(PACKAGES / CUDA[0], made.site / CUDA[0])
    for name in CUDA[1:]:
        shutil.copy2(PACKAGES / name, made.site / name)
    return made


def test_what_the_wheel_is(wheel):
    assert wheel.name == f"kernelwright-{wheels.version()}-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = next(n for n in names if n.endswith("/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(archive.read(record).decode().splitlines())}
        assert set(rows) == set(names)
        for name in set(names) - {record}:
            data = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert rows[name] == [f"sha256={digest}", str(len(data))]
        metadata = archive.read(record.replace("RECORD", "METADATA")).decode()
    inside = {name.removeprefix("kernelwright/") for name in names}
    for needed in ("bin/kw", "lib/libkernelwright.so", "lib/libkwemu.so", "include/kw/device/row.cuh", "include/emulator/kwemu.h",
                   "include/faces/c/kernelwright.h", "lib/cmake/Kernelwright/KernelwrightConfig.cmake", "torch/__init__.pyi", "py.typed"):
        assert needed in inside
    assert not [name for name in names if "test" in name or name.endswith(".pyc")]
    assert 'Requires-Dist: torch>=2.10; extra == "torch"' in metadata and "\nRequires-Dist: torch>=2.10\n" not in metadata
    assert wheel.stat().st_size < 5 * 2**20


def test_the_same_build_makes_the_same_wheel(wheel, tmp_path):
    assert (tmp_path / wheels.make_wheel(BUILD, tmp_path)).read_bytes() == wheel.read_bytes()


def test_no_file_knows_this_tree(bare):
    package = bare.site / "kernelwright"
    known = [file for file in package.rglob("*") if file.is_file() and file.suffix != ".pyc" and str(ROOT).encode() in file.read_bytes()]
    assert known == []
    assert not [file for file in package.rglob("*") if file.is_symlink()]


PROGRAM = """
#include <cstdio>
__global__ void twice(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
int main() {
  float* x; cudaMallocManaged(&x, 400);
  for (int i = 0; i < 100; i++) x[i] = i;
  twice<<<4, 32>>>(x, 100);
  cudaDeviceSynchronize();
  std::printf("%g\\n", x[99]);
}
"""


def all_verbs(environment: Environment, hide) -> None:
    tried = set()

    def kw(*words, status=0):
        tried.add(words[0])
        return environment.kw(*words, status=status, hide=hide)

    home = environment.folder / "home"
    ops = json.loads(kw("list", "--json"))["ops"]
    op = next(op["name"] for op in ops if [i["name"] for i in op["inputs"] if not i["optional"]] == ["x"])
    call = ["--arg", "x=bf16[64,512]"]
    assert wheels.version() in kw("--version")
    doctor = kw("doctor", "--quick")
    assert "nvrtc     ok" in doctor and "emulator  ok" in doctor and str(environment.site) in doctor
    assert op in kw("list")
    assert "grid" in kw("plan", op, *call, "--gpu", "h200")
    assert kw("check", op, *call, "--device", "cpu").endswith("1 op is right on cpu\n")
    assert kw("check", op, *call, "--device", "emulate").endswith("1 op is right on emulate\n")
    assert op in kw("bench", op, *call, "--device", "cpu", "--min-time", "0.01")
    kw("pack", op, *call, "--arch", "sm_90", "-o", home / "own.pack")
    assert (home / "own.pack").stat().st_size > 1000
    assert "kernels" in kw("cache")
    (home / "twice.cu").write_text(PROGRAM)
    assert "198" in kw("emulate", "twice.cu")
    (home / "twice.cu").write_text(PROGRAM.replace("i < n", "i <= n"))
    assert "twice.cu" in kw("emulate", "twice.cu", status=1)
    (home / "bugs").mkdir()
    (home / "bugs" / "one.txt").write_text("bug an-edit 4\nsays a sum forgets its turn\nin kw/device/row.cuh\n- % 8;\n+ % 1;\n")
    assert "an-edit" in kw("mutate", "--list", "--bugs", home / "bugs")
    assert set(re.findall(r"^  kw ([a-z]+)", kw("--help"), re.M)) <= tried


def test_every_verb_with_this_tree_out_of_sight(tooled):
    all_verbs(tooled, hidden())


def test_the_tree_can_be_hidden():
    """Else the test above shows less than it says; then there are the long tests, which rename a clone."""
    if not hidden():
        pytest.skip("this kernel lets nobody mount in a namespace of their own")
    assert run(*hidden(), "ls", ROOT) == "" and (ROOT / "README.md").exists()


def test_what_is_not_there_is_said(bare):
    """No NVRTC, no CUDA headers: a sentence each that says what to install. (A machine with a toolkit has both.)"""
    toolkit = Path("/usr/local/cuda")
    hide = hidden(toolkit) if toolkit.exists() else []
    if toolkit.exists() and not hide:
        pytest.skip("this machine has a CUDA toolkit, and its kernel lets nobody hide it")
    said = bare.kw("doctor", "--quick", hide=hide)
    assert "nvrtc     missing" in said and "pip install nvidia-cuda-nvrtc" in said
    program = bare.folder / "home" / "twice.cu"
    program.write_text(PROGRAM)
    assert "nvidia-cuda-runtime" in bare.kw("emulate", program, status=2, hide=hide)


def test_without_torch(bare):
    said = bare.run_python("""
import kernelwright, os
print(kernelwright.__version__, len(kernelwright.ops()) > 5, os.path.exists(kernelwright.cmake_prefix_path + "/lib/cmake/Kernelwright"))
try: import kernelwright.torch
except ModuleNotFoundError as e: print(e)
""")
    assert said.splitlines() == [f"{wheels.version()} True True", "No module named 'torch'"]


USE_TORCH = """
import torch, kernelwright.torch as kt
print(kt.__file__.split("/kernelwright/")[0])
assert kt.fast_path() == "on", kt.fast_path()
x = torch.randn(3, 8, requires_grad=True)
kt.rms_norm(x, torch.ones(8), 1e-5).sum().backward()
assert x.grad.shape == x.shape
print(tuple(kt.RMSNorm(8)(x).shape))
"""


def test_the_emulator_is_found_by_the_library(bare):
    said = bare.run_python("""
import kernelwright
op = next(op for op in kernelwright._registry.ops() if [t.name for t in op.inputs if not t.optional] == ["x"])
kernelwright.warmup(op.name, "x=f32[8,96]")
print(kernelwright.kernel_counts()["compiled"] > 0)
""", KW_DRIVER="emulator", KW_CACHE="0")
    assert said == "True\n"


def test_with_torch(bare):
    path = bare.site / "torch_of_the_tests.pth"
    path.write_text(f"{PACKAGES}\n")  # at the end of sys.path: our own package comes first
    try:
        assert bare.run_python(USE_TORCH).splitlines() == [str(bare.site), "(3, 8)"]
    finally:
        path.unlink()


def test_a_strangers_cmake_finds_it(bare, tmp_path):
    prefix = bare.run_python("import kernelwright; print(kernelwright.cmake_prefix_path)").strip()
    said = run("cmake", "-S", ROOT / "examples/cpp", "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert f"Kernelwright_DIR:PATH={prefix}/lib/cmake/Kernelwright" in (tmp_path / "CMakeCache.txt").read_text(), said


def test_two_versions(tmp_path, wheel):
    """What is left of another version in an environment: a program, a library, a package that comes first."""
    made = Environment(tmp_path / "venv", wheel)
    package = made.site / "kernelwright"
    own = (package / "_version.py").read_text()
    (package / "_version.py").write_text(own.replace(wheels.version(), "0.0.99"))
    said = made.kw("list", status=1)
    assert said == (f"kw: this program is of Kernelwright {wheels.version()}, but Python finds 0.0.99 in {package}: "
                    "keep one version in the environment\n")
    said = made.run_python("import kernelwright", status=1)
    assert f"the Python package in {package} is of version 0.0.99, but {package}/lib/libkernelwright.so is of {wheels.version()}" in said
    (package / "_version.py").write_text(own)
    assert made.kw("--version") == f"kw {wheels.version()}\n"
    (package / "bin/kw").unlink()
    assert made.kw("list", status=1) == f"kw: the package in {package} has no bin/kw: install Kernelwright with this Python's pip\n"
    shutil.rmtree(package)
    assert "finds no package kernelwright" in made.kw("list", status=1)


def test_an_editable_install_and_a_source_archive(tmp_path):
    """pip's other two requests. An editable wheel is a path; a source archive is what git knows."""
    with zipfile.ZipFile(tmp_path / wheels.build_editable(tmp_path, {"build-dir": BUILD})) as archive:
        assert archive.read("kernelwright.pth").decode() == f"{BUILD / 'python'}\n" and "_kernelwright_program.py" in archive.namelist()
    if not (ROOT / ".git").exists():
        pytest.skip("no git here")
    with tarfile.open(tmp_path / wheels.build_sdist(tmp_path)) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
        assert {"PKG-INFO", "pyproject.toml", "CMakeLists.txt", "scripts/wheels.py"} <= names
        assert not any(name.startswith("build/") for name in names)


@pytest.mark.skipif("KW_FULL" not in os.environ, reason="compiles everything once more: KW_FULL=1 (make test-full)")
def test_pip_install_of_a_clone_that_is_renamed_afterwards(tmp_path):
    clone = tmp_path / "clone"
    run("git", "clone", "--quiet", ROOT, clone)
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KW_", "PYTHON", "VIRTUAL"))}
    pip = [tmp_path / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, f"{clone}[nvrtc,emulate]", env=environment)
    clone.rename(tmp_path / "renamed")
    made = Environment.__new__(Environment)
    made.enter(tmp_path / "venv")
    all_verbs(made, [])
    (made.site / "torch_of_the_tests.pth").write_text(f"{PACKAGES}\n")
    assert made.run_python(USE_TORCH).splitlines() == [str(made.site), "(3, 8)"]
