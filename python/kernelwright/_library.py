"""libkernelwright.so, through ctypes: the C face (faces/c/kernelwright.h), as far as the Python faces need it."""

import atexit
import ctypes
import logging
import os
import sys
from pathlib import Path

from . import _errors, _manifest
from ._errors import ArgumentError, ArgumentTypeError, LoadError
from ._version import version

logger = logging.getLogger("kernelwright")
_LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


@_LogFunction
def _log(sentence, _context):
    logger.warning("%s", sentence.decode(errors="replace"))


def _path() -> str:
    given = os.environ.get("KW_LIBRARY")
    if given:
        return given
    here = Path(__file__).parent / "lib" / "libkernelwright.so"
    if not here.exists():
        raise ImportError(f"kernelwright: {here} is missing: run 'make build', or name a library in KW_LIBRARY")
    return str(here)


class Library:
    def __init__(self, path: str):
        self.path = path
        try:
            self._c = c = ctypes.CDLL(path)
        except OSError as e:
            raise ImportError(f"kernelwright: the library {path} cannot be loaded: {e}") from None
        text, pointer = ctypes.c_char_p, ctypes.c_void_p
        for name, result, arguments in (
            ("kw_version", text, []),
            ("kw_last_error", text, []),
            ("kw_last_error_status", ctypes.c_int32, []),
            ("kw_manifest", text, []),
            ("kw_op_find", pointer, [text]),
            ("kw_op_calls", ctypes.c_uint64, [pointer]),
            ("kw_torch_copies", ctypes.c_uint64, [pointer]),
            ("kw_torch_schema", text, [pointer, ctypes.c_int]),
            ("kw_attach_torch", ctypes.c_int, []),
            ("kw_load_library", ctypes.c_int, [text]),
            ("kw_add_library_dir", None, [text]),
            ("kw_set_log", None, [_LogFunction, pointer]),
            ("kw_infer", ctypes.c_int, [pointer, pointer, pointer]),
            ("kw_warmup", ctypes.c_int, [pointer, pointer]),
            ("kw_count_kernels", None, [pointer]),
        ):
            function = getattr(c, name, None)
            if function is None:  # two versions in one environment: this package found the library of another
                version = f"Kernelwright {self._version()}" if name != "kw_version" else "no library of Kernelwright"
                raise ImportError(f"kernelwright: {path} is {version} and lacks {name}, so it does not belong to the Python package in "
                                  f"{Path(__file__).parent}: install one version, or unset KW_LIBRARY")
            function.restype, function.argtypes = result, arguments
        c.kw_set_log(_log, None)
        atexit.register(c.kw_set_log, _LogFunction(0), None)  # no Python to call any more
        for folder in sys.path:  # NVRTC comes as a wheel; a virtual environment's folder is none that the library could guess
            if folder and os.path.isdir(os.path.join(folder, "nvidia")):
                c.kw_add_library_dir(os.fsencode(folder))
        self.version = self._version()
        self.errors = _errors.BY_STATUS
        self._ops: list[_manifest.Op] | None = None
        self._listeners = []

    def _version(self) -> str:
        return self._c.kw_version().decode()

    def cmake_prefix(self) -> str:
        """An install prefix, or the build folder."""
        folder = Path(self.path).resolve().parent
        return str(folder.parent if (folder / "cmake").is_dir() else folder)

    def last_error(self) -> str:
        return self._c.kw_last_error().decode(errors="replace")

    def exception_for(self, text: str) -> Exception | None:
        """The exception that an error of this thread's last call is, when `text` is its sentence."""
        sentence = self.last_error()
        if not sentence or not text.startswith(sentence):
            return None
        return self.errors[self._c.kw_last_error_status()](sentence)

    def check(self, status: int) -> None:
        """Raises what a C function's status says."""
        if status:
            raise self.errors[status](self.last_error())

    def kernel_counts(self) -> dict[str, int]:
        counts = (ctypes.c_uint64 * 4)()  # kw_kernel_counts
        self._c.kw_count_kernels(counts)
        return dict(zip(("memory", "pack", "disk", "compiled"), counts))

    def ops(self) -> list[_manifest.Op]:
        if self._ops is None:
            self._ops = _manifest.parse(self._c.kw_manifest().decode())
        return self._ops

    def op(self, name: str) -> _manifest.Op:
        for op in self.ops():
            if op.name == name:
                return op
        raise ArgumentError(f"there is no op {name!r}; there are: {', '.join(o.name for o in self.ops())}")

    def address(self, name: str) -> int:
        """kw_op* of an op."""
        return self._c.kw_op_find(self.op(name).name.encode())

    def calls(self, name: str) -> int:
        return self._c.kw_op_calls(self.address(name))

    def copies(self, name: str) -> int:
        return self._c.kw_torch_copies(self.address(name))

    def torch_schema(self, name: str, with_saved: bool) -> str:
        return self._c.kw_torch_schema(self.address(name), with_saved).decode()

    def attach_torch(self) -> None:
        """Defines every op in the torch of this process that it does not know yet."""
        torch = sys.modules["torch"]
        if getattr(torch, "_kernelwright_library", None) != self._c._handle:  # torch would print a page about the second definition
            taken = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("kernelwright::")]
            if taken:
                raise ImportError(
                    f"kernelwright: another Kernelwright in this process has defined its ops in torch already ({taken[0]}), and two cannot "
                    f"serve one torch; this one is {self.version} of {self.path}: keep one version in the environment"
                )
            torch._kernelwright_library = self._c._handle
        if self._c.kw_attach_torch() < 0:
            raise ImportError(f"kernelwright: {self.last_error()}")

    def load(self, path: str | os.PathLike) -> list[str]:
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise ArgumentTypeError(f"load_library: path must be a str or a path, got {type(path).__name__}")
        if not os.fspath(path):
            raise ArgumentError("load_library: path is empty")
        before = len(self.ops())
        if self._c.kw_load_library(os.fsencode(path)):
            raise LoadError(self.last_error())
        self._ops = None
        for listener in self._listeners:
            listener()
        return [op.name for op in self.ops()[before:]]

    def on_new_ops(self, listener) -> None:
        """Calls `listener` after ops were added."""
        self._listeners.append(listener)


def _own() -> Library:
    found = Library(_path())
    if found.version != version:
        raise ImportError(f"kernelwright: the Python package in {Path(__file__).parent} is of version {version}, but {found.path} is of "
                          f"{found.version}: keep one version in the environment, or unset KW_LIBRARY")
    return found


library = _own()
