"""Kernelwright: CUDA kernels written once, native in every framework.

This package is thin: it finds the one library, reads the list of ops that the library carries, and hands it to a framework.

    import kernelwright.torch as kt
    y = kt.some_op(x, weight)           # a torch function, with gradients, torch.compile and all

    kernelwright.ops()                  # names of the ops there are
    kernelwright.calls("some_op")       # finished calls of an op in this process, on any device
    kernelwright.warmup("some_op", "x=bf16[8192,4096]")  # compiles ahead
    kernelwright.load_library(path)     # adds the ops of a library of yours
    kernelwright.cmake_prefix_path      # where find_package(Kernelwright) of a C++ program looks
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
from ._warmup import warmup as _warmup

__version__ = _registry.version
cmake_prefix_path = _registry.cmake_prefix()  # for a C++ program's CMake: -DCMAKE_PREFIX_PATH=... finds package Kernelwright

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
    "cmake_prefix_path",
    "contract",
    "copies",
    "kernel_counts",
    "load_library",
    "ops",
    "warmup",
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
    imported already, it gets them too. Raises LoadError (an OSError) with a sentence when the library cannot be loaded or is
    malformed; nothing is added then."""
    return _registry.load(path)


def warmup(op: str, arguments: str, *, device: int = 0, gradient: bool = False) -> None:
    """Finds or compiles the kernels of a CUDA call and loads them, so that the first such call is as fast as the next. Nothing runs.

    `arguments` is written as for `kw plan --arg`: tensors as name=dtype[sizes], attributes as name=value, separated by blanks, for example
    "x=bf16[8192,4096] weight=bf16[4096] eps=1e-5"; optional ones may be left out. The number of rows does not matter to the kernels, nor do
    the values of float attributes; tensors are taken as contiguous and aligned, as a framework allocates them. `gradient`: those of the
    op's backward too. May be called from many threads at once: each kernel is compiled once.

    Raises ArgumentError when the call does not fit the contract, ToolchainError when there is no driver, or no NVRTC and no pack."""
    _warmup(_registry, op, arguments, device, gradient)


def kernel_counts() -> dict[str, int]:
    """Kernels that CUDA calls asked for in this process, by where they were found: "memory" (of this process; a call that was made before
    asks for none), "pack", "disk" (the cache) or "compiled"."""
    return _registry.kernel_counts()
