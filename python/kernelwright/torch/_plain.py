"""Ops in torch's own ops, for the environment variable KERNELWRIGHT_DISABLE=op,...: the functions of kernelwright.torch by those names
then run torch's code, gradients included, and modules and accelerate() with them. It is the first thing to try when a kernel of ours is
suspected.

torch.ops.kernelwright.<op> stays what it is."""

import logging

from .._library import library

logger = logging.getLogger("kernelwright")

functions: dict[str, object] = {}  # by op; every room brings its own (PLAIN)
disabled: set[str] = set()


def disable(names: str, module: dict) -> None:
    """Sends the functions of `module` by these names, separated by commas, to torch's own ops. What cannot be is said by logging."""
    known = {op.name for op in library.ops() if op.backward_of is None}
    for name in filter(None, map(str.strip, names.split(","))):
        if name not in known:
            logger.warning("KERNELWRIGHT_DISABLE names '%s', but there is no such op; there are: %s", name, ", ".join(sorted(known)))
        elif name not in functions:
            logger.warning("KERNELWRIGHT_DISABLE names '%s', but its room does not say what it is in torch's own ops: it stays on", name)
        else:
            module[name].__globals__.update(_entry=functions[name], _traced=functions[name])
            disabled.add(name)
