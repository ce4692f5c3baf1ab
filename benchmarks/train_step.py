"""One training step of a Llama, stock and accelerated: time and peak memory, with all ops and with all but one.

On a GPU the model has 1.24 B parameters (16 layers, 2048 wide, vocabulary 128256, tied embeddings), bf16, batch 4 x 4096; on the CPU it is
a tiny one, to try the script.

    python benchmarks/train_step.py [--device cuda|cpu] [--steps 20] [--json benchmarks/results/DATE-train-step.json]

One process and one model for all rows: accelerate(), measure, undo(). A step is forward, loss, backward, clip_grad_norm_ and fused AdamW,
timed on the host with a synchronisation before and after; median of --steps after five that are not counted. Peak memory is PyTorch's
allocated maximum over a step, weights (2 bytes) and Adam's state (4 bytes a parameter) included.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import torch

import kernelwright.torch as kt


def build(device: str):
    from transformers import LlamaConfig, LlamaForCausalLM

    if device == "cuda":
        sizes = dict(vocab_size=128256, hidden_size=2048, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8)
        config = LlamaConfig(**sizes, intermediate_size=8192, max_position_embeddings=4096, tie_word_embeddings=True, use_cache=False)
        tokens = (4, 4096)
    else:
        sizes = dict(vocab_size=8192, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4)
        config = LlamaConfig(**sizes, intermediate_size=512, max_position_embeddings=128, tie_word_embeddings=True, use_cache=False)
        tokens = (2, 128)
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = LlamaForCausalLM(config).train()
        inputs = torch.randint(0, config.vocab_size, tokens)
    return model, inputs


def measure(model, inputs, optimizer, steps: int) -> dict:
    cuda = inputs.is_cuda
    wait = torch.cuda.synchronize if cuda else lambda: None
    seconds, loss = [], None
    if cuda:
        torch.cuda.empty_cache()
    for step in range(5 + steps):
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        wait()
        start = time.perf_counter()
        loss = model(input_ids=inputs, labels=inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        wait()
        seconds.append(time.perf_counter() - start)
    ms = [1e3 * s for s in sorted(seconds[5:])]
    return {
        "median_ms": statistics.median(ms),
        "p20_ms": ms[len(ms) // 5],
        "p80_ms": ms[-1 - len(ms) // 5],
        "tokens_per_s": inputs.numel() / statistics.median(ms) * 1e3,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if cuda else None,
        "loss": loss.item(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json")
    args = parser.parse_args()
    model, inputs = build(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    report = kt.accelerate(model)
    ops = list(report.counts())
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters, {tuple(inputs.shape)} tokens\n{report}\n")
    report.undo()
    rows = []
    print(f"{'ops':<28}{'ms':>9}{'p20':>9}{'p80':>9}{'tokens/s':>11}{'peak GiB':>10}")
    without = [(f"all but {op}", [o for o in ops if o != op]) for op in ops]
    for name, chosen in [("stock", []), ("all", ops), *without, ("stock again", [])]:
        report = kt.accelerate(model, ops=chosen)
        row = {"ops": name, **measure(model, inputs, optimizer, args.steps)}
        report.undo()
        rows.append(row)
        peak = "" if row["peak_gib"] is None else f"{row['peak_gib']:.1f}"
        print(f"{name:<28}{row['median_ms']:9.1f}{row['p20_ms']:9.1f}{row['p80_ms']:9.1f}{row['tokens_per_s']:11.0f}{peak:>10}", flush=True)
    if args.json:
        import record

        record.write(args.json, "train_step", tokens=list(inputs.shape), parameters=sum(p.numel() for p in model.parameters()), rows=rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
