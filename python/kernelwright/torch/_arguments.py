"""What is wrong with an argument before a contract can look at it: its Python type, or a kind of tensor that no op takes. The contract's
own checks are in C++ (kw/core/bind.cpp); both give a sentence that names op, argument, got and wanted."""

import numbers
import operator

import torch

from .._errors import ArgumentError, ArgumentTypeError, Error
from .._library import library
from .._manifest import Attribute, Op, Tensor

_SYMBOLIC = {"float": (torch.SymFloat, torch.SymInt), "int": (torch.SymInt,), "bool": (torch.SymBool,)}
_PLAIN = {"float": numbers.Real, "int": numbers.Integral, "bool": bool, "str": str, "enum": str}
_WANTED = {"float": "a number", "int": "a whole number", "bool": "True or False", "str": "a str"}


def own_error(op: Op, arguments, e: Exception) -> Exception:
    """What to raise for `e`, which a call through torch's dispatcher raised. Torch turns every exception of a kernel into a
    RuntimeError, and says little about tensors that no kernel takes: our own sentences become the exceptions that they are, and such
    tensors get one."""
    if isinstance(e, Error):
        return e
    own = library.exception_for(str(e)) if type(e) is RuntimeError else None
    return own or foreign(op, arguments) or e


def check(op: Op, arguments) -> None:
    """Raises when an argument is not of the Python type that the op takes there."""
    for a, value in zip(op.arguments, arguments):
        if isinstance(a, Tensor):
            _check_tensor(op, a, value)
        else:
            _check_attribute(op.name, a, value)


def _check_tensor(op: Op, a: Tensor, value) -> None:
    if value is None and a.optional:
        return
    if a.is_list != isinstance(value, (list, tuple)):
        raise _refusal(op, a, value)
    for t in value if a.is_list else [value]:
        if not isinstance(t, torch.Tensor) and not hasattr(t, "__torch_function__"):
            raise _refusal(op, a, t)


def _refusal(op: Op, a: Tensor, value) -> ArgumentTypeError:
    wanted = "a list of torch.Tensor" if a.is_list else "a torch.Tensor"
    return ArgumentTypeError(f"{op.name}: {a.name} must be {wanted}{' or None' if a.optional else ''}, got {type(value).__name__}")


def _check_attribute(who: str, a: Attribute, value) -> None:
    if isinstance(value, _SYMBOLIC.get(a.type, ())):
        return
    if not isinstance(value, _PLAIN[a.type]):
        wanted = "one of " + ", ".join(map(repr, a.values)) if a.values else _WANTED[a.type]
        raise ArgumentTypeError(f"{who}: {a.name} must be {wanted}, got {type(value).__name__}")
    if a.type == "int" and not -(2**63) <= value < 2**63:
        raise ArgumentError(f"{who}: {a.name} is {value}, but must fit into 64 bits")
    if a.type == "float" and isinstance(value, numbers.Integral) and abs(value) > 2**1023:
        raise ArgumentError(f"{who}: {a.name} is a number of {value.bit_length()} bits, but must fit into a float")
    if a.type == "enum" and value not in a.values:
        raise ArgumentError(f"{who}: {a.name} is {value!r}, but must be one of {', '.join(a.values)}")
    if a.type == "str" and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
        raise ArgumentError(f"{who}: {a.name} is {value!r}, but must be text without NUL characters and lone surrogates")


_BOUNDS = {"at_least": (">=", operator.ge), "above": (">", operator.gt), "at_most": ("<=", operator.le), "below": ("<", operator.lt)}


def check_options(who: str, op: str, **options) -> None:
    """For the constructor of a module class, `who`: raises when an option is none that the op takes as its attribute of that name."""
    attributes = {a.name: a for a in library.op(op).attributes}
    for name, value in options.items():
        a = attributes[name]
        _check_attribute(who, a, value)
        bounds = [(*_BOUNDS[kind], limit) for kind, limit in a.bounds.items()]
        if not all(within(value, limit) for _, within, limit in bounds):
            wanted = " and ".join(f"{sign} {limit:g}" for sign, _, limit in bounds)
            raise ArgumentError(f"{who}: {name} is {value:g}, but must be {wanted}")


def check_sizes(who: str, **sizes) -> None:
    """The same for sizes."""
    for name, value in sizes.items():
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            raise ArgumentTypeError(f"{who}: {name} must be a whole number, got {type(value).__name__}")
        if not 0 <= value < 2**63:
            raise ArgumentError(f"{who}: {name} is {value}, but must be >= 0 and fit into 64 bits")


def foreign(op: Op, arguments) -> ArgumentError | None:
    """The sentence about a tensor of a kind that no op takes; None when there is none."""
    for a, value in zip(op.inputs, arguments):
        for t in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(t, torch.Tensor) and (why := _kind(t)):
                return ArgumentError(f"{op.name}: {a.name} is {why}")
    return None


def _kind(t: torch.Tensor) -> str | None:
    if t.is_nested:
        return "a nested tensor, but must be a plain one: call .to_padded_tensor()"
    if t.layout != torch.strided:
        return f"a sparse tensor ({str(t.layout).removeprefix('torch.')}), but must be dense: call .to_dense()"
    if t.is_quantized:
        return "a quantised tensor, but must be a plain one: call .dequantize()"
    if t.device.type not in ("cpu", "cuda", "meta"):
        return f"on {t.device}, but must be on cpu or cuda"
    return None
