"""Kernelwright: CUDA kernels written once, native in every framework.

This package is thin: it finds the one library, reads the list of ops that the library carries, and hands it to a framework.

    import kernelwright.torch as kt
    y = kt.some_op(x, weight)           # a torch function, with gradients, torch.compile and all

    kernelwright.ops()                  # names of the ops there are
    kernelwright.calls("some_op")       # finished calls of an op in this process, on any device
    kernelwright.load_library(path)     # adds the ops of a library of yours
"""

from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    ContractError,
    DriverError,
    Error,
    InternalError,
    LoadError,
    OutOfMemoryError,
    ToolchainError,
    UnsupportedError,
)
from ._library import library as _registry

__version__ = _registry.version

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "ContractError",
    "DriverError",
    "Error",
    "InternalError",
    "LoadError",
    "OutOfMemoryError",
    "ToolchainError",
    "UnsupportedError",
    "calls",
    "contract",
    "copies",
    "load_library",
    "ops",
]


def ops() -> list[str]:
    """Names of all registered ops, in order of registration; those that are the gradient of another op included."""
    return [op.name for op in _registry.ops()]


def contract(op: str) -> str:
    """The contract of an op, as its author wrote it."""
    return _registry.op(op).contract


def calls(op: str) -> int:
    """Calls of an op that finished in this process, on any device and from any framework."""
    return _registry.calls(op)


def copies(op: str) -> int:
    """Tensors that the PyTorch face copied for an op because its kernels could not read their layout as it was."""
    return _registry.copies(op)


def load_library(path: str) -> list[str]:
    """Adds the ops of a shared library of yours, and returns their names. Where a framework's module (kernelwright.torch, ...) has been
    imported already, it gets them too. Raises LoadError (an OSError) with a sentence when the library cannot be loaded or is malformed; nothing is added
    then."""
    return _registry.load(path)
