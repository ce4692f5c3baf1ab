"""The public functions: one per op that is not somebody's gradient, with a signature and a docstring from its contract."""

from torch import Tensor

from .._describe import NAMES, document, signature
from .._manifest import Op


def make_function(op: Op, entry, traced, is_compiling):
    """def scale(x: Tensor, weight: Tensor | None = None, factor: float = 1e-06) -> Tensor: ..."""
    names = ", ".join(a.name for a in op.arguments)
    scope = {"Tensor": Tensor, "_entry": entry, "_traced": traced, "_is_compiling": is_compiling}
    exec(NAMES, scope)
    source = (
        f"def {op.name}{signature(op)}:\n"
        f"    if _is_compiling():\n"
        f"        return _traced({names})\n"
        f"    return _entry({names})\n"
    )
    exec(compile(source, f"<kernelwright.torch.{op.name}>", "exec"), scope)
    function = scope[op.name]
    function.__doc__ = document(op)
    function.__module__ = "kernelwright.torch"
    return function
