"""accelerate(model): put Kernelwright's operators into a model that exists already.

Rooms say which classes their op can serve (`SWAPS` in kw/ops/<room>/<room>_torch.py); this file only walks the model. A module is swapped
by giving it a subclass of its own class with another `forward` (or other members): parameters, buffers, hooks, state_dict keys and
isinstance checks stay what they were, and undoing it is giving the class back. docs/adr/0011 says why, and what is left alone.
"""

from __future__ import annotations

import copyreg
import dataclasses
import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Mapping

import torch
from torch.nn.modules.module import _has_any_global_hook

from .._errors import ArgumentError, ArgumentTypeError
from .._library import library
from . import _plain
from ._fake import DTYPES
from ._fingerprint import class_fingerprint

swaps: list[Swap] = []  # of all rooms; filled when kernelwright.torch loads them


@dataclasses.dataclass(frozen=True, eq=False)
class Swap:
    """One class that an op can serve.

    target: the class, as "package.module.ClassName"; matched by name, so that nothing is imported for it.
    op: the contract's name, for the report; None for a class that is known and left alone: `refuse` says why.
    forward: the new forward(self, ...). What the op does not serve (another dtype, say) it hands to self._stock_forward(...). None: stays.
    refuse: looks at one module and returns why it cannot be swapped, or None.
    fingerprints: of the sources that `forward` was written for (_fingerprint.py); a class with another one is left alone. Empty: any
        source, but it has to be the class's own.
    members: what else the subclass gets, by name. What the class had under a member's name is there as _stock_<name>.
    """

    target: str
    op: str | None
    forward: Callable | None = None
    refuse: Callable[[torch.nn.Module], str | None] = lambda module: None
    fingerprints: tuple[str, ...] = ()
    members: Mapping[str, object] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Report:
    """What accelerate() did. `undo()` gives every module its own class back."""

    swapped: list[tuple[str, str, str]]  # (module name, class name, op)
    left: list[tuple[str, str, str]]  # (module name, class name, reason)
    _modules: list[tuple[weakref.ref, type, type]] = dataclasses.field(default_factory=list, repr=False)

    def counts(self) -> dict[str, int]:
        """Swapped modules per op."""
        return dict(Counter(op for _, _, op in self.swapped))

    def undo(self) -> int:
        """Returns how many modules got their class back; those changed again by somebody else since are left alone."""
        undone = 0
        for ref, original, ours in self._modules:
            module = ref()
            if module is not None and type(module) is ours:
                module.__class__ = original
                undone += 1
        self._modules.clear()
        return undone

    def __str__(self) -> str:
        lines = [f"{n} x {cls} -> {op}" for (cls, op), n in Counter((c, o) for _, c, o in self.swapped).items()]
        lines += [f"{n} x {cls} left alone: {why}" for (cls, why), n in Counter((c, w) for _, c, w in self.left).items()]
        return "\n".join(lines)


# ---- for the rooms -----------------------------------------------------------------------------------------------------------------


def transformers_swaps(names: str, *arguments, **named) -> list[Swap]:
    """One Swap for each of several classes of transformers: "phi3.Phi3MLP" is in transformers.models.phi3.modeling_phi3."""
    pairs = [name.split(".") for name in names.split()]
    return [Swap(f"transformers.models.{folder}.modeling_{folder}.{name}", *arguments, **named) for folder, name in pairs]


def served_dtypes(op: str, argument: str) -> frozenset[torch.dtype]:
    """The dtypes that the contract of `op` allows for one of its inputs, those tied to another input's type left out."""
    known = library.op(op)
    element = next(t.element for t in known.inputs if t.name == argument)
    options = known.types[element["variable"]] if isinstance(element, dict) else [element]
    return frozenset(DTYPES[o] for o in options if o in DTYPES)


def is_served(x: torch.Tensor, dtypes: frozenset[torch.dtype]) -> bool:
    """Whether an op of ours can take the tensor: of one of `dtypes`, on a device we run on, not distributed over several."""
    # 0.3 us; x.device.type alone would take 0.6.
    return x.dtype in dtypes and (x.is_cuda or x.is_cpu or x.is_meta) and (type(x) in _PLAIN or not hasattr(x, "device_mesh"))


_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


def only_forwards(module: torch.nn.Module) -> bool:
    """Whether calling the module does nothing but its class's forward: no hooks, nothing put on the instance. Then another module may
    call the op in its stead."""
    hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return not (hooks or "forward" in module.__dict__ or module._compiled_call_impl is not None or _has_any_global_hook())


# ---- the walk ----------------------------------------------------------------------------------------------------------------------


def _qualified(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _swapped_class(original: type, swap: Swap) -> type:
    """The subclass, one per (class, swap), so that modules of a class stay of one class."""
    key = (original, swap)
    if key not in _classes:
        members = {**({"forward": swap.forward} if swap.forward else {}), **swap.members}
        stock = {f"_stock_{name}": inspect.getattr_static(original, name) for name in members if hasattr(original, name)}
        _classes[key] = type(
            original.__name__,
            (original,),
            {
                **stock,
                **members,
                "__module__": original.__module__,
                "__qualname__": original.__qualname__,
                "__doc__": original.__doc__,
                "_kernelwright": swap,
                # A copy or a pickle holds the original class: files do not depend on this library.
                "__reduce_ex__": _reduce_as(original),
            },
        )
    return _classes[key]


def _reduce_as(original: type) -> Callable:
    def reduce(self: torch.nn.Module, protocol: int):
        make, args, *rest = original.__reduce_ex__(self, protocol)
        if make is copyreg.__newobj__:  # pickle insists that this one gets the object's own class; the older one takes any
            return copyreg._reconstructor, (original, object, None), *rest
        return make, args, *rest

    return reduce


_classes: dict[tuple[type, Swap], type] = {}


def _reason(module: torch.nn.Module, swap: Swap) -> str | None:
    """Why the module, whose class has the right name, is left alone."""
    if "forward" in vars(module):
        return "its forward has been replaced on the instance"
    if swap.forward is not None:
        fingerprint = class_fingerprint(type(module))
        if fingerprint is None:
            return "its class has been changed by other hands, or comes without source"
        if swap.fingerprints and fingerprint not in swap.fingerprints:
            return f"its source is not one that we know (fingerprint {fingerprint})"
    return swap.refuse(module)


def accelerate(model: torch.nn.Module, ops: Collection[str] | None = None) -> Report:
    """Swaps, in place, the modules of `model` that one of the ops can serve; returns what was swapped and what not, and why.

    The model computes the same function up to rounding, in the same dtypes: where an op does not serve a dtype, the stock code runs.
    Parameters keep their identity, so optimisers made before stay valid; state_dict keys and hooks stay. A copy (copy.deepcopy) or a
    pickle of a swapped module is of the original class. Calling it twice is harmless. Call it before torch.compile and before wrappers
    that change a module's class (fully_shard), which are left alone.
    undo() gives the stock code back.
    ops: names of the ops to put in; None means all. An op that builds upon a swap of another one (a layer upon its norm) needs that too.
    Raises kernelwright.ArgumentTypeError (a TypeError) when `model` is no module or `ops` no list, ArgumentError for an op that no swap
    knows.
    """
    if not isinstance(model, torch.nn.Module):
        raise ArgumentTypeError(f"accelerate: model must be a torch.nn.Module, got {type(model).__name__}")
    if ops is not None and (isinstance(ops, str) or not isinstance(ops, Collection)):
        raise ArgumentTypeError(f"accelerate: ops must be a list of names of ops or None, got {type(ops).__name__}")
    known = sorted({swap.op for swap in swaps if swap.op})
    for op in ops or ():
        if op not in known:
            raise ArgumentError(f"accelerate: ops names {op!r}, which serves no class of a model; those that do are {', '.join(known)}")
    offered = {swap.target: swap for swap in swaps}
    report = Report([], [])
    # Parts before the whole: what a layer can do depends on what its norm has become.
    for name, module in reversed(list(model.named_modules())):
        cls = type(module)
        if "_kernelwright" in vars(cls):
            report.left.append((name, cls.__name__, "swapped already"))
            continue
        swap = offered.get(_qualified(cls))
        if swap is None:
            parent = next((offered[_qualified(c)] for c in cls.__mro__[1:] if _qualified(c) in offered), None)
            if parent is not None:
                report.left.append((name, cls.__name__, f"a subclass of {parent.target.rsplit('.', 1)[1]} that may compute something else"))
            continue
        if swap.op in _plain.disabled:
            why = f"KERNELWRIGHT_DISABLE names {swap.op}"
        elif ops is None or swap.op is None or swap.op in ops:
            why = _reason(module, swap)
        else:
            why = f"{swap.op} was not asked for"
        if why is not None:
            report.left.append((name, cls.__name__, why))
            continue
        ours = _swapped_class(cls, swap)
        module.__class__ = ours
        report.swapped.append((name, cls.__name__, swap.op))
        report._modules.append((weakref.ref(module), cls, ours))
    for entries in (report.swapped, report.left, report._modules):
        entries.reverse()  # in the order of the model
    if not report.swapped and not report.left:
        known = ", ".join(swap.target.rsplit(".", 1)[1] for swap in swaps if swap.op is not None)
        report.left.append(("", type(model).__name__, f"no part of it is of a class that we know; those are {known}"))
    return report
