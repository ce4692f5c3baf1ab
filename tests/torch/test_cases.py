"""Bugs that other projects shipped, each with its right value, by the public report it comes from. They run on the GPU where there is one.

Ids: N norms, A activations, T integration. Cases that need more than 4 GB of memory run on a GPU that has it."""
import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import kernelwright.torch as kt
from truth import assert_close

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def norm_truth(x, w=None, eps=1e-6):
    y = x.double() * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + eps)
    return y if w is None else y * w.double()


def gradients(f, dy, *tensors):
    leaves = [t.detach().requires_grad_() for t in tensors]
    return torch.autograd.grad(f(*leaves), leaves, dy)


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=DEVICE).to(dtype)


@pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.mem_get_info()[0] < 40 << 30, reason="needs 40 GB of GPU memory")
def test_n01_n02_beyond_2_to_the_31_elements():
    """pytorch/pytorch#181555, linkedin/Liger-Kernel#803: late rows garbage, or an illegal access, where an element's number has 32 bits."""
    x, w = random(524352, 4096), random(4096)
    last = slice(-64, None)
    assert torch.equal(kt.rms_norm(x, w)[last], kt.rms_norm(x[last], w))
    y, total = kt.add_rms_norm(x, x, w)
    assert torch.equal(total[last], x[last] + x[last]) and torch.equal(y[last], kt.rms_norm(total[last], w))
    del y, total
    (dx,) = gradients(lambda x: kt.rms_norm(x, w), x, x)
    (want,) = gradients(lambda x: kt.rms_norm(x, w), x[last], x[last])
    assert torch.equal(dx[last], want)


def test_n03_rows_far_apart():
    """state-spaces/mamba#1015: a row's offset of 2^31 elements wraps; the result is plausible and wrong."""
    memory = torch.empty(2**31 + 64, dtype=torch.bfloat16, device=DEVICE)  # 4.3 GB, of which a CPU touches two pages
    x = memory.as_strided((2, 64), (2**31, 1))
    x[:] = random(2, 64)
    w, plain = random(64), x.contiguous()
    assert torch.equal(kt.rms_norm(x, w), kt.rms_norm(plain, w))
    assert all(torch.equal(a, b) for a, b in zip(kt.add_rms_norm(x, x, w), kt.add_rms_norm(plain, plain, w), strict=True))
    got, want = (gradients(lambda x, w: kt.rms_norm(x, w), v, v, w) for v in (x, plain))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_n04_upstream_gradients_of_any_layout(dtype):
    """Dao-AILab/quack#88, unslothai/unsloth#10617: crash or wrong when dy is expanded or sliced."""
    x, w = random(2, 64, 256, dtype=dtype), torch.ones(256, device=DEVICE)
    wide = random(2, 64, 512, dtype=dtype)
    one = torch.ones((), device=DEVICE, dtype=dtype)
    for dy in (one.expand(2, 64, 256), wide[..., ::2], wide[..., :256], wide[:, :1, :256].expand(2, 64, 256)):
        got = gradients(lambda x, w: kt.rms_norm(x, w), dy, x, w)
        want = gradients(lambda x, w: kt.rms_norm(x, w), dy.contiguous(), x, w)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
        got = gradients(lambda x, w: kt.add_rms_norm(x, x.detach(), w), (dy, dy), x, w)
        want = gradients(lambda x, w: kt.add_rms_norm(x, x.detach(), w), (dy.contiguous(), dy.contiguous()), x, w)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_n05_every_second_column():
    """ByteDance-Seed/VeOmni#958: forward right, dx and dweight wrong, since the backward assumed a last stride of 1."""
    wide, w, dy = random(6, 128), random(64), random(6, 64)
    got, want = (gradients(lambda x, w: kt.rms_norm(x, w), dy, x, w) for x in (wide[..., ::2], wide[..., ::2].contiguous()))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_n07_finite_rows_whose_squares_overflow():
    """pytorch/pytorch#178123. Our documented limit: in f32 such a row is zero, never NaN."""
    x = torch.tensor([[1e30, -1e30, 2e30, -2e30]], device=DEVICE)
    assert torch.equal(kt.rms_norm(x), torch.zeros_like(x))


@pytest.mark.parametrize("w_dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_n11_weights_of_another_dtype(x_dtype, w_dtype):
    """NVIDIA/apex#1379, ROCm/aiter#4780: refused, or its bytes read in the wrong dtype."""
    x, w = random(4, 64, dtype=x_dtype), random(64, dtype=w_dtype)
    if w_dtype not in (x_dtype, torch.float32):  # the contract has no such mix: refused by a sentence
        with pytest.raises(ValueError, match="rms_norm: weight"):
            kt.rms_norm(x, w)
        return
    assert_close(kt.rms_norm(x, w), norm_truth(x, w), "rms_norm")
    dx, dw = gradients(lambda x, w: kt.rms_norm(x, w), torch.ones_like(x), x, w)
    assert dx.dtype == x_dtype and dw.dtype == w_dtype


@pytest.mark.parametrize("hidden", [32, 96, 136, 512, 3584, 4104, 16384, 32768])
def test_n13_n14_n16_lengths_that_broke_others(hidden):
    """flashinfer-ai/flashinfer#634, #718, lablup/mlxcel#829: misaligned scratch, shared memory above 48 KB, reads past it."""
    for rows in (1, 3, 19):
        x, residual, w = random(rows, hidden), random(rows, hidden), random(hidden)
        assert_close(kt.rms_norm(x, w), norm_truth(x, w), "rms_norm")
        y, total = kt.add_rms_norm(x, residual, w)
        assert torch.equal(total, x + residual) and torch.equal(y, kt.rms_norm(total, w))


@pytest.mark.parametrize("shape", [(1, 0), (0, 64), (0, 0)])
def test_n15_empty(shape):
    """pytorch/pytorch#80893: "invalid configuration argument" for empty dimensions."""
    x, w = random(*shape), random(shape[1])
    dx, dw = gradients(lambda x, w: kt.rms_norm(x, w), torch.empty_like(x), x, w)
    assert dx.shape == x.shape and torch.equal(dw, torch.zeros_like(w))


def test_n17_a_weight_at_the_end_of_its_memory():
    """svg-project/Sparse-VideoGen#55: the weight is read beyond its last column where the length is no power of two."""
    x, w = random(75, 1536), random(4096)[-1536:]
    assert_close(kt.rms_norm(x, w), norm_truth(x, w), "rms_norm")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_n18_both_orders_of_rounding(dtype):
    """vllm-project/vllm#42379: the order of rounding differs between models. In f32 throughout and rounded once, or as Llama has it: the
    normalised x is rounded, then multiplied by the weight in x's dtype."""
    x, w = random(8, 4096, dtype=dtype), (1 + 7 * torch.rand(4096, device=DEVICE)).to(dtype)
    assert_close(kt.rms_norm(x, w), norm_truth(x, w), "rms_norm", roundings=0.51)
    assert torch.equal(kt.rms_norm(x, w, rounding="before_weight"), w * kt.rms_norm(x))
    y, total = kt.add_rms_norm(x, x.flip(0), w, rounding="before_weight")
    assert torch.equal(y, w * kt.rms_norm(total))


def test_n19_eps_does_not_depend_on_the_dtype():
    """pytorch/pytorch#189581: with bf16's own epsilon the result is 0.55 of what it should be."""
    x = 0.058 * torch.randn(16, 32, device=DEVICE)
    ratio = kt.rms_norm(x.bfloat16()).float().norm() / kt.rms_norm(x).norm()
    assert abs(ratio - 1) < 1e-2


def test_n20_zeros_in_the_weight():
    """ServiceNow/Fast-LLM#220: a backward that divides by the weight."""
    x, dy, w = random(8, 64), random(8, 64), random(64)
    w[::2] = 0
    dx, dw = gradients(lambda x, w: kt.rms_norm(x, w), dy, x, w)
    assert dx.isfinite().all()
    assert_close(dw, (dy.double() * norm_truth(x)).sum(0), "dweight")


def swiglu_truth(gate, up, dy):
    return gradients(lambda g, u: F.silu(g) * u, dy.double(), gate.double(), up.double())


def test_a01_each_gradient_in_its_place():
    """unslothai/unsloth#3314: the two gradients stored in each other's place."""
    gate, up, dy = (random(2, 8, dtype=torch.float32) for _ in range(3))
    for got, want in zip(gradients(kt.swiglu, dy, gate, up), swiglu_truth(gate, up, dy), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-6, atol=1e-6)


def test_a02_one_tensor_as_both_inputs():
    """linkedin/Liger-Kernel#254: a backward that overwrites its inputs."""
    a = random(4, 32, dtype=torch.float32).requires_grad_()
    x = torch.exp(a)
    y = kt.swiglu(x, x)
    first = torch.autograd.grad(y.sum(), a, retain_graph=True)[0]
    again = torch.autograd.grad(y.sum(), a)[0]
    b = a.detach().double().requires_grad_()
    want = torch.autograd.grad((F.silu(b.exp()) * b.exp()).sum(), b)[0]
    assert torch.equal(first, again)
    torch.testing.assert_close(first.double(), want, rtol=1e-5, atol=1e-6)


def test_a04_ends_of_the_slope():
    """jax-ml/jax#40828: the gradient underflows to 0 or becomes NaN for large inputs."""
    gate = torch.tensor([100.0, -100.0, 1e4, -1e4], device=DEVICE)
    one = torch.ones_like(gate)
    dgate = gradients(kt.swiglu, one, gate, one)[0]
    want = swiglu_truth(gate, one, one)[0].float()
    torch.testing.assert_close(dgate, want, rtol=1e-5, atol=1e-38)


@pytest.mark.parametrize("offset", range(17))
def test_a05_odd_storage_offsets(offset):
    """Jim137/qkan#26: misaligned address for a contiguous view at an odd offset."""
    whole, up, dy = random(1024 + offset), random(1024), random(1024)
    gate = whole[offset:]
    got, want = gradients(kt.swiglu, dy, gate, up), gradients(kt.swiglu, dy, gate.clone(), up)
    assert torch.equal(kt.swiglu(gate, up), kt.swiglu(gate.clone(), up))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("reentrant", [False, True])
def test_a08_activation_checkpointing(reentrant):
    """facebookresearch/xformers#1126: fails under activation checkpointing."""
    gate, up, dy = (random(64, 128) for _ in range(3))
    g, u = gate.clone().requires_grad_(), up.clone().requires_grad_()
    checkpoint(kt.swiglu, g, u, use_reentrant=reentrant).backward(dy)
    assert all(torch.equal(a, b) for a, b in zip((g.grad, u.grad), gradients(kt.swiglu, dy, gate, up), strict=True))


def test_a09_compiles_whole_with_dynamic_shapes():
    """linkedin/Liger-Kernel#96, #174: the op breaks torch.compile."""
    compiled = torch.compile(lambda g, u: kt.swiglu(g, u), fullgraph=True, dynamic=True)
    for rows in (3, 7):
        gate, up, dy = (random(rows, 48, dtype=torch.float32) for _ in range(3))
        assert torch.equal(compiled(gate, up), kt.swiglu(gate, up))
        assert all(torch.equal(a, b) for a, b in zip(gradients(compiled, dy, gate, up), gradients(kt.swiglu, dy, gate, up), strict=True))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: streams")
def test_t01_the_callers_stream():
    """pytorch/pytorch#114048: an op that ignores the current stream."""
    x, w = random(512, 4096), random(4096)
    want = kt.rms_norm(2 * x, w)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        doubled = 2 * x
        got = kt.rms_norm(doubled, w)
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(got, want)
