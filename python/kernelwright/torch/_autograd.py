"""Gradients, from the contract's gradient clause. Three places need them, each with what the others cannot do:

  * torch.ops.kernelwright.<op>: torch.library.register_autograd, for torch.compile, export and the dispatcher's users;
  * the eager fast path: an autograd.Function whose forward is a C function (_eager.py);
  * torch.func transforms: an autograd.Function in the new style, with setup_context and vmap.

All keep the same tensors (inputs, outputs, saved results that the clause names) and run the same backward op. A second derivative does
not exist and is refused by a sentence; so is forward mode, which torch would otherwise drop without a word."""

from dataclasses import dataclass

import torch
from torch.autograd import forward_ad

from .._manifest import Op

_REFUSALS = {
    "double": "{backward} has no gradient of its own: {forward} cannot be differentiated a second time",
    "none": "{op} has no gradient: call it under torch.no_grad() or on detached tensors",
    "written": "{op} writes to its arguments and has no gradient: call it under torch.no_grad() or on detached tensors",
    "forward": "{op} has no forward-mode derivative (jvp, dual tensors); reverse mode works",
}


def refusal(op: Op, why: str) -> RuntimeError:
    forward = op.backward_of or op.name
    backward = op.gradient.op if op.gradient else op.name
    return RuntimeError(_REFUSALS[why].format(op=op.name, forward=forward, backward=backward))


@dataclass(frozen=True)
class Formula:
    """A gradient clause resolved to positions."""

    op: Op
    backward: Op
    save: list[int]  # tensors to keep: i is argument i, -1-k is kept result k
    keep: list[int]  # attributes the backward needs, by argument
    sources: list  # of the backward's arguments: ("gradient", output) | ("saved", place in save) | ("attribute", place in keep)
    targets: list[tuple]  # (input, the result of the backward that is its gradient)
    silent: list[int]  # outputs without a gradient

    def source(self, name: str = "backward") -> str:
        """The backward as Python source; `call` is the backward op. Reads like what one would write by hand:

        def backward(ctx, d_y):
            if d_y is None:
                return None, None, None
            s_x, s_weight, = ctx.saved_tensors
            a_eps, = ctx.attributes
            g_dx, g_dweight = call(d_y, s_x, s_weight, a_eps)
            return g_dx, None if s_weight is None else g_dweight, None
        """
        arguments = self.op.arguments
        outputs = [f"d_{r.name}" for r in self.op.outputs]
        used = [outputs[at] for kind, at in self.sources if kind == "gradient"]
        saved = [f"s_{arguments[i].name if i >= 0 else self.op.kept[-1 - i].name}" for i in self.save]
        kept = [f"a_{arguments[i].name}" for i in self.keep]
        names = {"gradient": outputs, "saved": saved, "attribute": kept}
        call = ", ".join(names[kind][at] for kind, at in self.sources)
        results = self.backward.outputs or [self.backward.inputs[i] for i in self.backward.writes]
        made = [f"g_{r.name}" for r in results]
        back = ["None"] * len(arguments)
        for target, at in self.targets:
            place, result = made[at], results[at]
            back[target] = place
            if result.present_with:  # absent is an empty tensor for the dispatcher, None for autograd
                kind, at = self.sources[[i.name for i in self.backward.inputs].index(result.present_with)]
                back[target] = f"None if {names[kind][at]} is None else {place}"
        lines = [f"def {name}(ctx, {', '.join(outputs)}):"]
        if len(used) == 1:
            lines += [f"    if {used[0]} is None:", f"        return {', '.join(['None'] * len(back))},"]
        if saved:
            lines.append(f"    {', '.join(saved)}, = ctx.saved_tensors")
        if kept:
            lines.append(f"    {', '.join(kept)}, = ctx.attributes")
        if self.backward.outputs:
            lines.append(f"    {', '.join(made)} = call({call})")
        else:  # the gradients lie in the tensors that the backward wrote to
            written = [names[kind][at] for kind, at in (self.sources[i] for i in self.backward.writes)]
            lines += [f"    call({call})", f"    {', '.join(made)} = {', '.join(written)}"]
        lines.append(f"    return {', '.join(back)},")
        return "\n".join(lines) + "\n"

    def make_backward(self, call):
        scope = {"call": call}
        exec(compile(self.source(), f"<gradient of {self.op.name}>", "exec"), scope)
        return scope["backward"]

    @property
    def saves(self) -> bool:
        """Whether the op has results that only autograd sees."""
        return len(self.op.kept) != len(self.op.outputs)

    def remember(self, ctx, arguments, results) -> None:
        """setup_context: `results` are all kept results, a tuple."""
        ctx.save_for_backward(*(arguments[i] if i >= 0 else results[-1 - i] for i in self.save))
        ctx.attributes = tuple(arguments[i] for i in self.keep)
        if self.silent:
            ctx.mark_non_differentiable(*(results[i] for i in self.silent))
        if self.saves or len(self.op.outputs) - len(self.silent) == 1:
            ctx.set_materialize_grads(False)
        if self.saves:
            ctx.likes = [(r.shape, r.dtype, r.device) for r in results[: len(self.op.outputs)]]

    def make_backward_of_all(self, call):
        """The backward of a function that returns all kept results. Nothing flows into a saved result but a second derivative."""
        backward, count = self.make_backward(call), len(self.op.outputs)
        if not self.saves:
            return backward

        def backward_of_all(ctx, *gradients):
            if any(g is not None for g in gradients[count:]):
                raise refusal(self.op, "double")
            own = gradients[:count]
            if any(g is not None for g in own):
                zeros = (torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.likes)
                own = [z if g is None else g for g, z in zip(own, zeros)]
            return backward(ctx, *own)

        return backward_of_all


def formula(op: Op, find) -> Formula | None:
    """The resolved gradient of an op; None when it has none. `find` gives an op by its name."""
    g = op.gradient
    if g is None or op.writes or any(i.is_list for i in op.inputs):
        return None
    backward = find(g.op)
    inputs = [i.name for i in op.inputs]
    attributes = {a.name: len(inputs) + k for k, a in enumerate(op.attributes)}
    kept = [r.name for r in op.kept]
    outputs = [r.name for r in op.outputs]
    save, keep, sources = [], [], []

    def place(position, positions):
        if position not in positions:
            positions.append(position)
        return positions.index(position)

    for name in g.arguments:
        if name in inputs:
            sources.append(("saved", place(inputs.index(name), save)))
        elif name in kept:
            sources.append(("saved", place(-1 - kept.index(name), save)))
        elif name in attributes:
            sources.append(("attribute", place(attributes[name], keep)))
        else:  # d<output>: the contract's check has made sure of it
            sources.append(("gradient", outputs.index(name[1:])))
    silent = [k for k in range(len(outputs)) if ("gradient", k) not in sources]
    targets = [(inputs.index(t[1:]), result) for t, result in zip(g.targets, g.results)]
    return Formula(op, backward, save, keep, sources, targets, silent)


def refuse_tangents(op: Op, arguments) -> None:
    """Torch drops the tangents of dual tensors without a word where an op has no forward-mode derivative."""
    if getattr(forward_ad, "_current_level", -1) < 0:
        return
    for value in arguments:
        for t in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(t, torch.Tensor) and forward_ad.unpack_dual(t).tangent is not None:
                raise refusal(op, "forward")


class _Guarded:
    """A torch.library.Library whose Autograd kernels refuse tangents first."""

    def __init__(self, library: torch.library.Library, op: Op):
        self._library, self._op = library, op

    def impl(self, name, kernel, key, with_keyset):
        def guarded(keyset, *arguments):
            refuse_tangents(self._op, arguments)
            return kernel(keyset, *arguments)

        self._library.impl(name, guarded, key, with_keyset=with_keyset)


def register(op: Op, f: Formula | None, public, private, library: torch.library.Library) -> None:
    """Autograd of torch.ops.kernelwright.<op>."""
    library = _Guarded(library, op)
    if op.writes:
        _protect_written(op, public, library)
        return
    if f is None:
        why = "double" if op.backward_of else "none"

        def refuse(ctx, *gradients):
            raise refusal(op, why)

        torch.library.register_autograd(public._name, refuse, lib=library)
        return
    target = private if f.saves else public
    backward = f.make_backward_of_all(getattr(torch.ops.kernelwright, f.backward.name).default)

    def setup_context(ctx, inputs, output):
        f.remember(ctx, inputs, output if isinstance(output, tuple) else (output,))

    torch.library.register_autograd(target._name, backward, setup_context=setup_context, lib=library)
    if f.saves:
        _route_to_private(op, public, private, library)


def _route_to_private(op, public, private, library):
    """An op with saved results: where a gradient is wanted, the private op computes them, and autograd keeps them."""

    def kernel(keyset, *arguments):
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
            results = private(*arguments)
            return results[0] if len(op.outputs) == 1 else results[: len(op.outputs)]
        with torch._C._AutoDispatchBelowAutograd():
            return public.redispatch(keyset & torch._C._after_autograd_keyset, *arguments)

    library.impl(op.name, kernel, "Autograd", with_keyset=True)


def _protect_written(op, public, library):
    """An op that writes to its arguments. Nobody bumps version counters for us, and without them a saved tensor that was overwritten
    gives a silently wrong gradient; so this kernel does, and refuses to write to anything that autograd watches."""

    def kernel(keyset, *arguments):
        arguments = op.fill(arguments)
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
            raise refusal(op, "written")
        for i in op.writes:
            written = arguments[i]
            for t in written if isinstance(written, (list, tuple)) else [written]:
                if t is not None:
                    torch.autograd.graph.increment_version(t)
        with torch._C._AutoDispatchBelowADInplaceOrView():
            return public.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *arguments)

    library.impl(op.name, kernel, "Autograd", with_keyset=True)


def make_transformable(op: Op, f: Formula | None, call, backward, vmap):
    """The autograd.Function for torch.func transforms and forward-mode levels: `call` returns all kept results, `backward` is the same kind
    of function for the backward op."""

    def forward(*arguments):
        return call(*arguments)

    def setup_context(ctx, inputs, output):
        if f:
            f.remember(ctx, op.fill(inputs), output if isinstance(output, tuple) else (output,))

    def refuse(ctx, *gradients):
        raise refusal(op, "double" if op.backward_of else "none")

    def jvp(ctx, *tangents):
        raise refusal(op, "forward")

    methods = {
        "forward": forward,
        "setup_context": setup_context,
        "backward": f.make_backward_of_all(backward) if f else refuse,
        "jvp": jvp,
        "vmap": vmap,
    }
    return type(f"Kernelwright_{op.name}", (torch.autograd.Function,), {k: staticmethod(v) for k, v in methods.items()})
