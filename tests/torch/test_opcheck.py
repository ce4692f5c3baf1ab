"""torch.library.opcheck, all of its checks, for every op over inputs made from its contract."""

import pytest
import samples as s
import torch


@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_public_op(op):
    count = 0
    for arguments in s.samples(op, grad=op.backward_of is None and not op.writes and op.gradient is not None):
        results = s.public_op(op)(*arguments)
        if any(r.isnan().any() for r in (results if isinstance(results, tuple) else (results,)) if r is not None):
            continue  # a mean over no rows: opcheck takes NaN and NaN for a difference
        torch.library.opcheck(s.public_op(op), tuple(arguments))
        count += 1
    assert count


@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_private_op(op):
    if len(op.kept) == len(op.outputs):
        assert not hasattr(torch.ops.kernelwright, "_" + op.name)  # for saved results alone
        return
    for arguments in s.samples(op):
        torch.library.opcheck(s.private_op(op), tuple(arguments), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_schema_follows_the_contract(op):
    schema = s.public_op(op)._schema
    assert [a.name for a in schema.arguments] == [a.name for a in op.arguments]
    assert not any(a.kwarg_only for a in schema.arguments)
    for a, t in zip(schema.arguments, op.inputs):
        assert ("?" in str(a.type) or "Optional" in str(a.type)) == (t.optional and not t.is_list)
        assert bool(a.alias_info and a.alias_info.is_write) == t.written
    assert len(schema.returns) == len(op.outputs)
    if len(op.kept) > len(op.outputs):
        assert len(s.private_op(op)._schema.returns) == len(op.kept)


def test_opcheck_sees_a_wrong_fake():
    """The check is able to fail: the same op with a fake that forgets a dimension."""
    with torch.library._scoped_library("kernelwright_fault", "FRAGMENT") as lib:
        lib.define("copy(Tensor x) -> Tensor")
        lib.impl("copy", lambda x: x.clone(), "CPU")
        torch.library.register_fake("kernelwright_fault::copy", lambda x: x.new_empty(x.shape[1:]), lib=lib)
        with pytest.raises(torch.testing._internal.optests.generate_tests.OpCheckError):
            torch.library.opcheck(torch.ops.kernelwright_fault.copy.default, (torch.ones(2, 3),))
