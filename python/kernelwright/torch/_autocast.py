"""The autocast rule, one for all ops: **an op runs in the dtypes that it is given.** Sums are kept in acc(T) inside the kernels, so what
torch's fp32 list is for (norms, losses) holds without a cast, and a loss that its contract declares f32 is f32. Only where the inputs do
not fit together, as a bf16 projection beside an f32 residual, they are promoted to the widest of them, as on torch's promote list.

So: x bf16, weight f32 -> the contract knows the pair, nothing is cast, the result is bf16; gate bf16, up f32 -> both f32, the result too;
bf16 beside f16 -> f32. The backward runs in the same dtypes as the forward. Gradients come back in each input's own dtype."""

import torch

from .._manifest import Op
from ._fake import DTYPES, _dtype

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def _is_float(value) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def promoted(op: Op, arguments) -> list:
    """The arguments, floating tensors in dtypes that fit together. What cannot be made to fit stays, for the op to refuse."""
    types, out = {}, list(arguments)
    for variable, options in op.types.items():
        given = [v.dtype for t, v in zip(op.inputs, arguments) if t.element == {"variable": variable} and _is_float(v)]
        options = [types[o["variable"]] if isinstance(o, dict) else DTYPES[o] for o in options]
        widest = given[0] if given else options[0]
        for dtype in given:
            widest = torch.promote_types(widest, dtype)
        fitting = [o for o in options if o is not None and torch.promote_types(o, widest) == o]
        types[variable] = widest if widest in options else fitting[0] if fitting else None
    names = {variable: _NAMES.get(dtype) for variable, dtype in types.items()}
    for i, (t, value) in enumerate(zip(op.inputs, arguments)):
        fixed = isinstance(t.element, str) or names[t.element.get("variable") or t.element["accumulator"]]
        if fixed and _is_float(value) and (dtype := DTYPES[_dtype(t.element, names)]).is_floating_point:
            out[i] = value.to(dtype)
    return out


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
