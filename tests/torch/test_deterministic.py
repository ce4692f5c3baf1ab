"""torch.use_deterministic_algorithms(True): no op refuses or warns, and each gives the bits that it gives without. In this mode torch fills
new memory with NaN, so a result that was not written whole differs too."""

import warnings

import pytest
import samples as s
import torch

WAYS = ["function", "dispatcher"]


@pytest.fixture
def deterministic():
    """Turns the mode on when it is called; off again in any case."""
    yield lambda: torch.use_deterministic_algorithms(True)
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", s.all_ops(), ids=lambda op: op.name)
def test_same_bits(op, way, deterministic):
    call = s.ways(op)[way]
    cases = list(s.samples(op, grad=bool(op.gradient)))
    plain = [s.outcome(op, call, arguments) for arguments in cases]
    deterministic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for arguments, wanted in zip(cases, plain, strict=True):
            assert s.same_bits(s.outcome(op, call, arguments), wanted)


@pytest.mark.parametrize("op", [op for op in s.all_ops() if op.gradient], ids=lambda op: op.name)
def test_same_bits_compiled(op, deterministic):
    arguments = s.sample(op, s.dtype_choices(op)[-1], grad=True)
    plain = s.outcome(op, s.public_op(op), arguments)
    deterministic()
    torch._dynamo.reset()
    compiled = torch.compile(lambda *a: s.public_op(op)(*a), fullgraph=True, backend="aot_eager")
    assert s.same_bits(s.outcome(op, compiled, arguments), plain)


def test_the_mode_is_on(deterministic):
    """What the tests above rest on: new memory is NaN in this mode, and what is not deterministic is refused."""
    deterministic()
    assert torch.empty(100).isnan().all()
    with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
        torch.nn.functional.max_unpool1d(torch.ones(1, 1, 2), torch.zeros(1, 1, 2, dtype=torch.int64), 2)
