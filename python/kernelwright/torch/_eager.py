"""What the public functions call outside of torch.compile: the fast path where nothing but plain tensors is around, else the dispatcher.

The fast path is the C module kernelwright._fast. It rests on a handful of names that torch does not promise; each is looked up when this
package is imported, and where one is missing there is no fast path, only a slower call with the same results. `status` says which."""

import torch
from torch.autograd import forward_ad

from .._library import library
from .._manifest import Op, Tensor
from . import _autograd, _vmap

status = "not set up"
_fast = None


def _set_up():
    global _fast, status
    try:
        from .. import _fast as module

        errors = list(library.errors)
        errors[6] = torch.OutOfMemoryError
        checks = (
            torch._C._len_torch_dispatch_stack,
            torch._C._len_torch_function_stack,
            torch._C._are_functorch_transforms_active,
            torch._C._is_any_autocast_enabled,
            torch._C._is_tracing,
        )
        for check in checks:
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
            forward_ad.__dict__,
            tuple(errors),
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
    lists = [tuple(x) for x in (differentiable, save, keep, silent)]
    return _fast.make(role, library.address(op.name), _kinds(op), values, *numbers, slow, apply, *lists)


class Eager:
    """The callables of one op: `traced` for torch.compile, `entry` for everything else."""

    def __init__(self, op: Op, find):
        self.op = op
        self.public = getattr(torch.ops.kernelwright, op.name).default
        self.private = getattr(torch.ops.kernelwright, "_" + op.name).default
        self.formula = _autograd.formula(op, find)
        self._absent = [(k, op.inputs.index(i)) for k, r in enumerate(op.kept) for i in op.inputs if r.present_with == i.name]

    def finish(self, others) -> None:
        """Builds what needs other ops' callables; `others` gives an Eager by name."""
        backward = others(self.formula.backward.name) if self.formula else None
        self.transformable = _transformable(self, backward)
        self.traced = self._traced if self._absent else self.public
        self.entry = self._make_entry(backward)

    # ---- the dispatcher's way ------------------------------------------------------------------------------------------------
    def slow(self, *arguments):
        self._check_kinds(arguments)
        if torch._C._are_functorch_transforms_active() and not self.op.writes:
            kept = self._call(self.transformable.apply, arguments)
            results = kept if len(self.op.kept) == len(self.op.outputs) else self._outputs(kept)
        else:
            results = self._call(self.public, arguments)
        return self._with_none(arguments, results) if self._absent else results

    def all_results(self, *arguments) -> tuple:
        """All kept results as a tuple, None for an absent one: for the fast forward, where it cannot read an argument itself."""
        self._check_kinds(arguments)
        results = self._with_none(arguments, self._call(self.private, arguments))
        return results if isinstance(results, tuple) else (results,)

    def _call(self, target, arguments):
        """Torch turns every exception of a kernel into a RuntimeError; our own sentences become what they are again."""
        try:
            return target(*arguments)
        except RuntimeError as e:
            own = library.exception_for(str(e)) if type(e) is RuntimeError else None
            if own is None:
                raise
            raise own from None

    def _outputs(self, kept):
        return kept[0] if len(self.op.outputs) == 1 else kept[: len(self.op.outputs)]

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

    def _check_kinds(self, arguments):
        for a, value in zip(self.op.inputs, arguments):
            if value is None and a.optional:
                continue
            for t in value if a.is_list and isinstance(value, (list, tuple)) else [value]:
                if not isinstance(t, torch.Tensor) and not hasattr(t, "__torch_function__"):
                    wanted = "a list of torch.Tensor" if a.is_list else "a torch.Tensor"
                    raise TypeError(f"{self.op.name}: {a.name} must be {wanted}, got {type(t).__name__}")

    # ---- the fast way --------------------------------------------------------------------------------------------------------
    def _make_entry(self, backward):
        op, f = self.op, self.formula
        if _fast is None or op.writes or any(i.is_list for i in op.inputs):
            return self.slow
        tensors = range(len(op.inputs))
        if f is None or f.saves:  # a saved result must be an output of the node that refuses a second derivative: the dispatcher's has it
            return _make("entry", op, self.slow, self.slow, differentiable=tensors)
        fast_backward = _make("entry", f.backward, backward.slow)
        graph_backward = backward.public

        def call(*arguments):  # grad mode is on inside a backward only with create_graph=True
            return (graph_backward if torch.is_grad_enabled() else fast_backward)(*arguments)

        forward = _make("forward", op, self.all_results, save=f.save, keep=f.keep, silent=[-1 - k for k in f.silent])
        methods = {"forward": staticmethod(forward), "backward": staticmethod(f.make_backward(call))}
        function = type(f"Kernelwright_{op.name}", (torch.autograd.Function,), methods)
        apply = super(torch.autograd.Function, function).apply  # C's apply without Function.apply's Python layer: 1-2 us less
        self._function = function
        return _make("entry", op, self.slow, apply, differentiable=tensors)


def _transformable(eager: Eager, backward: Eager | None):
    op = eager.op
    backward_function = backward and _transformable(backward, None)

    def call_backward(*arguments):
        return backward_function.apply(*arguments)

    function = None

    def call(*arguments):
        return function.apply(*arguments)

    vmap = _vmap.make_vmap(op, op.kept, call)
    function = _autograd.make_transformable(op, eager.formula, eager.private, call_backward, vmap)
    return function
