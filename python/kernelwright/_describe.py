"""An op as a Python caller sees it, from its contract: signature and documentation. The functions of a framework's module are made with
this, and so are the stubs that editors and type checkers read, so the two cannot differ."""

from ._manifest import Attribute, Op, Tensor, required

_TYPES = {"float": "float", "int": "int", "bool": "bool", "str": "str"}
_BOUNDS = {"at_least": ">=", "above": ">", "at_most": "<=", "below": "<"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def parameters(op: Op) -> list[tuple[str, str, object]]:
    """(name, annotation, default or `required`): the inputs, then the attributes, by position or by name. A default needs one for
    everything behind it."""
    return [(a.name, _annotation(a), default) for a, default in zip(op.arguments, op.defaults)]


def signature(op: Op) -> str:
    """(x: Tensor, weight: Tensor | None = None, eps: float = 1e-06) -> Tensor; the names it uses are in `NAMES`."""
    texts = [f"{name}: {kind}" + ("" if default is required else f" = {default!r}") for name, kind, default in parameters(op)]
    return f"({', '.join(texts)}) -> {returns(op)}"


NAMES = "from collections.abc import Sequence\nfrom typing import Literal\n"  # what annotations are made of, beside Tensor


def returns(op: Op) -> str:
    kinds = ["Tensor | None" if r.present_with else "Tensor" for r in op.outputs]
    return "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def _annotation(a: Tensor | Attribute) -> str:
    if isinstance(a, Attribute):
        return f"Literal[{', '.join(map(repr, a.values))}]" if a.values else _TYPES[a.type]
    return ("Sequence[Tensor]" if a.is_list else "Tensor") + (" | None" if a.optional else "")


def document(op: Op) -> str:
    """Contract, arguments with shapes and dtypes, results, errors and promises."""
    lines = [f"The op {op.name}, from its contract:", ""]
    lines += ["    " + line.strip() for line in op.contract.strip().splitlines()]
    lines.append("")
    for a in op.arguments:
        lines.append(f"{a.name}: " + (_describe(a) if isinstance(a, Tensor) else _describe_attribute(a)))
    if op.outputs:
        lines.append("Returns " + ", ".join(f"{r.name}: {_describe(r)}" for r in op.outputs) + ".")
    variables = [f"{name} is {' or '.join(element(o) for o in options)}" for name, options in op.types.items()]
    if variables:
        lines.append("; ".join(variables) + ".")
    dims = [f"*{name} is any number of leading dimensions" for name, variadic in op.dims.items() if variadic]
    lines += [dims[0] + "; the same name has the same size everywhere."] if dims else []
    lines += [
        "",
        "Raises kernelwright.ArgumentError (a ValueError) before anything is written when a shape, dtype, device or value does not fit: a",
        "sentence that names op, argument, got and wanted.",
        "CPU and CUDA tensors; on CUDA the caller's current stream, without waiting for it"
        + (", so a call can be captured in a CUDA graph." if op.capturable else "; not to be captured in a CUDA graph."),
        "The same inputs give the same bits from run to run.",
        f"Differentiable once, by reverse mode ({op.gradient.op})." if op.gradient else "Has no gradient.",
    ]
    return "\n".join(lines)


def _describe(t: Tensor) -> str:
    text = f"{element(t.element)}[{', '.join(place(p) for p in t.shape)}]"
    if t.is_list:
        text = f"a list of {text}"
    if t.written:
        text += ", written in place"
    if t.optional:
        text += ", or None"
    if t.present_with:
        text += f", None without {t.present_with}"
    return text


def _describe_attribute(a: Attribute) -> str:
    text = " or ".join(repr(v) for v in a.values) if a.values else a.type
    return text + "".join(f", {_BOUNDS[k]} {v:g}" for k, v in a.bounds.items())


def element(e) -> str:
    """An element type as contracts write it."""
    if isinstance(e, str):
        return e
    return e["variable"] if "variable" in e else f"acc({e['accumulator']})"


def place(p) -> str:
    """One place of a shape as contracts write it."""
    if isinstance(p, list):
        a, b = map(place, p[1:])
        return f"{a}{_SIGNS[p[0]]}{b}" if p[0] in _SIGNS else f"{p[0]}({a}, {b})"
    return str(p)
