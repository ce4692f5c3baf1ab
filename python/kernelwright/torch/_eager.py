"""What the public functions call outside of torch.compile: the fast path where nothing but plain tensors is around, else the dispatcher.

The fast path is the C module kernelwright._fast. It rests on a handful of names that torch does not promise; each is looked up when this
package is imported, and where one is missing there is no fast path, only a slower call with the same results. `status` says which."""

import torch
from torch.autograd import forward_ad

from .. import _errors
from .._library import library
from .._manifest import Op
from . import _arguments, _autograd, _kernels

status = "not set up"
_fast = None


class OutOfMemoryError(_errors.OutOfMemoryError, torch.OutOfMemoryError):
    """kernelwright.OutOfMemoryError, and torch's own too, for programs that catch that one."""


library.errors = tuple(OutOfMemoryError if e is _errors.OutOfMemoryError else e for e in library.errors)


def _set_up():
    global _fast, status
    try:
        from .. import _fast as module

        checks = (
            torch._C._len_torch_dispatch_stack,
            torch._C._len_torch_function_stack,
            torch._C._are_functorch_transforms_active,
            torch._C._is_tracing,
        )
        for check in (*checks, torch._C._is_any_autocast_enabled):
            check()
        if not isinstance(forward_ad._current_level, int):
            raise AttributeError("torch.autograd.forward_ad._current_level")
        module.setup(
            library.path,
            torch.Tensor,
            torch.nn.Parameter,
            torch.Tensor.__dlpack_c_exchange_api__,
            checks,
            torch.Tensor.is_neg,
            torch._C._is_any_autocast_enabled,
            torch._C._increment_version,
            forward_ad.__dict__,
            library.errors,
        )
        _fast, status = module, "on"
    except Exception as e:
        status = f"off: {type(e).__name__}: {e}"


_set_up()

_KINDS = {"float": "f", "int": "i", "bool": "b", "str": "s", "enum": "e"}


def _kinds(op: Op) -> str:
    letters = ["L" if i.is_list else "O" if i.optional else "T" for i in op.inputs]
    return "".join(letters + [_KINDS[a.type] for a in op.attributes])


def _make(role, op: Op, slow, apply=None, differentiable=(), save=(), keep=(), silent=()):
    values = tuple(getattr(a, "values", ()) for a in op.arguments)
    numbers = len(op.inputs), len(op.outputs), len(op.kept)
    lists = [tuple(x) for x in (differentiable, op.writes, save, keep, silent)]
    return _fast.make(role, library.address(op.name), _kinds(op), values, *numbers, slow, apply, *lists)


class Eager:
    """The callables of one op: `traced` for torch.compile, `entry` for everything else."""

    def __init__(self, op: Op, find):
        self.op = op
        self.public = getattr(torch.ops.kernelwright, op.name).default
        saves = len(op.kept) != len(op.outputs)
        self.private = getattr(torch.ops.kernelwright, "_" + op.name).default if saves else self.public
        self.formula = _autograd.formula(op, find)
        self._absent = [(k, op.inputs.index(i)) for k, r in enumerate(op.kept) for i in op.inputs if r.present_with == i.name]

    def finish(self, others) -> None:
        """Builds what needs other ops' callables; `others` gives an Eager by name."""
        self.traced = self._traced if self._absent else self.public
        self.entry = self._make_entry(others(self.formula.backward.name) if self.formula else None)

    # ---- the dispatcher's way ------------------------------------------------------------------------------------------------
    def slow(self, *arguments):
        results = self._call(self.public, arguments)
        return self._with_none(arguments, results) if self._absent else results

    def all_results(self, *arguments) -> tuple:
        """All kept results as a tuple, None for an absent one: for the fast forward, where it cannot read an argument itself."""
        results = self._with_none(arguments, self._call(self.private, arguments))
        return results if isinstance(results, tuple) else (results,)

    def _call(self, target, arguments):
        _arguments.check(self.op, arguments)
        try:
            return target(*arguments)
        except RuntimeError as e:
            raise _arguments.own_error(self.op, arguments, e) from None

    def _traced(self, *arguments):
        return self._with_none(arguments, self.public(*arguments))

    def _with_none(self, arguments, results):
        """The dispatcher has no absent result, an empty tensor stands for it; outside it is None."""
        if not isinstance(results, tuple):
            return None if self._absent and arguments[self._absent[0][1]] is None else results
        results = list(results)
        for k, i in self._absent:
            if k < len(results) and arguments[i] is None:
                results[k] = None
        return tuple(results)

    # ---- the fast way --------------------------------------------------------------------------------------------------------
    def _make_entry(self, backward):
        op, f = self.op, self.formula
        if _fast is None or any(i.is_list for i in op.inputs):
            return self.slow
        tensors = range(len(op.inputs))
        if f is None:
            return _make("entry", op, self.slow, self.slow, differentiable=tensors)
        if f.saves and len(op.outputs) - len(f.silent) != 1:  # an output that got no gradient would need zeros of its own
            return _make("entry", op, self.slow, self.slow, differentiable=tensors)
        fast_backward = _make("entry", f.backward, backward.slow, backward.slow)
        call = _autograd.backward_call(f.backward, fast_backward, _kernels.in_graph(f.backward))
        forward = _make("forward", op, self.all_results, save=f.save, keep=f.keep, silent=[-1 - k for k in f.silent])
        apply = _autograd.make_apply(op.name, forward, f.make_backward_of_all(call))
        return _make("entry", op, self.slow, apply, differentiable=tensors)
