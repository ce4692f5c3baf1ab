"""libkernelwright.so, through ctypes: the C face (faces/c/kernelwright.h), as far as the Python faces need it."""

import ctypes
import os
import sys
from pathlib import Path

from . import _manifest


class ArgumentError(ValueError, RuntimeError):
    """An argument does not fit the op's contract; the text names op, argument, got and wanted. A RuntimeError too, because that is what
    torch makes of the same sentence when a call goes through its dispatcher."""


# By kw_status (kw/core/abi.h).
_ERRORS = (RuntimeError, RuntimeError, ArgumentError, NotImplementedError, RuntimeError, RuntimeError, MemoryError, RuntimeError)


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
        self._c = c = ctypes.CDLL(path)
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
        ):
            function = getattr(c, name)
            function.restype, function.argtypes = result, arguments
        for folder in sys.path:  # NVRTC comes as a wheel; a virtual environment's folder is none that the library could guess
            if folder and os.path.isdir(os.path.join(folder, "nvidia")):
                c.kw_add_library_dir(os.fsencode(folder))
        self.version = c.kw_version().decode()
        self.errors = _ERRORS
        self._ops: list[_manifest.Op] | None = None
        self._listeners = []

    def last_error(self) -> str:
        return self._c.kw_last_error().decode(errors="replace")

    def exception_for(self, text: str) -> Exception | None:
        """The exception that an error of this thread's last call is, when `text` is its sentence."""
        sentence = self.last_error()
        if not sentence or not text.startswith(sentence):
            return None
        return self.errors[self._c.kw_last_error_status()](sentence)

    def ops(self) -> list[_manifest.Op]:
        if self._ops is None:
            self._ops = _manifest.parse(self._c.kw_manifest().decode())
        return self._ops

    def op(self, name: str) -> _manifest.Op:
        for op in self.ops():
            if op.name == name:
                return op
        raise KeyError(f"there is no op '{name}'; there are: {', '.join(o.name for o in self.ops())}")

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
        if self._c.kw_attach_torch() < 0:
            raise ImportError(f"kernelwright: {self.last_error()}")

    def load(self, path: str) -> list[str]:
        before = len(self.ops())
        if self._c.kw_load_library(os.fsencode(path)):
            raise OSError(self.last_error())
        self._ops = None
        for listener in self._listeners:
            listener()
        return [op.name for op in self.ops()[before:]]

    def on_new_ops(self, listener) -> None:
        """Calls `listener` after ops were added."""
        self._listeners.append(listener)


library = Library(_path())
