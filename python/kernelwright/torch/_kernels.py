"""The Python kernels of torch.ops.kernelwright.<op>, by dispatch key, in the order in which a call meets them:

  * AutocastCPU, AutocastCUDA: brings inputs to dtypes that fit together (_autocast.py);
  * FuncTorchBatched: torch.vmap (_vmap.py), through torch.library.register_vmap;
  * Autograd: records the gradient, or refuses what has none; turns a kernel's error into the exception that it is;
  * ADInplaceOrView: bumps the version counters of what an op writes to;
  * Negative: writes through a lazy negation.

Below them lie the kernels of the library (CPU and CUDA, faces/torch/kernel.cpp) and the fake ones (_fake.py)."""

import torch
from torch.autograd import forward_ad

from .._manifest import Op
from . import _arguments, _autocast, _autograd, _fake, _vmap


def register(op: Op, f: _autograd.Formula | None, public, private, library: torch.library.Library) -> None:
    """Everything that torch has to know about an op beside its kernels. `private` is `public` where the op has no saved results."""
    for target, results in {public: op.outputs, private: op.kept}.items():
        torch.library.register_fake(target._name, _fake.make_fake(op, results), lib=library)
        torch.library.register_vmap(target._name, _vmap.make_vmap(op, results, target), lib=library)
        autocast = _autocast.make_autocast(op, target)
        for device in ("CPU", "CUDA") if autocast else ():
            library.impl(_base(target), autocast(f"Autocast{device}"), f"Autocast{device}")
    if op.writes:
        for target in {public, private}:
            _writing(op, target, library)
        if op.backward_of:
            _on_copies(op, public, library)
    elif f is None:
        for target in {public, private}:
            library.impl(_base(target), _without_gradient(op, target), "Autograd", with_keyset=True)
    else:
        library.impl(_base(private), _differentiable(op, f, private), "Autograd", with_keyset=True)
        if private is not public:
            library.impl(_base(public), _through_private(op, public, private), "Autograd", with_keyset=True)


def _base(target) -> str:
    return target._name.split("::")[1].split(".")[0]


def _tensors(argument) -> list[torch.Tensor]:
    """Those that an argument holds: a list's elements, itself, or none."""
    return [t for t in (argument if isinstance(argument, (list, tuple)) else [argument]) if isinstance(t, torch.Tensor)]


def _below_autograd(op: Op, target, keyset, arguments):
    try:
        with torch._C._AutoDispatchBelowAutograd():
            return target.redispatch(keyset & torch._C._after_autograd_keyset, *arguments)
    except RuntimeError as e:
        raise _arguments.own_error(op, arguments, e) from None


def _in_function(op: Op, target, keyset, arguments):
    """The same inside an autograd.Function, which turns grad mode off: for this level alone, outer levels of torch.func still record."""
    if not torch._C._are_functorch_transforms_active():
        return _below_autograd(op, target, keyset, arguments)
    with torch.enable_grad():
        return _below_autograd(op, target, keyset, arguments)


def _wants_gradient(arguments) -> bool:
    return torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments)


def _refuse_tangents(op: Op, arguments) -> None:
    """Torch drops the tangents of dual tensors without a word where an op has no forward-mode derivative."""
    if getattr(forward_ad, "_current_level", -1) < 0:
        return
    for value in arguments:
        for t in _tensors(value):
            if forward_ad.unpack_dual(t).tangent is not None:
                raise _autograd.refusal(op, "forward")


def _differentiable(op: Op, f: _autograd.Formula, target):
    """`target` returns all kept results."""

    def forward(ctx, keyset, *arguments):
        results = _in_function(op, target, keyset, arguments)
        f.remember(ctx, arguments, results if isinstance(results, tuple) else (results,))
        return results

    plain = getattr(torch.ops.kernelwright, f.backward.name).default
    of_all = f.make_backward_of_all(_autograd.backward_call(f.backward, plain, in_graph(f.backward)))

    def backward(ctx, *gradients):
        return None, *of_all(ctx, *gradients)

    apply = _autograd.in_transforms(_autograd.make_apply(op.name, forward, backward))

    def kernel(keyset, *arguments):
        _refuse_tangents(op, arguments)
        if _wants_gradient(arguments):
            return apply(keyset, *op.fill(arguments))
        return _below_autograd(op, target, keyset, arguments)

    return kernel


def _through_private(op: Op, public, private):
    """An op with saved results: where a gradient is wanted, the private op computes them, and autograd keeps them."""

    def kernel(keyset, *arguments):
        _refuse_tangents(op, arguments)
        if _wants_gradient(arguments):
            results = private(*arguments)
            return results[0] if len(op.outputs) == 1 else results[: len(op.outputs)]
        return _below_autograd(op, public, keyset, arguments)

    return kernel


def _without_gradient(op: Op, target):
    def forward(ctx, keyset, arguments, *tensors):
        return _in_function(op, target, keyset, arguments)

    def refuse(ctx, *gradients):
        raise _autograd.refusal(op, "double" if op.backward_of else "none")

    apply = _autograd.in_transforms(_autograd.make_apply(op.name, forward, refuse))

    def kernel(keyset, *arguments):
        _refuse_tangents(op, arguments)
        if _wants_gradient(arguments):  # tensors of lists too: autograd looks at arguments alone
            return apply(keyset, arguments, *(t for a in arguments for t in _tensors(a)))
        return _below_autograd(op, target, keyset, arguments)

    return kernel


def _writing(op: Op, target, library) -> None:
    """Nobody bumps version counters for us, and without them a saved tensor that was overwritten gives a silently wrong gradient; so these
    kernels do, and refuse to write to anything that autograd watches. Inference mode skips the first of them.

    Torch's own kernel of the Negative key takes the first result for the tensor that was written to. These ops have no results: it would
    read beyond the dispatcher's stack (seen with 2.11: a corrupted heap)."""

    def write(keyset, *arguments):
        try:
            with torch._C._AutoDispatchBelowADInplaceOrView():
                result = target.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *arguments)
        except RuntimeError as e:
            raise _arguments.own_error(op, arguments, e) from None
        for i in op.writes:
            for t in _tensors(op.fill(arguments)[i]):
                torch.autograd.graph.increment_version(t)
        return result

    def kernel(keyset, *arguments):
        _refuse_tangents(op, arguments)
        if _wants_gradient(arguments):
            raise _autograd.refusal(op, "written")
        return write(keyset, *arguments)

    def negative(keyset, *arguments):
        given = op.fill(arguments)
        resolved = [torch.utils._pytree.tree_map_only(torch.Tensor, torch.resolve_neg, a) for a in given]
        result = target.redispatch(keyset.remove(torch._C.DispatchKey.Negative), *resolved)
        for i in op.writes:
            for t, r in zip(_tensors(given[i]), _tensors(resolved[i])):
                if t is not r:
                    t.copy_(r)
        return result

    library.impl(_base(target), kernel, "Autograd", with_keyset=True)
    library.impl(_base(target), write, "ADInplaceOrView", with_keyset=True)
    library.impl(_base(target), negative, "Negative", with_keyset=True)


def in_graph(backward: Op):
    """The op that computes a gradient with create_graph=True, called late: it may not be registered yet."""
    name = f"_{backward.name}_on_copies" if backward.writes else backward.name
    return lambda *arguments: getattr(torch.ops.kernelwright, name).default(*arguments)


_SCHEMA = {"enum": "str"}


def _on_copies(op: Op, public, library) -> None:
    """A backward op that writes its gradients over what the forward saved cannot do so where the graph lives on, nor for every sample of a
    vmap at once. There this one is called, which writes to copies and returns them."""
    name = f"_{op.name}_on_copies"
    written = [op.inputs[i] for i in op.writes]
    tensors = [f"Tensor{'[]' if t.is_list else '?' if t.optional else ''} {t.name}" for t in op.inputs]
    attributes = [f"{_SCHEMA.get(a.type, a.type)} {a.name}" for a in op.attributes]
    results = ", ".join("Tensor" for _ in written)
    library.define(f"{name}({', '.join(tensors + attributes)}) -> {results if len(written) == 1 else f'({results})'}")
    target = getattr(torch.ops.kernelwright, name).default

    def kernel(*arguments):
        arguments = [a.clone(memory_format=torch.contiguous_format) if i in op.writes else a for i, a in enumerate(arguments)]
        public(*arguments)
        return arguments[op.writes[0]] if len(written) == 1 else tuple(arguments[i] for i in op.writes)

    library.impl(name, kernel, "CompositeExplicitAutograd")
    library.impl(name, _without_gradient(op, target), "Autograd", with_keyset=True)
    torch.library.register_vmap(target._name, _vmap.make_vmap(op, written, target), lib=library)
