"""The build backend that pyproject.toml names (PEP 517 and 660): CMake compiles and installs, this packs what was installed.

    pip install .                         compiles in a temporary folder
    pip install -C build-dir=build .      takes a build folder that exists
    pip install -e .                      edits are seen at once: links into <build>/python

The wheel is one folder, kernelwright/: the Python package, and in it an install prefix (bin/, lib/, include/, lib/cmake/) that C++ programs
use too. It holds no path of the machine that built it. Why there is no build framework here: docs/adr/0012."""
import base64
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("kernelwright", "kwemu", "kw", "kw_fast")
# No module in it needs a certain Python: the one extension is of the stable ABI, and what it does can be done without it.
TAG = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def version() -> str:
    return re.search(r"project\(Kernelwright VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


# ---- the hooks ----------------------------------------------------------------------------------------------------------------------


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
        build = (config_settings or {}).get("build-dir", folder)
        return make_wheel(compiled(Path(build), TARGETS), Path(wheel_directory))


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None) -> str:
    folder = Path(metadata_directory) / f"kernelwright-{version()}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_bytes(metadata())
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    build = compiled(Path((config_settings or {}).get("build-dir", ROOT / "build")), ("kw", "python_package"))
    return _pack(Path(wheel_directory), {"kernelwright.pth": f"{build / 'python'}\n".encode()}, build)


def build_sdist(sdist_directory, config_settings=None) -> str:
    name = f"kernelwright-{version()}"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as out:
        for file in filter(None, files):
            out.add(ROOT / file, f"{name}/{file}")
        info = tarfile.TarInfo(f"{name}/PKG-INFO")
        info.size = len(metadata())
        out.addfile(info, io.BytesIO(metadata()))
    return f"{name}.tar.gz"


# ---- compiling ----------------------------------------------------------------------------------------------------------------------


def compiled(build: Path, targets) -> Path:
    """The build folder, absolute, with these targets up to date."""
    build = build.resolve()
    if not (build / "CMakeCache.txt").exists():
        # Nobody who installs wants to hear of a warning that a newer compiler has invented.
        options = ["-DKW_WARNINGS_AS_ERRORS=OFF", "--log-level=WARNING"]
        for folder in sys.path:  # the CUDA headers of pyproject.toml's build requirements
            include = Path(folder) / "nvidia/cu13/include"
            if (include / "cuda.h").exists() and (include / "nvrtc.h").exists():
                options += [f"-DKW_CUDA_INCLUDE={include}", f"-DKW_NVRTC_INCLUDE={include}"]
                break
        _run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *options)
    _run("cmake", "--build", build, "-j", os.cpu_count() or 1, "--target", *targets)
    return build


def _run(*command, **more) -> None:
    words = [str(word) for word in command]
    try:
        subprocess.run(words, check=True, **more)
    except FileNotFoundError:
        sys.exit(f"kernelwright: {words[0]} is not on PATH: leave out --no-build-isolation, or install what pyproject.toml requires")
    except subprocess.CalledProcessError:
        sys.exit(f"kernelwright: this did not work: {' '.join(words)}\nIt needs x86-64 Linux and g++ 12 or newer (CXX names another one).")


# ---- packing ------------------------------------------------------------------------------------------------------------------------


def make_wheel(build: Path, out: Path) -> str:
    """Packs what `build` has compiled; the name of the wheel in `out`."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
        package = Path(folder) / "kernelwright"
        _run("cmake", "--install", build, "--prefix", package, "--strip", stdout=subprocess.DEVNULL)
        _run("cmake", "--install", build, "--prefix", package, "--component", "python", stdout=subprocess.DEVNULL)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("KW_")}
        _run(sys.executable, "-m", "kernelwright._stubs", package, env={**clean, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"})
        files = {file.relative_to(folder).as_posix(): file for file in sorted(package.rglob("*")) if file.is_file()}
        return _pack(out, files, build)


def _pack(out: Path, files: dict, build: Path) -> str:
    """Writes the wheel of `files` (name -> path or contents), the program and the metadata."""
    info = f"kernelwright-{version()}.dist-info"
    files = {
        **files,
        "_kernelwright_program.py": build / "generated/_kernelwright_program.py",
        f"{info}/entry_points.txt": b"[console_scripts]\nkw = _kernelwright_program:main\n",
        f"{info}/METADATA": metadata(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: kernelwright\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode(),
        f"{info}/licenses/LICENSE": ROOT / "LICENSE",
    }
    record = []
    name = f"kernelwright-{version()}-{TAG}.whl"
    with zipfile.ZipFile(out / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for place, source in files.items():
            data = source if isinstance(source, bytes) else source.read_bytes()
            entry = zipfile.ZipInfo(place)  # of 1980: the same files make the same wheel
            entry.external_attr = (0o100755 if "/bin/" in place else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{place},sha256={digest},{len(data)}\n")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "".join([*record, f"{info}/RECORD,,\n"]))
    return name


def metadata() -> bytes:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version()}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {file}" for file in project["license-files"]),
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]).encode()
