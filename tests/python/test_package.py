"""The Python package without any framework: warming up, exceptions, logging, and another version beside it. Each in a process
of its own."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("KW_BUILD", Path(__file__).resolve().parents[2] / "build"))
LIBRARY = BUILD / "libkernelwright.so"


def python(code: str, status=0, **environment):
    """Its standard output and error."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KW_")}
    environment = {**clean, "PYTHONPATH": str(BUILD / "python"), "KW_CACHE": "0", "KW_PACK": "0", **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout.strip(), done.stderr.strip()



FIND_OP = """
import kernelwright as k
from kernelwright._library import library
ops = [op for op in library.ops() if all(len(t.shape) in (1, 2) and t.below is None for t in op.inputs)]
op = next(op for op in ops if op.gradient)
words = " ".join(f"{t.name}=f32[{'8,' if len(t.shape) == 2 else ''}96]" for t in op.inputs)
"""


def test_one_compile_for_sixteen_threads():
    said, _ = python(FIND_OP + """
import threading
gate = threading.Barrier(16)
def warm():
    gate.wait()
    k.warmup(op.name, words, gradient=True)
threads = [threading.Thread(target=warm) for _ in range(16)]
for t in threads: t.start()
for t in threads: t.join()
counts = k.kernel_counts()
assert counts["compiled"] >= 2 and counts["pack"] == counts["disk"] == 0, counts
assert counts["memory"] == 15 * counts["compiled"], counts  # sixteen asked for each
k.warmup(op.name, words.replace("8,", "3000,"), gradient=True)  # the number of rows does not matter
assert k.kernel_counts()["compiled"] == counts["compiled"]
print("well")
""", KW_DRIVER="emulator")
    assert said == "well"


def test_warmup_says_what_is_wrong():
    said, _ = python(FIND_OP + """
t = op.inputs[0].name
for bad in (f"{t}=f32", f"{t}=f99[3]", f"{t}=f32[3", f"{t}=f32[-3]", f"{t}=f32[{'1,' * 9}1]", f"{t}=f32[x]", f"{t}=f32[3] {t}=f32[3]",
            "nonsense=1", "=", f"{t}", f"{t}=f32[99999999999999999999]", words.replace("96]", "95]", 1), ""):
    try:
        k.warmup(op.name, bad)
    except k.ArgumentError as e:
        assert str(e).startswith(op.name + ": ") and len(str(e)) > 20, e
    else:
        raise AssertionError(bad)
try:
    k.warmup(op.gradient.op, " ".join(words.split()), gradient=True)
except k.ArgumentError as e:
    print(e)
try:
    k.warmup(op.name, words, device=7)
except k.ArgumentError as e:
    print(e)
""", KW_DRIVER="emulator")
    assert "there is no CUDA device 7: this process sees 1" in said


def test_every_status_has_its_exception():
    python("""
import kernelwright as k
from kernelwright._errors import BY_STATUS
from kernelwright._library import library
assert len(BY_STATUS) == 8 and len(set(BY_STATUS)) == 7
for kind, caught in ((k.ArgumentError, ValueError), (k.UnsupportedError, NotImplementedError), (k.OutOfMemoryError, MemoryError),
                     (k.LoadError, OSError), (k.ContractError, ValueError), (k.DriverError, RuntimeError),
                     (k.ToolchainError, RuntimeError)):
    assert issubclass(kind, k.Error) and issubclass(kind, caught) and issubclass(k.Error, RuntimeError)
try: k.load_library("/none.so")
except k.LoadError as e: assert "/none.so cannot be loaded" in str(e)
try: k.calls("nonsense")
except k.ArgumentError as e: assert "there is no op 'nonsense'" in str(e)
""")


def test_no_driver_is_a_toolchain_error():
    said, _ = python(FIND_OP + """
try: k.warmup(op.name, words)
except k.ToolchainError as e: print(e)
print(op.name)
""", KW_DRIVER="/nonexistent/libcuda.so.1")
    sentence, name = said.splitlines()
    assert sentence.startswith(name + ": the CUDA driver that KW_DRIVER names could not be loaded: /nonexistent/libcuda.so.1")


def test_a_kernel_that_does_not_compile_is_a_toolchain_error(tmp_path):
    said, _ = python(FIND_OP + """
try: k.warmup(op.name, words)
except k.ToolchainError as e: print(type(e).__name__, str(e).startswith(op.name + ": the kernel "))
""", KW_DRIVER="emulator", KWEMU_CXX="/bin/false")
    assert said == "ToolchainError True"


WARNS = FIND_OP + """
import logging
for _ in range(3): k.warmup(op.name, words)
k.warmup(op.name, words.replace("96", "4096"))
"""


def test_warnings_go_through_logging():
    pack = {"KW_PACK": "/no/such.pack", "KW_DRIVER": "emulator"}
    sentence = "the pack /no/such.pack cannot be read: No such file or directory; kernels are compiled at their first call"
    config = "import logging, sys; logging.basicConfig(stream=sys.stdout, format='%(name)s %(levelname)s %(message)s')"
    said, told = python(config + WARNS, **pack)
    assert said == f"kernelwright WARNING {sentence}" and not told
    assert python("import logging; logging.getLogger('kernelwright').setLevel('ERROR')" + WARNS, **pack) == ("", "")
    # A logger that fails, or that calls us again, harms nobody; one that waits for another thread's call neither.
    python(WARNS.replace("import logging", """
import logging, threading
class Handler(logging.Handler):
    def emit(self, record):
        other = threading.Thread(target=k.warmup, args=(op.name, words))
        other.start()
        other.join(60)
        assert not other.is_alive()
logging.getLogger("kernelwright").addHandler(Handler())
"""), **pack)
    # In a program that is not Python: once, on stderr. At the end of Python nobody is called any more.
    _, told = python(WARNS.replace("k.warmup(op.name, words)", "None").replace('k.warmup(op.name, words.replace("96", "4096"))', """
import atexit
atexit._run_exitfuncs()
k.warmup(op.name, words)"""), **pack)
    assert told == f"kernelwright: {sentence}"


def changed(tmp_path, name: str, *replacements) -> Path:
    data = LIBRARY.read_bytes()
    for old, new in replacements:
        assert old in data and len(old) == len(new)
        data = data.replace(old, new)
    file = tmp_path / name
    file.write_bytes(data)
    return file


@pytest.fixture
def version():
    return python("import kernelwright; print(kernelwright.__version__)")[0]


def test_two_versions_in_one_process(tmp_path, version):
    """Another one is loaded for everybody to see (a C++ program may have linked it): each keeps its own ops, errors and functions."""
    other = changed(tmp_path, "libother.so", (version.encode() + b"\0", b"0.0.9\0"))
    said, _ = python(f"""
import ctypes
old = ctypes.CDLL({str(other)!r}, mode=ctypes.RTLD_GLOBAL)
old.kw_version.restype = old.kw_last_error.restype = ctypes.c_char_p
import kernelwright as k
assert old.kw_version() == b"0.0.9" and k.__version__ == {version!r}
assert old.kw_load_library(b"/first") == 2
try: k.load_library("/second")
except k.LoadError as e: assert "/second" in str(e)
assert b"/first" in old.kw_last_error()
{FIND_OP}
k.warmup(op.name, words)
assert k.kernel_counts()["compiled"] > 0
counts = (ctypes.c_uint64 * 4)()
old.kw_count_kernels(counts)
print(list(counts))
""", KW_DRIVER="emulator")
    assert said == "[0, 0, 0, 0]"


def test_the_library_of_another_version(tmp_path):
    """What an older installation brings lacks what this package calls; another library altogether lacks everything."""
    older = changed(tmp_path, "libolder.so", (b"\0kw_warmup\0", b"\0kw_wormup\0"))
    _, told = python("import kernelwright", status=1, KW_LIBRARY=str(older))
    assert f"ImportError: kernelwright: {older} is Kernelwright " in told
    assert "lacks kw_warmup, so it does not belong to the Python package in" in told
    _, told = python("import kernelwright", status=1, KW_LIBRARY=str(BUILD / "libkwemu.so"))
    assert "is no library of Kernelwright and lacks kw_version" in told
    (tmp_path / "text.so").write_text("no library at all")
    _, told = python("import kernelwright", status=1, KW_LIBRARY=str(tmp_path / "text.so"))
    assert "ImportError: kernelwright: the library" in told and "cannot be loaded" in told


def test_two_versions_share_the_disk_cache(tmp_path, version):
    """Kernels are named by what went in: the same sources are the same kernel, whoever compiled it."""
    package = tmp_path / "kernelwright"
    shutil.copytree(BUILD / "python" / "kernelwright", package)
    (package / "lib" / "libkernelwright.so").unlink()
    shutil.move(changed(tmp_path, "other.so", (version.encode() + b"\0", b"0.0.9\0")), package / "lib" / "libkernelwright.so")
    (package / "_version.py").unlink()  # a link into the build folder
    (package / "_version.py").write_text('version = "0.0.9"\n')
    code = FIND_OP + "k.warmup(op.name, words); print(k.__version__, k.kernel_counts()['compiled'] > 0)"
    shared = {"KW_DRIVER": "emulator", "KW_CACHE": "1", "KW_CACHE_DIR": str(tmp_path / "cache")}
    assert python(code, **shared)[0] == f"{version} True"
    assert python(code, **{**shared, "PYTHONPATH": str(tmp_path)})[0] == "0.0.9 False"
