"""The public functions: one per op that is not somebody's gradient, with a signature and a docstring from its contract."""

from .._manifest import Op, Tensor, required


def make_function(op: Op, entry, traced, is_compiling):
    """def scale(x, weight=None, factor=1e-06): ..."""
    names = [a.name for a in op.arguments]
    scope = {"_entry": entry, "_traced": traced, "_is_compiling": is_compiling}
    parameters = [n if d is required else f"{n}={d!r}" for n, d in zip(names, op.defaults)]
    source = (
        f"def {op.name}({', '.join(parameters)}):\n"
        f"    if _is_compiling():\n"
        f"        return _traced({', '.join(names)})\n"
        f"    return _entry({', '.join(names)})\n"
    )
    exec(compile(source, f"<kernelwright.torch.{op.name}>", "exec"), scope)
    function = scope[op.name]
    function.__doc__ = _document(op)
    function.__module__ = "kernelwright.torch"
    return function


def _document(op: Op) -> str:
    lines = [f"The op {op.name}, from its contract:", ""]
    lines += ["    " + line.strip() for line in op.contract.strip().splitlines()]
    lines.append("")
    for a in op.arguments:
        lines.append(f"{a.name}: " + (_describe(a) if isinstance(a, Tensor) else _describe_attribute(a)))
    if op.outputs:
        lines.append("Returns " + ", ".join(f"{r.name}: {_describe(r)}" for r in op.outputs) + ".")
    variables = [f"{name} is {' or '.join(_option(o) for o in options)}" for name, options in op.types.items()]
    if variables:
        lines.append("; ".join(variables) + ".")
    lines.append("CPU and CUDA tensors; runs on torch's current stream. Raises kernelwright.ArgumentError (a ValueError) with a sentence")
    lines.append("that names the argument, before anything is written.")
    lines.append("Differentiable once, by reverse mode." if op.gradient else "Has no gradient.")
    return "\n".join(lines)


def _describe(t: Tensor) -> str:
    text = f"{_option(t.element)}[{', '.join(_place(p) for p in t.shape)}]"
    if t.is_list:
        text = f"a list of {text}"
    if t.written:
        text += ", written in place"
    if t.optional:
        text += ", or None"
    if t.present_with:
        text += f", None without {t.present_with}"
    return text


def _describe_attribute(a) -> str:
    words = {"at_least": ">=", "above": ">", "at_most": "<=", "below": "<"}
    text = " or ".join(repr(v) for v in a.values) if a.values else a.type
    return text + "".join(f", {words[k]} {v:g}" for k, v in a.bounds.items())


def _option(e) -> str:
    if isinstance(e, str):
        return e
    return e["variable"] if "variable" in e else f"acc({e['accumulator']})"


def _place(p) -> str:
    if isinstance(p, list):
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
        a, b = map(_place, p[1:])
        return f"{a}{sign[p[0]]}{b}" if p[0] in sign else f"{p[0]}({a}, {b})"
    return str(p)
