"""Writes docs/ops/<op>.md from the contracts and the rooms' README files, for every op that is not the gradient of another one.

    build/python must be importable (PYTHONPATH):
    python scripts/op_pages.py            writes the pages
    python scripts/op_pages.py --check    exit status 1 when they do not say what the sources say
"""
import os
import re
import sys
from pathlib import Path

from kernelwright._describe import element, place, signature
from kernelwright._library import library
from kernelwright._manifest import Attribute, Op, Tensor

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "ops"
NOTE = "<!-- Written by scripts/op_pages.py from the contract and the room's README. -->\n"
SIGNS = {"at_least": "≥", "above": ">", "at_most": "≤", "below": "<"}


def page(op: Op) -> str:
    room = ROOT / "kw/ops" / op.room
    readme = (room / "README.md").read_text()
    parts = [
        f"{NOTE}# {op.name}\n",
        f"```\n{op.contract.strip()}\n```",
        f"[The contract language](../contract.md) · the room: [kw/ops/{op.room}](../../kw/ops/{op.room}/README.md)"
        f" (variants, measurements) · all ops: [README](README.md)\n",
        "## Formula\n",
        relinked(formula(readme), room),
        "## Call\n",
        f"```python\nimport kernelwright.torch as kt\n\nkt.{op.name}{signature(op)}\n```",
        f"Also `torch.ops.kernelwright.{op.name}`, and in C++ `kw::{op.name}` of `#include <kw/ops/{op.room}/{op.room}.h>`."
        if f"{op.name}(" in (room / f"{op.room}.h").read_text()
        else f"Also `torch.ops.kernelwright.{op.name}`, and in C `kw_op_find(\"{op.name}\")`.",
        "",
        *table(op),
        *gradient(op),
        "## Errors\n",
        "A shape, dtype, device, layout or value that does not fit is refused before anything is written: `kernelwright.ArgumentError` (a\n"
        "`ValueError`; in C `KW_ERROR_ARGUMENT`) with a sentence that names op, argument, got and wanted. A GPU without driver, or with\n"
        "neither NVRTC nor a pack: `ToolchainError`. [All kinds](../../python/kernelwright/_errors.py)\n",
        "## Promises\n",
        relinked(section(readme, "Promises"), room),
        "As every op: it runs on the caller's stream and device, waits for nothing, allocates nothing"
        + (", can be captured in a CUDA graph." if op.capturable else "; **it cannot be captured in a CUDA graph.**"),
    ]
    return "\n".join(parts) + "\n"


def table(op: Op) -> list[str]:
    lines = ["| | shape, dtype | |", "|---|---|---|"]
    for a in op.arguments:
        lines.append(f"| `{a.name}` | {attribute(a)} |" if isinstance(a, Attribute) else f"| `{a.name}` | {tensor(op, a)} |")
    for r in op.outputs:
        lines.append(f"| → `{r.name}` | {tensor(op, r)} |")
    notes = [f"{name} is {' or '.join(element(o) for o in options)}" for name, options in op.types.items()]
    notes += [f"\\*{name} is any number of leading dimensions" for name, variadic in op.dims.items() if variadic]
    if any("acc(" in element(t.element) for t in [*op.inputs, *op.outputs]):
        notes.append("acc(T) is f32, f64 for f64")
    return [*lines, "", "; ".join(notes) + ".\n"]


def tensor(op: Op, t: Tensor) -> str:
    words = ["a list" if t.is_list else "", "may be absent" if t.optional else "", "written in place" if t.written else ""]
    words.append(f"only with `{t.present_with}`" if t.present_with else "")
    words.append(f"whole numbers within {t.below}; others: see the promises" if t.below else "")
    return f"`{element(t.element)}[{', '.join(map(place, t.shape))}]` | {'; '.join(filter(None, words))}"


def attribute(a: Attribute) -> str:
    kind = ", ".join(f"`{v}`" for v in a.values) if a.values else a.type
    bounds = "".join(f" {SIGNS[k]} {v:g}" for k, v in a.bounds.items())
    return f"{kind}{bounds} | {'required' if a.required else f'default `{a.default}`'}"


def gradient(op: Op) -> list[str]:
    if not op.gradient:
        return ["## Gradient\n", "None.\n"]
    backward = library.op(op.gradient.op)
    told = "Once, by reverse mode: double backward and forward mode are refused by a sentence.\n"
    return ["## Gradient\n", f"```\n{backward.contract.strip()}\n```", told]


def formula(readme: str) -> str:
    """What stands between a README's title and its first section."""
    return readme.split("\n## ")[0].split("\n", 1)[1].strip("\n") + "\n"


def section(readme: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", readme, re.M | re.S)
    if not found:
        sys.exit(f"a room's README has no section '{title}'")
    return found[1].strip("\n") + "\n"


def relinked(text: str, room: Path) -> str:
    """Links of a text that moves from the room's folder to docs/ops."""
    return re.sub(r"\]\((?!https?://|#)([^)#]+)", lambda m: "](" + os.path.relpath(room / m[1], PAGES), text)


def index(ops: list[Op]) -> str:
    lines = [f"{NOTE}# The ops\n", "A page each, from its contract and its room's README.\n", "| op | room | gradient |", "|---|---|---|"]
    for op in ops:
        room = f"[{op.room}](../../kw/ops/{op.room}/README.md)"
        lines.append(f"| [{op.name}]({op.name}.md) | {room} | {'yes' if op.gradient else 'no'} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name -> text."""
    rooms = {room.name for room in (ROOT / "kw/ops").iterdir()}  # a process may have loaded others
    ops = [op for op in library.ops() if op.backward_of is None and op.room in rooms]
    return {"README.md": index(ops), **{f"{op.name}.md": page(op) for op in ops}}


def stale(wanted: dict[str, str], folder: Path) -> list[str]:
    there = {file.name: file.read_text() for file in folder.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def main() -> int:
    wanted = pages()
    if "--check" in sys.argv[1:]:
        if names := stale(wanted, PAGES):
            print(f"docs/ops: {', '.join(names)}: not what contracts and READMEs say; run scripts/op_pages.py")
        return bool(names)
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in stale(wanted, PAGES):
        (PAGES / name).unlink(missing_ok=True)
        if name in wanted:
            (PAGES / name).write_text(wanted[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
