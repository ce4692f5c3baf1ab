"""Writes the README's measured tables from benchmarks/results/*.json (kind torch_peers): the newest file of each machine; for the first
screen, its largest bf16 shape alone.

    python scripts/bench_table.py            rewrites README.md between its markers
    python scripts/bench_table.py --check    exit status 1 when README.md does not say what the files say
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHORT, ALL = "short", "measured"  # between <!-- NAME: begin --> and <!-- NAME: end -->


def newest_per_machine(folder: Path) -> list[tuple[Path, dict]]:
    newest: dict[str, tuple[Path, dict]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        if isinstance(record, dict) and record.get("kind") == "torch_peers":
            held = newest.get(record["machine"])
            if held is None or record["date"] >= held[1]["date"]:
                newest[record["machine"]] = (path, record)
    return [newest[machine] for machine in sorted(newest)]


def table(path: Path, record: dict) -> str:
    """One line per op, pass, dtype and shape; one column per candidate: its share of the copy rate."""
    candidates: list[str] = []
    for row in record["rows"]:
        candidates += [name for name in row["times_us"] if name != "copy" and name not in candidates]
    lines = [f"{record['machine']}, torch {record['torch']}, {record['date'][:10]} ([{path.name}]({path.relative_to(ROOT).as_posix()}))\n",
             "| op | dtype | rows x length | copy GB/s | " + " | ".join(candidates) + " |", "|---|---|---|---|" + "---|" * len(candidates)]
    for row in record["rows"]:
        cells = [f"{row['op']} {row['pass']}", row["dtype"], f"{row['rows']} x {row['length']}", f"{row['copy_GBps']:.0f}"]
        for name in candidates:
            time = row["times_us"].get(name)
            cells.append(f"{100 * row['bytes'] / time['median'] / 1e3 / row['copy_GBps']:.0f} %" if time else "-")
        lines.append("| " + " | ".join(cells) + " |")
    if record.get("left_out"):
        lines.append("\nNot measured in this run: " + "; ".join(record["left_out"]) + ".")
    return "\n".join(lines) + "\n"


def largest(record: dict) -> dict:
    """The rows of the first bf16 shape, by size."""
    rows = [row for row in record["rows"] if row["dtype"] == "bfloat16"]
    first = max(rows, key=lambda row: (row["rows"], row["length"]), default=None)
    return {**record, "rows": [row for row in rows if (row["rows"], row["length"]) == (first["rows"], first["length"])], "left_out": []}


def replaced(readme: str, name: str, text: str) -> str:
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, rest = readme.split(begin)
    return head + begin + text + end + rest.split(end)[1]


def render(readme: str, folder: Path) -> str:
    found = newest_per_machine(folder)
    none = "No results are committed yet.\n"
    readme = replaced(readme, SHORT, "\n".join(table(path, largest(record)) for path, record in found) or none)
    return replaced(readme, ALL, "\n".join(table(*one) for one in found) or none)


def main() -> int:
    readme = ROOT / "README.md"
    old = readme.read_text()
    new = render(old, ROOT / "benchmarks" / "results")
    if "--check" in sys.argv[1:]:
        if new != old:
            print("README.md: the measured tables are not what benchmarks/results says; run scripts/bench_table.py")
        return int(new != old)
    readme.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
