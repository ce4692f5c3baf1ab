"""accelerate(model): put Kernelwright's operators into a model that exists already.

Rooms say which module classes their op can serve (`SWAPS` in kw/ops/<room>/<room>_torch.py); this file only walks the model. A module is
swapped by giving it a subclass of its own class with another `forward`: parameters, buffers, hooks, state_dict keys and isinstance checks
stay what they were, and undoing it is giving the class back.
"""

from __future__ import annotations

import copyreg
import dataclasses
import weakref
from collections import Counter
from collections.abc import Callable

import torch

swaps: list[Swap] = []  # of all rooms; filled when kernelwright.torch loads them


@dataclasses.dataclass(frozen=True)
class Swap:
    """One module class that an op can serve.

    target: the class, as "package.module.ClassName"; matched by name, so that nothing is imported for it.
    op: the contract's name, for the report.
    forward: the new forward(self, ...). What the op does not serve (another dtype, say) it hands to self._stock_forward(...).
    refuse: looks at one module and returns why it cannot be swapped, or None.
    """

    target: str
    op: str
    forward: Callable
    refuse: Callable[[torch.nn.Module], str | None] = lambda module: None


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
        return "\n".join(lines) or "no module that an op of ours could serve; those are " + ", ".join(s.target for s in swaps)


def _qualified(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _swapped_class(original: type, swap: Swap) -> type:
    """The subclass, one per (class, swap), so that modules of a class stay of one class."""
    key = (original, swap)
    if key not in _classes:
        _classes[key] = type(
            original.__name__,
            (original,),
            {
                "forward": swap.forward,
                "_stock_forward": original.forward,
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
    if "forward" in vars(module):
        return "its forward has been replaced on the instance"
    return swap.refuse(module)


def accelerate(model: torch.nn.Module) -> Report:
    """Swaps, in place, the modules of `model` that one of the ops can serve; returns what was swapped and what not, and why.

    The model computes the same function up to rounding, in the same dtypes: where an op does not serve a dtype, the stock code runs.
    Parameters keep their identity, so optimisers made before stay valid; state_dict keys and hooks stay. A copy (copy.deepcopy) or a
    pickle of a swapped module is of the original class. Calling it twice is harmless.
    Raises TypeError when `model` is no module.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"accelerate: model must be a torch.nn.Module, got {type(model).__name__}")
    offered = {swap.target: swap for swap in swaps}
    report = Report([], [])
    for name, module in model.named_modules():
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
        why = _reason(module, swap)
        if why is not None:
            report.left.append((name, cls.__name__, why))
            continue
        ours = _swapped_class(cls, swap)
        module.__class__ = ours
        report.swapped.append((name, cls.__name__, swap.op))
        report._modules.append((weakref.ref(module), cls, ours))
    return report
