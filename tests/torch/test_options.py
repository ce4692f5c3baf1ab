"""Every public function and module class that is no op, with every argument wrong in turn: a sentence that names it, the argument, what was
got and what is wanted, of our exception types. The ops' own arguments are in test_arguments.py."""

import inspect

import pytest
import samples as s
import torch

import kernelwright
import kernelwright.torch as kt

# By name: good arguments, and for each argument what it cannot be. A word in quotes or a number is looked for in the sentence.
BAD_LENGTH = ["x", 2.5, True, None, -1, 2**70]
BAD_EPS = ["x", None, -1, float("nan"), torch.ones(())]
NORM = dict(length=BAD_LENGTH, eps=BAD_EPS, offset=["x", None, 10**400], rounding=["x", None, 3])
MLP = dict(hidden=BAD_LENGTH, intermediate=BAD_LENGTH, activation=["x", None, 3])
LOSS = dict(
    weight=["x", 3, [1.0]],
    ignore_index=["x", None, 1.5, 2**70],
    reduction=["max", None, 3],
    label_smoothing=["x", None, -0.1, 1.1, float("nan")],
    z_loss=["x", None, -1],
    softcap=["x", None, -1],
)
FIRST = kernelwright.ops()[0]
CASES = {
    "AddRMSNorm": (dict(length=8), NORM),
    "RMSNorm": (dict(length=8), NORM),
    "GatedMLP": (dict(hidden=8, intermediate=8), MLP),
    "SwiGLU": ({}, dict(activation=MLP["activation"])),
    "CrossEntropyLoss": ({}, LOSS),
    "accelerate": (
        dict(model=torch.nn.Linear(2, 2)),
        dict(model=["x", None, 3, torch.nn.Linear, {}], ops=["rms_norm", 3, ["nonsense"], [3], [None], {"nonsense"}]),
    ),
    "calls": (dict(op=FIRST), dict(op=["nonsense", 3, None, ["x"], "", "a\0b", "\ud800"])),
    "contract": (dict(op=FIRST), dict(op=["nonsense", 3, None, ["x"], ""])),
    "copies": (dict(op=FIRST), dict(op=["nonsense", 3, None, ["x"], ""])),
    "load_library": (None, dict(path=["", 3, None, ["x"]])),
    "warmup": (
        None,
        dict(
            op=["nonsense", 3, None],
            arguments=[3, None, "nonsense", "x", "nonsense=3", "=", "\0"],
            device=["x", None, 1.5, -1, 2**40],
            gradient=["x", None, 3],
        ),
    ),
}
CASES = {name: case for name, case in CASES.items() if hasattr(kt, name) or hasattr(kernelwright, name)}
NO_ARGUMENTS = {"cmake_prefix_path", "kernel_counts", "ops"}
INTERNAL = {"Report", "Swap"}  # what accelerate returns, and what a room's table is made of


def function(name):
    return getattr(kt, name, None) or getattr(kernelwright, name)


def test_none_is_forgotten():
    ops = {op.name for op in s.all_ops()}
    public = {n for m in (kt, kernelwright) for n in m.__all__ if n not in ops and not n.endswith("Error")}
    assert public - NO_ARGUMENTS - INTERNAL == set(CASES)
    for name, (good, wrong) in CASES.items():
        taken = set(inspect.signature(function(name)).parameters)
        assert taken - set(wrong) <= {"elementwise_affine", "bias", "device", "dtype"}, name  # torch's own, or any truth value


@pytest.mark.parametrize("name,argument", [(n, a) for n, (_, wrong) in CASES.items() for a in wrong])
def test_each_argument_wrong_in_turn(name, argument):
    good, wrong = CASES[name]
    others = dict(op="rms_norm" if "rms_norm" in kernelwright.ops() else FIRST, arguments="x=bf16[2,8]") if name == "warmup" else good or {}
    for value in wrong[argument]:
        with pytest.raises(kernelwright.ArgumentError) as e:
            function(name)(**{**others, argument: value})
        text = str(e.value)
        assert text.isprintable(), text
        assert {"op": "there is no op ", "arguments": ""}.get(argument, argument) in text, text
        item = repr(next(iter(value))) if isinstance(value, (list, set)) else repr(value)
        empty = value == "" and text.endswith("path is empty")
        assert empty or any(got in text for got in (f"got {type(value).__name__}", item, "a number of 1329 bits")), text
    if good is not None:
        function(name)(**good)


@s.needs_room("cross_entropy")
def test_arguments_of_modules_calls():
    """What a module is given when it runs is the op's, but for a divisor, which may be a number."""
    logits, target = torch.randn(2, 5), torch.tensor([0, 4])
    loss = kt.CrossEntropyLoss()
    for divisor, text in (("x", "must be a number, a torch.Tensor or None, got str"), (torch.ones(2), "has shape [2], but must be of one")):
        with pytest.raises(kernelwright.ArgumentError) as e:
            loss(logits, target, divisor)
        assert f"divisor {text}" in str(e.value)
    with pytest.raises(kernelwright.ArgumentTypeError, match="cross_entropy: logits must be a torch.Tensor, got list"):
        loss([1.0], target)
    with pytest.raises(kernelwright.ArgumentError, match="CrossEntropyLoss: divisor is for a reduced loss"):
        kt.CrossEntropyLoss(reduction="none")(logits, target, 3)
