"""Accelerated models compute what stock models compute, in whatever way a model is used."""
import copy
import io
import os
import pickle
import socket

import pytest
import torch

import kernelwright
import kernelwright.torch as kt

pytest.importorskip("transformers")
from conftest import DEVICES  # noqa: E402
from families import FAMILIES, LAYERS, NORMS, VOCAB, batch, build, error, results, truth  # noqa: E402

PACKED = {"phi3": "swiglu_packed"}  # families whose gate and up are halves of one product


def expected(family):
    counts = {"rms_norm": NORMS.get(family, 2) * LAYERS + 1, "add_rms_norm": LAYERS, "cross_entropy": 1}
    return counts | {PACKED.get(family, "swiglu"): LAYERS}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("family", FAMILIES)
def test_as_near_the_truth_as_stock(family, device, dtype):
    """Logits, loss and every gradient are off the f64 run by at most twice what stock is off, in the root mean square over elements and
    batches. Of a loss that is eight numbers; where stock hits the truth by chance, what rounding costs a number in the mean counts."""
    batches = [batch(seed) for seed in range(8)]
    want = truth(family, dtype, batches)
    model = build(family, dtype).to(device)
    stock = [results(model, **b) for b in batches]
    report = kt.accelerate(model)
    assert report.counts() == expected(family), str(report)
    before = {op: kernelwright.calls(op) for op in report.counts()}
    ours = [results(model, **b) for b in batches]
    counts = report.counts()
    counts["rms_norm"] -= counts["add_rms_norm"]  # those that the layer calls together with the sum
    assert {op: kernelwright.calls(op) - n for op, n in before.items()} == {op: len(batches) * n for op, n in counts.items()}
    rounding = {"loss": torch.finfo(torch.float32).eps / 12**0.5}  # of an error between -eps/2 and eps/2
    bad = []
    for name in want[0]:
        assert all(o[name].dtype == k[name].dtype and o[name].stride() == k[name].stride() for o, k in zip(ours, stock)), name
        a, b = (sum(error(g[name], w[name]) ** 2 for g, w in zip(got, want, strict=True)) / len(want) for got in (ours, stock))
        if not a**0.5 <= 2 * max(b**0.5, rounding.get(name, 0)):
            bad.append(f"{name}: {a**0.5:.3g}, stock {b**0.5:.3g}")
    assert ours[0].keys() == stock[0].keys() == want[0].keys()
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_else_changes_and_undo_gives_the_same_bits(family):
    model, twin = build(family), build(family)
    parameters, keys, modules = list(model.parameters()), list(model.state_dict()), [(type(m), m) for m in model.modules()]
    report = kt.accelerate(model)
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True)) and list(model.state_dict()) == keys
    assert [str(type(m)) for m in model.modules()] == [str(c) for c, _ in modules]
    again = kt.accelerate(model)
    assert not again.swapped and all(why == "swapped already" for _, _, why in again.left if why not in {w for _, _, w in report.left})
    assert report.undo() == len(report.swapped) and report.undo() == 0
    assert all(type(m) is c for c, m in modules)
    want, got = results(twin), results(model)
    assert all(torch.equal(got[n], want[n]) for n in want)


@pytest.mark.parametrize("family", ["llama", "gemma3", "phi3"])
def test_saved_models_are_stock_models(family, tmp_path):
    model, stock = build(family), build(family)
    kt.accelerate(model)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert [type(m) for m in twin.modules()] == [type(m) for m in stock.modules()]
        assert all(torch.equal(a, b) for a, b in zip(twin.parameters(), stock.parameters(), strict=True))
    model.save_pretrained(tmp_path / "ours")
    stock.save_pretrained(tmp_path / "stock")
    for file in (tmp_path / "stock").iterdir():
        assert file.read_bytes() == (tmp_path / "ours" / file.name).read_bytes(), file.name
    loaded = type(stock).from_pretrained(tmp_path / "ours", attn_implementation="eager").train()
    want, got = results(stock), results(loaded)
    assert all(torch.equal(got[n], want[n]) for n in want)
    kt.accelerate(loaded)
    want, got = results(model), results(loaded)
    assert all(torch.equal(got[n], want[n]) for n in want)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    build(family).load_state_dict(torch.load(file))


@pytest.mark.filterwarnings("ignore:.gradient_checkpointing_enable.:FutureWarning")
@pytest.mark.parametrize("family", ["llama", "gemma2"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing(family, reentrant):
    model = build(family)
    kt.accelerate(model)
    plain = results(model)
    model.gradient_checkpointing_enable(dict(use_reentrant=reentrant))
    before = kernelwright.calls("add_rms_norm")
    again = results(model)
    assert kernelwright.calls("add_rms_norm") - before == 2 * LAYERS  # once more in the backward
    assert all(torch.equal(again[n], plain[n]) for n in plain)


@pytest.mark.parametrize("family", ["qwen3", "gemma2", "phi3"])
def test_torch_compile(family):
    model = build(family)
    kt.accelerate(model)
    want = results(model)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    before = {op: kernelwright.calls(op) for op in ("rms_norm", "add_rms_norm")}
    got = {name.removeprefix("_orig_mod."): value for name, value in results(compiled).items()}
    assert all(kernelwright.calls(op) > n for op, n in before.items())
    for name in want:
        torch.testing.assert_close(got[name], want[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_generates_the_same(family):
    stock, model = build(family).eval(), build(family).eval()
    kt.accelerate(model)
    prompt = batch()["input_ids"][:, :6]
    settings = dict(max_new_tokens=12, do_sample=False, use_cache=True)
    assert torch.equal(model.generate(prompt, **settings), stock.generate(prompt, **settings))
    with torch.no_grad():
        a, b = (m(prompt, output_hidden_states=True, output_attentions=True) for m in (model, stock))
    assert len(a.hidden_states) == len(b.hidden_states) == LAYERS + 1 and len(a.attentions) == LAYERS
    for x, y in zip(a.hidden_states, b.hidden_states, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("inner", "op"), [("post_attention_layernorm", "add_rms_norm"), ("mlp.act_fn", "swiglu")])
def test_hooks_inside_see_what_they_always_saw(inner, op):
    stock, model = build("llama"), build("llama")
    kt.accelerate(model)
    seen = {"stock": [], "ours": []}
    for which, m in (("stock", stock), ("ours", model)):
        part = m.model.layers[0].get_submodule(inner)
        part.register_forward_hook(lambda module, arguments, result, to=seen[which]: to.extend((*arguments, result)))
    before = kernelwright.calls(op)
    want, got = results(stock), results(model)
    assert kernelwright.calls(op) - before == LAYERS - 1  # the hooked one is called as a module
    assert len(seen["ours"]) == len(seen["stock"]) == 2
    for a, b in zip(seen["ours"], seen["stock"]):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    for name in want:
        torch.testing.assert_close(got[name], want[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("family", ["llama", "gemma2"])
@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_autocast_keeps_dtypes(family, weights):
    outs = []
    for swap in (False, True):
        model = build(family, weights)
        if swap:
            kt.accelerate(model)
        kinds = {}
        for name, m in model.named_modules():
            if name.endswith(("mlp", "layernorm", "model.norm", "layers.0", "layers.1")) and "layers.0.post" not in name:
                m.register_forward_hook(lambda m, a, out, name=name: kinds.update({name: out.dtype}))
        with torch.autocast("cpu", torch.bfloat16):
            out = model(**batch())
        out.loss.backward()
        outs.append((kinds, out.logits.dtype, out.loss.item(), [p.grad.dtype for p in model.parameters()]))
    (kinds, logits, loss, gradients), ours = outs
    assert len(kinds) >= 8 and ours[0] == kinds and ours[1] == logits and ours[3] == gradients
    assert ours[2] == pytest.approx(loss, rel=1e-2)


@pytest.fixture
def process_group():
    import torch.distributed as dist

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_wrapped_for_data_parallel_training(process_group):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh

    model = build("llama")
    kt.accelerate(model)
    want = results(model)
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    out = wrapped(**batch())
    assert torch.equal(out.loss, want["loss"])
    out.loss.backward()

    def sharded(m):
        mesh = init_device_mesh("cpu", (1,))
        for layer in m.model.layers:
            fully_shard(layer, mesh=mesh)
        return fully_shard(m, mesh=mesh)

    model = build("llama")
    kt.accelerate(model)
    before = kernelwright.calls("add_rms_norm")
    got = results(sharded(model))
    assert kernelwright.calls("add_rms_norm") > before
    for name in want:
        value = got[name].full_tensor() if hasattr(got[name], "full_tensor") else got[name]
        torch.testing.assert_close(value, want[name], rtol=1e-5, atol=1e-6)

    model = sharded(build("llama"))  # the wrapped classes are no longer those that we know; what is inside is
    report = kt.accelerate(model)
    assert report.counts() == {"rms_norm": 5, "swiglu": 2}
    assert sum(why.startswith("a subclass of LlamaDecoderLayer") for _, _, why in report.left) == LAYERS
    torch.testing.assert_close(results(model)["loss"], want["loss"])


def test_tensors_spread_over_a_mesh_take_the_stock_code(process_group):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_module, distribute_tensor

    model = build("llama")
    norm, mlp = model.model.norm, model.model.layers[0].mlp
    x = torch.randn(2, 3, 32)
    want = mlp(norm(x))
    kt.accelerate(model)
    mesh = init_device_mesh("cpu", (1,))
    for m in (norm, mlp):
        distribute_module(m, mesh)
    got = mlp(norm(distribute_tensor(x, mesh, [Replicate()])))
    torch.testing.assert_close(got.full_tensor(), want)


def phi():
    import transformers

    sizes = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48)
    return transformers.PhiForCausalLM(transformers.PhiConfig(**sizes)).eval()


def test_phi_has_a_loss_and_reasons():
    model = phi()
    want = results(model)
    report = kt.accelerate(model)
    assert report.counts() == {"cross_entropy": 1}
    left = {cls: why for _, cls, why in report.left}
    assert "no gate" in left["PhiMLP"] and "no RMSNorm reads" in left["PhiDecoderLayer"] and "subtracts" in left["LayerNorm"]
    got = results(model)
    for name in want:
        torch.testing.assert_close(got[name], want[name], rtol=1e-4, atol=1e-6)


# ---- the loss --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [17, torch.tensor(17), torch.tensor([17]), None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_loss_as_the_trainer_asks_for_it(count, dtype):
    """num_items_in_batch (gradient accumulation), labels shifted by the caller, another ignore_index."""
    stock, model = build("qwen2", dtype), build("qwen2", dtype)
    kt.accelerate(model, ops=["cross_entropy"])
    asked = dict(num_items_in_batch=count)
    shifted = torch.nn.functional.pad(batch()["labels"], (0, 1), value=-100)[:, 1:].contiguous()
    for more in (asked, asked | dict(shift_labels=shifted), asked | dict(ignore_index=4)):
        if "ignore_index" in more:
            more["labels"] = batch()["labels"].clamp(min=4)
        before = kernelwright.calls("cross_entropy")
        want, got = results(stock, **more), results(model, **more)
        served = not (isinstance(count, torch.Tensor) and count.ndim)  # there the stock loss is of one dimension
        assert kernelwright.calls("cross_entropy") - before == served
        assert got["loss"].dtype == want["loss"].dtype and got["loss"].shape == want["loss"].shape
        torch.testing.assert_close(got["loss"], want["loss"], rtol=1e-6, atol=0)
        bound = 1e-5 if dtype == torch.float32 else 2e-2
        assert all(error(got[n], want[n].double()) <= bound for n in want)


def test_the_loss_needs_no_f32_copy_of_the_logits():
    """Bytes that are allocated for a loss over bf16 logits, forward and backward: logits-sized, one result in bf16."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Allocated(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            out = function(*arguments, **(named or {}))
            for t in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(t, torch.Tensor) and t.numel() >= 8 * VOCAB:
                    sizes.append(t.numel() * t.element_size())
            return out

    model = build("llama", torch.bfloat16)
    kt.accelerate(model)
    logits = torch.randn(2, 24, VOCAB, dtype=torch.bfloat16, requires_grad=True)
    peaks = []
    for loss_function in (build("llama", torch.bfloat16).loss_function, model.loss_function):
        sizes = []
        with Allocated():
            loss_function(logits=logits, labels=batch()["labels"], vocab_size=VOCAB).backward()
        peaks.append(max(sizes))
    assert peaks == [4 * logits.numel(), 2 * logits.numel()]


def test_a_loss_that_is_not_the_stock_one_stays():
    model = build("llama")
    mine = lambda logits, labels, vocab_size, **more: logits.square().mean()  # noqa: E731
    model.loss_function = mine
    report = kt.accelerate(model)
    assert ("", "LlamaForCausalLM", "its loss is <lambda>, not ForCausalLMLoss") in report.left and model.loss_function is mine
    model = build("llama")
    report = kt.accelerate(model)
    model.loss_function = mine  # set later
    assert model.loss_function is mine
    before = kernelwright.calls("cross_entropy")
    assert results(model)["loss"].item() > 0 and kernelwright.calls("cross_entropy") == before
    assert report.undo() == len(report.swapped) and model.loss_function is mine


def test_a_loss_changed_by_other_hands_stays(monkeypatch):
    from transformers.loss import loss_utils

    monkeypatch.setattr(loss_utils, "fixed_cross_entropy", lambda *a, **k: torch.zeros(()))
    assert "its loss is not one that we know" in str(kt.accelerate(build("llama")))


def test_half_precision_keeps_the_stock_loss():
    """Its gradient would be rounded to f16 before a loss scale reaches it."""
    model = build("llama", torch.float16)
    kt.accelerate(model, ops=["cross_entropy"])
    before = kernelwright.calls("cross_entropy")
    loss = model(**batch()).loss
    assert loss.dtype == torch.float32 and kernelwright.calls("cross_entropy") == before
