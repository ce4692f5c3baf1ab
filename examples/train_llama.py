"""Trains a small Llama on real text twice: as Hugging Face ships it, and with kernelwright.torch.accelerate(model). Same seeds, same data.

    python examples/train_llama.py [--steps N] [--out FOLDER] [--device cpu|cuda]

The text is CPython's own documentation topics (pydoc_data), which every Python installation carries; tokens are its bytes. The run fails
(exit status 1, with a sentence) unless every expected kind of module was swapped, its op was called in every step, and the losses agree:
in f32 the first loss and gradient norm within 1e-5 of stock, and the whole curve within twice the gap between two stock runs that differ
only in the order of their sums (CPU: number of threads, uneven ones, since 1, 2 and 4 threads give the same bits here; GPU: the BLAS
library and the attention algorithm). The bound is fixed before the accelerated run. Training at this rate is chaotic: one ulp in step 1
becomes 0.1 nats by step 100 (between stock runs too), which is why the first step is checked apart and tightly.
Each run has a process of its own, so that one's memory peak and threads do not colour another's.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

TOKENS = 256  # bytes
EXPECTED = ("rms_norm", "add_rms_norm", "swiglu", "cross_entropy")  # ops that must serve the model, each in every step


@dataclasses.dataclass
class Setting:
    """One experiment; the sizes that fit the machine."""

    name: str
    device: str
    dtype: str
    hidden: int
    layers: int
    heads: int
    mlp: int
    context: int
    batch: int
    steps: int
    rate: float


def settings(device: str, steps: int | None) -> list[Setting]:
    small = Setting(
        "small f32", device, "float32", hidden=128, layers=4, heads=4, mlp=344, context=128, batch=8, steps=steps or 160, rate=4e-3
    )
    if device == "cpu":
        return [small]
    large = Setting(
        "large bf16", device, "bfloat16", hidden=2048, layers=12, heads=16, mlp=5632, context=2048, batch=4, steps=steps or 60, rate=2e-4
    )
    return [small, large]


# ---- one run, in a process of its own ------------------------------------------------------------------------------------------


def train(setting: Setting, accelerated: bool, variant: int) -> None:
    """Prints one JSON line per step on stdout, then one with the summary."""
    import torch

    if variant:  # the same computation with its sums in another order
        if setting.device == "cpu":
            torch.set_num_threads([n for n in (3, 5, 7) if n != torch.get_num_threads()][variant - 1])
        else:
            torch.backends.cuda.preferred_blas_library("cublaslt")
            torch.backends.cuda.enable_flash_sdp(variant == 1)  # 2: another attention algorithm as well
    torch.manual_seed(7)
    model = build(setting)
    optimizer = torch.optim.AdamW(model.parameters(), lr=setting.rate, betas=(0.9, 0.95), fused=setting.device == "cuda")
    batches = text_batches(setting)
    report = None
    calls = lambda: {}  # noqa: E731
    if accelerated:
        import kernelwright
        import kernelwright.torch

        names = list(model.state_dict())
        report = kernelwright.torch.accelerate(model)
        assert list(model.state_dict()) == names, "accelerate changed the state_dict keys"
        calls = lambda: {op: kernelwright.calls(op) for op in report.counts()}  # noqa: E731

    cuda = setting.device == "cuda"
    wait = torch.cuda.synchronize if cuda else lambda: None
    for step in range(setting.steps):
        inputs = next(batches)
        before = calls()
        wait()
        start = time.perf_counter()
        loss = model(input_ids=inputs, labels=inputs).loss
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        wait()
        seconds = time.perf_counter() - start
        after = calls()
        grown = {op: after[op] - before[op] for op in after}
        emit({"step": step, "loss": loss.item(), "norm": norm.item(), "seconds": seconds, "calls": grown})
    peak = torch.cuda.max_memory_allocated() if cuda else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    emit(
        {
            "peak": peak,
            "parameters": sum(p.numel() for p in model.parameters()),
            "threads": torch.get_num_threads(),
            "machine": torch.cuda.get_device_name() if cuda else f"CPU, {torch.get_num_threads()} threads",
            "swapped": report.counts() if report else {},
            "report": str(report) if report else "",
        }
    )


def build(setting: Setting):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=TOKENS,
        hidden_size=setting.hidden,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.heads,
        num_key_value_heads=setting.heads,
        intermediate_size=setting.mlp,
        max_position_embeddings=setting.context,
        use_cache=False,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).to(device=setting.device, dtype=getattr(torch, setting.dtype)).train()


def text_batches(setting: Setting):
    """Random windows of the text; the same ones in every run."""
    import torch
    from pydoc_data.topics import topics

    data = torch.frombuffer(bytearray("\n".join(topics[k] for k in sorted(topics)).encode()), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(11)
    while True:
        starts = torch.randint(0, len(data) - setting.context, (setting.batch,), generator=generator).tolist()
        yield torch.stack([data[s : s + setting.context] for s in starts]).to(setting.device)


def emit(line: dict) -> None:
    print(json.dumps(line), flush=True)


# ---- the runs side by side -----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Run:
    label: str
    loss: list[float]
    norm: list[float]
    seconds: list[float]
    calls: list[dict]
    summary: dict

    @property
    def step_time(self) -> float:  # median; the first steps warm up
        return statistics.median(self.seconds[min(5, len(self.seconds) - 1) :])


def run(setting: Setting, label: str, accelerated: bool = False, variant: int = 0) -> Run:
    argv = [sys.executable, __file__, "--worker", json.dumps([dataclasses.asdict(setting), accelerated, variant])]
    lines = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            lines.append(json.loads(text))
            if "step" in lines[-1]:
                progress(f"{setting.name}, {label}", lines[-1]["step"] + 1, setting.steps, f"loss {lines[-1]['loss']:.3f}")
    if process.returncode != 0 or "peak" not in lines[-1]:
        raise SystemExit(f"train_llama: the run '{label}' ended with status {process.returncode}")
    steps = lines[:-1]
    return Run(
        label, [s["loss"] for s in steps], [s["norm"] for s in steps], [s["seconds"] for s in steps], [s["calls"] for s in steps], lines[-1]
    )


def progress(what: str, done: int, total: int, note: str) -> None:
    bar = "#" * (24 * done // total)
    if sys.stderr.isatty():
        print(f"\r  {what:<32} [{bar:<24}] {done}/{total}  {note}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done % (total // 4 or 1) == 0:
        print(f"  {what:<32} {done}/{total}  {note}", file=sys.stderr, flush=True)


def faults(setting: Setting, stock: Run, bound: float, ours: Run) -> list[str]:
    """Everything that must hold, as sentences about what does not."""
    found = []
    for op in EXPECTED:
        if not ours.summary["swapped"].get(op):
            found.append(f"no module was swapped for {op}")
        elif not all(c.get(op, 0) > 0 for c in ours.calls):
            step = next(i for i, c in enumerate(ours.calls) if not c.get(op, 0) > 0)
            found.append(f"{op} was not called in step {step}")
    worst = gap(stock, ours)
    if not worst <= bound:  # also when NaN
        found.append(f"the loss curves part by {worst:.3g}, more than {bound:.3g} = twice the gap of two stock runs")
    if setting.dtype == "float32":
        for what, a, b in (("loss", stock.loss[0], ours.loss[0]), ("gradient norm", stock.norm[0], ours.norm[0])):
            if not abs(a - b) <= 1e-5:
                found.append(f"the first {what} is {b!r}, stock has {a!r}: more than 1e-5 apart")
    return found


def gap(a: Run, b: Run) -> float:
    gaps = [abs(x - y) for x, y in zip(a.loss, b.loss, strict=True)]
    return max(gaps) if all(g == g for g in gaps) else float("nan")


def draw(results: list[tuple[Setting, Run, float, Run]], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(results), 2, figsize=(11, 4.2 * len(results)), width_ratios=[3, 1.4], squeeze=False, layout="constrained"
    )
    for (curve, bars), (setting, stock, bound, ours) in zip(axes, results, strict=True):
        curve.plot(stock.loss, color="#9aa5b1", linewidth=4, label="stock PyTorch")
        curve.plot(ours.loss, color="#c2410c", linewidth=1.4, label="kernelwright.torch.accelerate(model)")
        curve.set(
            xlabel="step",
            ylabel="loss (nats per byte)",
            title=f"Llama, {setting.name}: {stock.summary['parameters'] / 1e6:.1f} M parameters",
        )
        verdict = f"largest difference {gap(stock, ours):.2g}\nallowed {bound:.2g}: twice what stock runs\nwith reordered sums differ by"
        curve.text(0.98, 0.66, verdict, transform=curve.transAxes, ha="right")
        curve.legend(frameon=False)
        times = [1e3 * r.step_time for r in (stock, ours)]
        drawn = bars.bar(["stock", "accelerated"], times, color=["#9aa5b1", "#c2410c"], width=0.6)
        bars.bar_label(drawn, [f"{t:.0f} ms" for t in times])
        bars.set(ylabel="ms per step (median)", title=stock.summary["machine"])
        for axis in (curve, bars):
            axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        values, accelerated, variant = json.loads(args.worker)
        train(Setting(**values), accelerated, variant)
        return 0
    start = time.perf_counter()
    if args.device is None:
        import torch

        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    results, found = [], []
    for setting in settings(args.device, args.steps):
        others = [run(setting, f"stock, sums reordered {i}", variant=i) for i in (1, 2)]
        stock = run(setting, "stock")  # right before ours: a shared machine drifts by 10 % within a minute
        bound = 2 * max(gap(stock, other) for other in others)
        ours = run(setting, "accelerated", accelerated=True)
        results.append((setting, stock, bound, ours))
        print(f"\n{setting.name} on {stock.summary['machine']}: {setting.batch} x {setting.context} tokens per step")
        print("  " + ours.summary["report"].replace("\n", "\n  "))
        for r in (stock, ours):
            print(
                f"  {r.label:<12} {1e3 * r.step_time:8.1f} ms per step   peak memory {r.summary['peak'] / 2**20:8.0f} MiB"
                f"   last loss {r.loss[-1]:.4f}"
            )
        print(
            f"  largest loss difference {gap(stock, ours):.3g}, allowed {bound:.3g}; "
            f"first step: loss {abs(stock.loss[0] - ours.loss[0]):.2g}, gradient norm {abs(stock.norm[0] - ours.norm[0]):.2g} apart"
        )
        found += [f"{setting.name}: {fault}" for fault in faults(setting, stock, bound, ours)]
    picture = args.out / "train_llama.png"
    draw(results, picture)
    (args.out / "train_llama.json").write_text(
        json.dumps([[x if isinstance(x, float) else dataclasses.asdict(x) for x in r] for r in results])
    )
    print(f"\nLoss curves and step times: {os.path.relpath(picture)}   ({time.perf_counter() - start:.0f} s in all)")
    for fault in found:
        print(f"FAILED: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
