"""Gradients, from the contract's gradient clause. Two places need them:

  * torch.ops.kernelwright.<op>: the kernel of the Autograd key (_kernels.py), for torch.compile, export, torch.func and whoever calls it;
  * the eager fast path: an autograd.Function whose forward is a C function (_eager.py).

Both keep the same tensors (inputs, outputs, saved results that the clause names) and run the same backward op. A second derivative does
not exist and is refused by a sentence; so is forward mode, which torch would otherwise drop without a word."""

from dataclasses import dataclass

import torch
import torch._functorch.utils as _functorch

from .._manifest import Op

_REFUSALS = {
    "double": "{backward} has no gradient of its own: {forward} cannot be differentiated a second time",
    "spent": "{forward} cannot go backward a second time: {backward} has written the gradient over what {forward} saved; pass "
    "retain_graph=True to the first backward, or call {forward} again",
    "none": "{op} has no gradient: call it under torch.no_grad() or on detached tensors",
    "written": "{op} writes to its arguments and has no gradient: call it under torch.no_grad() or on detached tensors",
    "forward": "{op} has no forward-mode derivative (jvp, dual tensors); reverse mode works",
}


# A private name, though torch's own compiler relies on it. Without it a second backward of such an op is refused, retained or not.
_graph_is_retained = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: False)


def refusal(op: Op, why: str) -> RuntimeError:
    forward = op.backward_of or op.name
    backward = op.gradient.op if op.gradient else op.name
    return RuntimeError(_REFUSALS[why].format(op=op.name, forward=forward, backward=backward))


def make_apply(name: str, forward, backward):
    """apply of an autograd.Function: C's own, without the Python layer of Function.apply, which takes 1-2 us and refuses torch.func."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function = type(f"Kernelwright_{name}", (torch.autograd.Function,), methods)
    return super(torch.autograd.Function, function).apply


def backward_call(backward: Op, plain, in_graph):
    """What a backward calls: `plain` is the op. `in_graph` is for create_graph=True, which alone leaves grad mode on inside a backward;
    where the op writes its gradients over its inputs, that one works on copies, and retain_graph=True needs it too."""
    writes = backward.writes

    def call(*arguments):
        if torch.is_grad_enabled() or (writes and _graph_is_retained()):
            results = in_graph(*arguments)
            return (results,) if len(writes) == 1 else results
        results = plain(*arguments)
        return tuple(arguments[i] for i in writes) if writes else results

    return call


def in_transforms(apply):
    """The same where torch.func may be active: it forbids such a Function, unless told that each of its levels is dealt with alone. So
    it is where the Function is called below the dispatcher's Autograd key."""

    def apply_there(*arguments):
        if not torch._C._are_functorch_transforms_active():
            return apply(*arguments)
        with _functorch.enable_single_level_autograd_function():
            return apply(*arguments)

    return apply_there


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
        if self.backward.writes:
            lines += ["    if getattr(ctx, 'spent', False):", "        raise spent()"]
        if saved:
            lines.append(f"    {', '.join(saved)}, = ctx.saved_tensors")
        if kept:
            lines.append(f"    {', '.join(kept)}, = ctx.attributes")
        if self.backward.outputs:
            lines.append(f"    {', '.join(made)} = call({call})")
        else:  # the gradients lie in the tensors that the backward wrote to, or in copies of them where the graph lives on
            written = [names[kind][at] for kind, at in (self.sources[i] for i in self.backward.writes)]
            lines.append(f"    {', '.join(made)}, = call({call})")
            lines.append(f"    ctx.spent = {made[0]} is {written[0]}")
        lines.append(f"    return {', '.join(back)},")
        return "\n".join(lines) + "\n"

    def make_backward(self, call):
        """`call` is the backward op; one that writes its gradients over its inputs returns those."""
        scope = {"call": call, "spent": lambda: refusal(self.op, "spent")}
        exec(compile(self.source(), f"<gradient of {self.op.name}>", "exec"), scope)
        return scope["backward"]

    @property
    def saves(self) -> bool:
        """Whether the op has results that only autograd sees."""
        return len(self.op.kept) != len(self.op.outputs)

    def remember(self, ctx, arguments, results) -> None:
        """What the backward needs, from the forward's arguments and all kept results, a tuple."""
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
            if count - len(self.silent) > 1 and any(g is not None for g in own):
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
