"""accelerate(model): what is swapped, what stays, and that it can be undone."""
import copy
import io
import pickle

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
    assert report.counts() == {"rms_norm": 5, "swiglu": 2}
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
    assert report.undo() == 7 and [type(m) for m in model.modules()] == classes and report.undo() == 0
    assert kt.accelerate(model).counts() == report.counts()


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
    assert report.counts() == {"rms_norm": 5} and all("not SiLU" in why for _, cls, why in report.left if cls == "LlamaMLP")

    class Scaled(type(model.model.norm)):
        def forward(self, x):
            return 2 * super().forward(x)

    model = llama()
    model.model.norm.__class__ = Scaled
    model.model.layers[0].mlp.forward = lambda x: x
    left = {name: why for name, _, why in kt.accelerate(model).left}
    assert "subclass" in left["model.norm"] and "replaced on the instance" in left["model.layers.0.mlp"]


def test_copies_and_files_hold_the_original_class():
    model = llama()
    kind = type(model.model.norm)
    kt.accelerate(model)
    assert type(model.model.norm) is not kind
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(twin.model.norm) is kind and torch.equal(twin.model.norm.weight, model.model.norm.weight)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    llama().load_state_dict(torch.load(file))


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
    assert not report.swapped and str(report).startswith("no module that an op of ours could serve; those are ")


def test_dtypes_that_no_op_serves_run_the_stock_code():
    half = llama().half()
    stock = loss_of(half)
    kt.accelerate(half)
    assert torch.equal(loss_of(half), stock)
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
