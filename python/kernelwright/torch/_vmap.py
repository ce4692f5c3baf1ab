"""torch.vmap over an op: one more leading dimension where the contract allows it, else one call per sample."""

import torch

from .._errors import ArgumentError
from .._manifest import Op, Tensor


def make_vmap(op: Op, results: list[Tensor], call):
    """The batching rule (torch.library.register_vmap's form) of `call`, which takes the op's arguments and returns `results`.

    When every batched input has leading dimensions (*B) and every result has them too, the batch is simply one more of them. Otherwise a
    batched weight or a sum over rows (dweight) belongs to each sample alone, and the samples are run one by one."""

    def leading(t: Tensor) -> bool:
        return bool(t.shape) and isinstance(t.shape[0], str) and t.shape[0].startswith("*")

    def has_leading(t: Tensor) -> bool:
        return leading(t) and not t.is_list

    def rule(info, in_dims, *values):
        values = op.fill(values)
        in_dims = (*in_dims, *[None] * (len(values) - len(in_dims)))
        tensors = list(zip(op.inputs, values, in_dims))
        batched = [t for t, _, d in tensors if _is_batched(d)]
        one_call = all(has_leading(t) for t in batched) and all(leading(r) for r in results)
        if op.writes and not results:
            _refuse_shared(op, tensors)
        if one_call and not op.writes:
            moved = []
            for t, v, d in tensors:
                if v is None or not has_leading(t):
                    moved.append(v)
                elif d is None:
                    moved.append(v.expand(info.batch_size, *v.shape))
                else:
                    moved.append(v.movedim(d, 0))
            out = call(*moved, *values[len(op.inputs) :])
            return out, tuple(0 for _ in results) if len(results) != 1 else 0
        samples = [call(*(_sample(v, d, k) for v, d in zip(values, in_dims))) for k in range(info.batch_size)]
        if not results:  # what was written to are views of what the caller gave
            return None, None
        if len(results) == 1:
            return torch.stack(samples), 0
        return tuple(torch.stack(column) for column in zip(*samples)), tuple(0 for _ in results)

    return rule


def _refuse_shared(op: Op, tensors) -> None:
    """Every sample would write to the same memory."""
    for t, _, dim in tensors:
        if t.written and not _is_batched(dim):
            batched = next(u.name for u, _, d in tensors if _is_batched(d))
            raise ArgumentError(f"{op.name}: {t.name} is written in place, so vmap has to batch it as it does {batched}")


def _is_batched(dim) -> bool:
    return any(d is not None for d in dim) if isinstance(dim, (list, tuple)) else dim is not None


def _sample(value, dim, k):
    if isinstance(value, (list, tuple)) and isinstance(dim, (list, tuple)):
        return [_sample(v, d, k) for v, d in zip(value, dim)]
    return value if dim is None else value.select(dim, k)
