"""accelerate(model): what is swapped, what stays, and that it can be undone."""
import functools
import sys
import types

import pytest
import torch

import kernelwright
import kernelwright.torch as kt

transformers = pytest.importorskip("transformers")


def llama(**changes):
    torch.manual_seed(0)
    settings = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, intermediate_size=48,
                    max_position_embeddings=64, use_cache=False)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**settings, **changes}))


COUNTS = {"rms_norm": 5, "swiglu": 2, "add_rms_norm": 2, "cross_entropy": 1}


def loss_of(model):
    tokens = torch.arange(40).reshape(2, 20) % 64
    return model(input_ids=tokens, labels=tokens).loss


def test_swaps_every_kind_and_computes_the_same():
    model = llama()
    parameters, keys, classes = list(model.parameters()), list(model.state_dict()), [type(m).__name__ for m in model.modules()]
    stock = loss_of(model)
    stock.backward()
    gradients = [p.grad.clone() for p in parameters]
    model.zero_grad()
    report = kt.accelerate(model)
    assert report.counts() == COUNTS
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True)) and list(model.state_dict()) == keys
    assert [type(m).__name__ for m in model.modules()] == classes
    before = {op: kernelwright.calls(op) for op in report.counts()}
    ours = loss_of(model)
    ours.backward()
    assert all(kernelwright.calls(op) > n for op, n in before.items())
    torch.testing.assert_close(ours, stock, rtol=1e-6, atol=1e-6)
    for p, want in zip(parameters, gradients, strict=True):
        torch.testing.assert_close(p.grad, want, rtol=1e-4, atol=1e-6)
    assert "5 x LlamaRMSNorm -> rms_norm" in str(report)


def test_undo_gives_the_classes_back_and_twice_is_harmless():
    model = llama()
    classes = [type(m) for m in model.modules()]
    report = kt.accelerate(model)
    again = kt.accelerate(model)
    assert not again.swapped and all(why == "swapped already" for _, _, why in again.left)
    assert report.undo() == sum(COUNTS.values()) and [type(m) for m in model.modules()] == classes and report.undo() == 0
    assert kt.accelerate(model).counts() == report.counts()


def test_only_the_ops_that_were_asked_for():
    model = llama()
    report = kt.accelerate(model, ops=["swiglu", "add_rms_norm"])
    assert report.counts() == {"swiglu": 2}
    left = {name: why for name, _, why in report.left}
    assert left["model.norm"] == "rms_norm was not asked for" and "post_attention_layernorm is left" in left["model.layers.0"]
    report.undo()
    assert not kt.accelerate(model, ops=[]).swapped
    with pytest.raises(kernelwright.ArgumentError, match="accelerate: ops names 'norm', which serves no class of a model"):
        kt.accelerate(model, ops=["norm"])


def test_hooks_and_isinstance_stay():
    model, seen = llama(), []
    norm = model.model.norm
    norm.register_forward_hook(lambda module, arguments, result: seen.append(type(module)))
    kind = type(norm)
    kt.accelerate(model)
    loss_of(model)
    assert len(seen) == 1 and isinstance(norm, kind)


def test_what_may_compute_something_else_is_left_alone():
    model = llama(hidden_act="gelu")
    report = kt.accelerate(model)
    assert "swiglu" not in report.counts() and all("GELUActivation, not SiLU" in why for _, cls, why in report.left if cls == "LlamaMLP")

    class Scaled(type(model.model.norm)):
        def forward(self, x):
            return 2 * super().forward(x)

    model = llama()
    model.model.norm.__class__ = Scaled
    model.model.layers[0].mlp.forward = lambda x: x
    left = {name: why for name, _, why in kt.accelerate(model).left}
    assert "subclass" in left["model.norm"] and "replaced on the instance" in left["model.layers.0.mlp"]


def forward_of_other_hands(self, x):
    return x


def test_a_class_changed_by_other_hands_is_left_alone(monkeypatch):
    """The text of a class is what says that an op computes the same; its name does not."""
    norm = type(llama().model.norm)
    stock = norm.forward
    why = "changed by other hands"

    def left(model):
        return {name: why for name, _, why in kt.accelerate(model).left}

    monkeypatch.setattr(norm, "forward", forward_of_other_hands)
    found = left(llama())
    assert why in found["model.norm"] and "post_attention_layernorm is left alone" in found["model.layers.0"]

    @functools.wraps(stock)
    def wrapped(self, x):
        return 2 * stock(self, x)

    monkeypatch.setattr(norm, "forward", wrapped)
    assert why in left(llama())["model.norm"]
    monkeypatch.setattr(norm, "forward", functools.partialmethod(stock))
    assert why in left(llama())["model.norm"]
    monkeypatch.setattr(norm, "forward", stock)
    monkeypatch.setattr(norm, "_helper", forward_of_other_hands, raising=False)  # what forward calls counts as well
    assert why in left(llama())["model.norm"]
    monkeypatch.undo()
    assert kt.accelerate(llama()).counts() == COUNTS


SOURCE = """
import torch
class LlamaRMSNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.variance_epsilon = torch.nn.Parameter(torch.ones(4)), 1e-6
    def forward(self, hidden_states):
        "A comment, other type hints and other line breaks are the same text."
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = (hidden_states
                    .pow(2).mean(-1, keepdim=True))
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)  # PLACE
"""


@pytest.mark.parametrize(("place", "why"), [("# PLACE", None), ("* 2", "not one that we know (fingerprint "), (None, "without source")])
def test_a_release_that_computes_something_else_is_left_alone(monkeypatch, tmp_path, place, why):
    module = types.ModuleType("transformers.models.llama.modeling_llama")
    file = tmp_path / "modeling_llama.py"
    if place:
        file.write_text(SOURCE.replace("# PLACE", place))
    exec(compile(SOURCE.replace("# PLACE", place or ""), str(file), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    report = kt.accelerate(module.LlamaRMSNorm())
    assert [why in w for _, _, w in report.left] == [True] if why else report.counts() == {"rms_norm": 1}


def test_compiles_whole():
    model = llama()
    kt.accelerate(model)
    norm = torch.compile(model.model.norm, fullgraph=True)
    x = torch.randn(2, 3, 32)
    torch.testing.assert_close(norm(x), model.model.norm(x))


def test_wants_a_module():
    with pytest.raises(TypeError, match="accelerate: model must be a torch.nn.Module, got int"):
        kt.accelerate(3)


def test_a_model_without_such_modules():
    report = kt.accelerate(torch.nn.Linear(2, 2))
    assert not report.swapped and "no part of it is of a class that we know; those are LlamaForCausalLM, " in str(report)


def test_half_is_served():
    half = llama().half()
    stock = loss_of(half)
    kt.accelerate(half)
    torch.testing.assert_close(loss_of(half), stock, rtol=2e-3, atol=2e-3)


def test_dtypes_that_no_op_serves_run_the_stock_code():
    norm = llama().model.norm.bfloat16()
    stock = norm(torch.ones(2, 32))  # f32 beside a bf16 weight
    kt.accelerate(norm)
    assert torch.equal(norm(torch.ones(2, 32)), stock) and norm(torch.ones(2, 32)).dtype == stock.dtype


@pytest.mark.parametrize("settings", [{}, {"eps": 1e-3}, {"elementwise_affine": False}])
def test_torchs_own_norm(settings):
    norm, x = torch.nn.RMSNorm(24, **settings), torch.randn(3, 5, 24)
    stock = norm(x)
    assert kt.accelerate(norm).counts() == {"rms_norm": 1}
    torch.testing.assert_close(norm(x), stock)
    assert "normalises 2 dimensions" in str(kt.accelerate(torch.nn.RMSNorm((5, 24))))
