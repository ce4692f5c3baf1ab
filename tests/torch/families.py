"""Tiny models of every family that accelerate() knows, and a truth in f64 for them. No weights are downloaded."""
import torch
import transformers as hf

VOCAB, LAYERS = 96, 2
_SIZES = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=2, num_key_value_heads=1,
              intermediate_size=48, max_position_embeddings=64, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)
_GEMMA = dict(_SIZES, head_dim=16)

# Model, its configuration, and how many modules each op serves: per model and per layer.
FAMILIES = {
    "llama": (hf.LlamaForCausalLM, lambda: hf.LlamaConfig(**_SIZES)),
    "llama_biased": (hf.LlamaForCausalLM, lambda: hf.LlamaConfig(**_SIZES, mlp_bias=True, attention_bias=True, tie_word_embeddings=True)),
    "mistral": (hf.MistralForCausalLM, lambda: hf.MistralConfig(**_SIZES, sliding_window=8)),
    "qwen2": (hf.Qwen2ForCausalLM, lambda: hf.Qwen2Config(**_SIZES)),
    "qwen3": (hf.Qwen3ForCausalLM, lambda: hf.Qwen3Config(**_SIZES, head_dim=16)),
    "gemma": (hf.GemmaForCausalLM, lambda: hf.GemmaConfig(**_GEMMA)),
    "gemma2": (hf.Gemma2ForCausalLM, lambda: hf.Gemma2Config(**_GEMMA, query_pre_attn_scalar=16, final_logit_softcapping=5.0)),
    "gemma3": (hf.Gemma3ForCausalLM, lambda: hf.Gemma3TextConfig(**_GEMMA, query_pre_attn_scalar=16, sliding_window=8)),
    "phi3": (hf.Phi3ForCausalLM, lambda: hf.Phi3Config(**_SIZES)),
}  # fmt: skip
NORMS = {"qwen3": 4, "gemma2": 4, "gemma3": 6}  # per layer; else 2


def build(family: str, dtype=torch.float32, **changes):
    """The same weights for a family whatever the dtype, rounded from f32; norms' weights away from their start value."""
    make, config = FAMILIES[family]
    torch.manual_seed(5)
    config = config()
    config._attn_implementation = "eager"
    for name, value in changes.items():
        setattr(config, name, value)
    model = make(config).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                p.add_(0.3 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (0.5 if "embed" in name else p.shape[-1] ** -0.5))
    return model.to(dtype).train()


def batch(seed=3):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, VOCAB, (2, 24), generator=generator)
    labels = tokens.clone()
    labels[0, :5] = -100  # a prompt that is not learned
    return dict(input_ids=tokens, labels=labels)


class Double(torch.overrides.TorchFunctionMode):
    """Lets f64 stay f64 where the models go to f32 by themselves (norms, softmax, loss): the truth of a model in f64."""

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = dict(named or {})
        if isinstance(arguments[0] if arguments else None, torch.Tensor) and arguments[0].dtype == torch.float64:
            if function is torch.Tensor.float:
                return arguments[0]
            if function is torch.Tensor.to and torch.float32 in arguments:
                arguments = tuple(torch.float64 if a is torch.float32 else a for a in arguments)
            if named.get("dtype") is torch.float32:
                named["dtype"] = torch.float64
        return function(*arguments, **named)


def results(model, **more) -> dict[str, torch.Tensor]:
    """Logits, loss and every parameter's gradient of one step."""
    model.zero_grad()
    device = next(model.parameters()).device
    arguments = {**batch(), **more}
    out = model(**{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()})
    out.loss.backward()
    found = {"logits": out.logits.detach(), "loss": out.loss.detach()} | {n: p.grad.clone() for n, p in model.named_parameters()}
    return {n: t.cpu() for n, t in found.items()}


def truth(family: str, dtype, batches=({},)) -> list[dict[str, torch.Tensor]]:
    """In f64, of the weights as `dtype` holds them: the results of each batch."""
    with Double():
        model = build(family, dtype).double()
        return [results(model, **b) for b in batches]


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    """Root mean square of the difference, in units of the root mean square of the truth."""
    assert got.shape == want.shape
    return ((got.double() - want).square().mean() / want.square().mean()).sqrt().item()
