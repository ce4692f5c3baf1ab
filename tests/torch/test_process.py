"""Whole processes: import order, threads, fork, leaks, a clean exit."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import conftest
import pytest
import samples as s
import torch

import kernelwright
import kernelwright.torch as kt

FULL = bool(os.environ.get("KW_FULL"))
PACKAGE = str(Path(kernelwright.__file__).parent.parent)


def python(code: str, **environment) -> subprocess.CompletedProcess:
    env = dict(os.environ, PYTHONPATH=PACKAGE, **environment)
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)


def succeeds(code: str, **environment) -> str:
    done = python(code, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


USE = f"""
import torch, kernelwright.torch as kt, kernelwright
kernelwright.load_library({conftest.TEST_ROOM!r})
x = torch.randn(3, 4, requires_grad=True)
y = kt.test_blend(x, torch.ones(4))[0]
y.backward(torch.ones_like(y))
assert torch.equal(y, 2 * x) and torch.equal(x.grad, torch.full((3, 4), 2.0))
print("used", kt.fast_path())
"""


def test_an_op_cannot_take_a_name_that_is_taken():
    """A user's op called like something of ours, accelerate say, is a torch op alone, and that is said."""
    succeeds(f"""
import warnings, torch, kernelwright, kernelwright.torch as kt
kt.test_blend = "ours"
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    kernelwright.load_library({conftest.TEST_ROOM!r})
assert kt.test_blend == "ours" and torch.ops.kernelwright.test_blend.default
assert any("kernelwright.torch has a name 'test_blend' already" in str(w.message) for w in said), said
""")


class TestImportOrder:
    def test_package_first(self):
        """The package without torch works, and torch is not pulled in by it."""
        out = succeeds(f"import sys, kernelwright; print(kernelwright.ops()); assert 'torch' not in sys.modules\n{USE}")
        assert "used on" in out

    def test_torch_first(self):
        assert "used on" in succeeds(f"import torch\n{USE}")

    def test_library_alone(self):
        """The library before torch in a process without the package: a sentence first, and it attaches afterwards."""
        path = s.library.path
        code = f"""
import ctypes
c = ctypes.CDLL({path!r})
c.kw_last_error.restype = ctypes.c_char_p
assert c.kw_attach_torch() == -1
print(c.kw_last_error().decode())
import torch
n = c.kw_attach_torch()
assert n == c.kw_attach_torch() == c.kw_op_count(), n
torch.ops.load_library({path!r})
"""
        assert "torch >= 2.10 is not loaded in this process" in succeeds(code)

    def test_ops_added_before_torch(self):
        out = succeeds(f"import kernelwright; print(kernelwright.load_library({conftest.TEST_ROOM!r}))\n{USE}")
        assert "test_blend" in out and "used on" in out

    def test_missing_library(self):
        done = python("import kernelwright", KW_LIBRARY="/nowhere/libkernelwright.so")
        assert done.returncode and "/nowhere/libkernelwright.so" in done.stderr

    def test_no_fast_path_when_a_private_name_is_gone(self):
        out = succeeds(f"import torch; del torch._C._is_any_autocast_enabled\n{USE}")
        assert "used off: AttributeError" in out


def test_exits_cleanly():
    for turn in range(20 if FULL else 4):
        done = python(USE + "import threading; threading.Thread(target=lambda: kt.test_grow(x)).start()")
        assert (done.returncode, done.stderr) == (0, ""), f"turn {turn}: {done.returncode} {done.stderr}"


def test_fork():
    """A child of a process that has used the ops uses them too."""
    code = USE + """
import os
y = kt.test_blend(torch.randn(200, 4000))
child = os.fork()
if child == 0:
    try:
        a = torch.randn(200, 4000)
        ok = torch.equal(kt.test_blend(a)[0], 2 * a)
        for op in kernelwright.ops():
            kernelwright.calls(op)
    except BaseException:
        ok = False
    os._exit(0 if ok else 3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
"""
    succeeds(code)


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


_mallinfo2 = ctypes.CDLL(None).mallinfo2
_mallinfo2.restype = _Mallinfo2


def in_use() -> tuple[int, int]:
    """Bytes of the C heap and blocks of Python's that are in use: exact, where the resident set also counts what was freed."""
    gc.collect()
    info = _mallinfo2()
    return info.uordblks + info.hblkhd, sys.getallocatedblocks()


def leaks(call, count) -> bool:
    """One handle, box or reference per call would be at least 16 bytes or one block; the least of three turns, since caches fill once."""
    for _ in range(500):
        call()
    turns = []
    for _ in range(3):
        before = in_use()
        for _ in range(count):
            call()
        after = in_use()
        turns.append((after[0] - before[0], after[1] - before[1]))
    return min(b for b, _ in turns) > count * 8 or min(k for _, k in turns) > count // 2


def failing(call, *arguments):
    def f():
        with pytest.raises(RuntimeError):
            call(*arguments)

    return f


def leak_cases():
    x, w = torch.randn(2, 8), torch.randn(8)
    gx, gw = x.clone().requires_grad_(), w.clone().requires_grad_()
    op, like = torch.ops.kernelwright, torch.ones(4)

    def backward():
        y = kt.test_blend(gx, gw)[0]
        torch.autograd.grad(y, (gx, gw), x)

    return {
        "fast": lambda: kt.test_blend(x, w),
        "fast, a text": lambda: kt.test_blend(x, w, 2.0, "squared"),
        "fast, forward with gradient": lambda: kt.test_blend(gx, gw),
        "forward and backward": backward,
        "saved result": lambda: kt.test_grow(gx),
        "dispatcher": lambda: op.test_blend(x, w),
        "dispatcher, absent": lambda: op.test_blend_backward(x, x, None, 1.0, "plain"),
        "dispatcher, copied layout": lambda: op.test_blend(x.t(), None),
        "list and text": lambda: op.test_total([x, w], like, note="some text that is longer than a small string"),
        "written": lambda: op.test_add(x, gx.detach(), 0.0),
        "error, fast": failing(kt.test_blend, x, x),
        "error, dispatcher": failing(op.test_blend, x, x),
        "error, list": failing(op.test_total, [x, x.double()], like),
        "error, text": failing(op.test_blend, x, w, 1.0, "a kind that does not exist"),
    }


@pytest.mark.parametrize("case", leak_cases())
def test_no_leak(case):
    assert not leaks(leak_cases()[case], 100_000 if FULL else 3000)


def test_leak_check_sees_a_leak():
    kept, c = [], ctypes.CDLL(None)
    assert leaks(lambda: kept.append(object()), 3000)
    assert leaks(lambda: c.malloc(16), 3000)


def test_threads():
    """Four threads, all ways in, with backward and errors; the counter misses nothing."""
    errors, turns = [], 300
    before = kernelwright.calls("test_blend")

    def work(seed):
        try:
            x = torch.full((2, 8), float(seed + 1), requires_grad=True)
            for turn in range(turns):
                call = kt.test_blend if turn % 2 else torch.ops.kernelwright.test_blend
                y = call(x, None)[0]
                if turn % 10 == 0:
                    (g,) = torch.autograd.grad(y.sum(), x)
                    assert torch.equal(g, torch.full_like(g, 2.0)) and torch.equal(y, 2 * x)
                    with pytest.raises(RuntimeError, match="test_blend: weight has 3 elements, but x has last dimension 8"):
                        call(x, torch.ones(3))
        except BaseException as e:
            errors.append(repr(e))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    assert kernelwright.calls("test_blend") == before + 4 * turns
