"""Kernelwright's ops in PyTorch.

Every op of the library that is not the gradient of another one is a function here: `kernelwright.torch.<op>(tensors..., attributes...)`;
help() on it shows its contract. All ops are torch ops too, `torch.ops.kernelwright.<op>`, with fake kernels, gradients and batching rules.
Rooms may bring module classes (torch.nn.Module), which are here as well; accelerate(model) puts the ops into a model that exists.

Works in eager mode, under torch.compile (fullgraph, dynamic), torch.export, CUDA graphs, autocast, torch.func transforms. A second
derivative and forward-mode differentiation do not exist and are refused by a sentence."""

import importlib
import os as _os
import warnings as _warnings
from pathlib import Path

import torch as _torch

from .._library import library as _library
from . import _accelerate, _eager, _functions, _kernels, _plain

from ._arguments import check_options, check_sizes
from ._accelerate import Report, Swap, accelerate, is_served, only_forwards, served_dtypes, transformers_swaps
from ._fingerprint import function_fingerprint

_registrations = _torch.library.Library("kernelwright", "FRAGMENT")  # dropping it would undo what it registered
_known: dict[str, _eager.Eager] = {}
__all__ = ["Report", "Swap", "accelerate"]


def _attach() -> None:
    """Makes every op of the library known to torch; again after ops were added."""
    _library.attach_torch()
    new = [op for op in _library.ops() if op.name not in _known]
    for op in new:
        _known[op.name] = _eager.Eager(op, _library.op)
    for op in new:
        e = _known[op.name]
        _kernels.register(op, e.formula, e.public, e.private, _registrations)
    for op in new:
        e = _known[op.name]
        e.finish(_known.__getitem__)
        if op.backward_of is None and op.name in globals():
            where = f"torch.ops.kernelwright.{op.name}"
            _warnings.warn(f"kernelwright.torch has a name {op.name!r} already: the op is {where} alone", stacklevel=2)
        elif op.backward_of is None:
            globals()[op.name] = _functions.make_function(op, e.entry, e.traced, _torch.compiler.is_compiling)
            __all__.append(op.name)


def _load_rooms() -> None:
    """Every rooms/<name>_torch.py: __all__ names its module classes, SWAPS the classes of others that accelerate() may swap for the
    op, PLAIN says what an op is in torch's own ops."""
    for file in sorted((Path(__file__).parent.parent / "rooms").glob("*_torch.py")):
        module = importlib.import_module(f"kernelwright.rooms.{file.stem}")
        for name in module.__all__:
            globals()[name] = getattr(module, name)
            __all__.append(name)
        _accelerate.swaps.extend(getattr(module, "SWAPS", ()))
        _plain.functions.update(getattr(module, "PLAIN", {}))


def fast_path() -> str:
    """"on", or why eager calls take torch's dispatcher (slower, same results)."""
    return _eager.status


_attach()
_library.on_new_ops(_attach)
_load_rooms()
_plain.disable(_os.environ.get("KERNELWRIGHT_DISABLE", ""), globals())
