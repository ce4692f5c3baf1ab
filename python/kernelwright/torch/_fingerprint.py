"""Whether a class still computes what a swap was written for: a hash of its source.

Names do not say it: a release may change what a class of the same name computes, and anybody may put another function into the class.
Comments, annotations, docstrings and layout do not count, so the many classes that model libraries generate from one text share a hash.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap

_NOT_COMPUTING = ("__init__", "extra_repr")  # what __init__ sets up is looked at on the module (Swap.refuse)


def class_fingerprint(cls: type) -> str | None:
    """Of the methods that the class defines; None when that cannot be told: no source, or a method put in by other hands."""
    own = {n: f for n, f in vars(cls).items() if n not in _NOT_COMPUTING and (inspect.isfunction(f) or n == "forward")}
    return _fingerprint(tuple(sorted(own.items())), cls.__module__)


def function_fingerprint(function) -> str | None:
    """The same for one function."""
    return _fingerprint(((function.__name__, function),), function.__module__) if inspect.isfunction(function) else None


@functools.cache
def _fingerprint(functions: tuple, module: str) -> str | None:
    texts = []
    for name, function in functions:
        package = module.partition(".")[0]
        while hasattr(function, "__wrapped__"):  # the library's own decorators may be around it, nobody else's
            if not inspect.isfunction(function) or function.__globals__.get("__name__", "").partition(".")[0] != package:
                return None
            function = function.__wrapped__
        if not inspect.isfunction(function) or function.__globals__.get("__name__") != module or function.__name__ != name:
            return None
        try:
            texts.append(_essence(inspect.getsource(function)))
        except (OSError, SyntaxError):
            return None
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def _essence(source: str) -> str:
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list, node.returns = [], None
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(tree)
