"""The autocast rule, one for all ops: **an op runs in the dtypes that it is given.** Sums are kept in acc(T) inside the kernels, so what
torch's fp32 list is for (norms, losses) holds without a cast, and a loss that its contract declares f32 is f32. Only where the inputs do
not fit together, as a bf16 projection beside an f32 residual, they are promoted to the widest of them, as on torch's promote list.

So: x bf16, weight f32 -> the contract knows the pair, nothing is cast, the result is bf16; gate bf16, up f32 -> both f32, the result too;
bf16 beside f16 -> f32. The backward runs in the same dtypes as the forward. Gradients come back in each input's own dtype."""

import torch

from .._manifest import Op
from ._fake import DTYPES, _dtype


def _is_float(value) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def promoted(op: Op, arguments) -> list:
    """The arguments, floating tensors in the first dtypes of the contract that hold what they are. Without such, they stay, for the op to
    refuse."""
    widest = {}
    for t, value in zip(op.inputs, arguments):
        if isinstance(t.element, dict) and "variable" in t.element and _is_float(value):
            name = t.element["variable"]
            widest[name] = torch.promote_types(widest.get(name, value.dtype), value.dtype)
    types = _first_that_holds(list(op.types.items()), widest, {})
    if types is None:
        return list(arguments)
    out = list(arguments)
    for i, (t, value) in enumerate(zip(op.inputs, arguments)):
        if _is_float(value) and (dtype := DTYPES[_dtype(t.element, types)]).is_floating_point:
            out[i] = value.to(dtype)
    return out


def _first_that_holds(variables, widest, chosen) -> dict | None:
    if not variables:
        return chosen
    (name, options), *rest = variables
    for option in options:
        option = chosen[option["variable"]] if isinstance(option, dict) else option
        if name not in widest or torch.promote_types(DTYPES[option], widest[name]) == DTYPES[option]:
            if found := _first_that_holds(rest, widest, {**chosen, name: option}):
                return found
    return None


def make_autocast(op: Op, target):
    """key -> kernel of that Autocast key. None for an op that has nothing to fit together, or that writes to what it is given."""
    if op.writes or any(t.is_list for t in op.inputs) or len(op.inputs) < 2:
        return None

    def for_key(key: str):
        excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

        def kernel(*arguments):
            with torch._C._ExcludeDispatchKeyGuard(excluded):
                return target(*promoted(op, op.fill(arguments)))

        return kernel

    return for_key
