"""docs/environment.md names every variable that the sources read, and none that they do not."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("kw", "faces", "python", "tools", "testing", "emulator", "scripts", "tests", "benchmarks", "examples")
# What the programs that we start look at, and what every program has.
EVERYBODYS = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD"}
READS = re.compile(
    r"""(?:getenv\(|\benviron(?:\.get\(|\.pop\(|\.setdefault\(|\[)|\benviron,\s*)\s*["'](\w+)["']"""
    r"""|["'](\w+)["']\s+(?:not\s+)?in os\.environ"""
)


def read_in(text: str) -> set[str]:
    found = {a or b for a, b in READS.findall(text)}
    if names := re.search(r"for \(const char\* name : \{([^}]*)\}\) \{\s*std::string variable = \"KWEMU_\"", text):
        found |= {"KWEMU_" + name.upper() for name in re.findall(r'"(\w+)"', names[1])}
    return found


def all_read() -> dict[str, str]:
    found = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".cpp", ".h", ".inc", ".py") and file != Path(__file__).resolve():
                for name in read_in(file.read_text()):
                    found.setdefault(name, str(file.relative_to(ROOT)))
    return {name: place for name, place in found.items() if name not in EVERYBODYS}


def documented() -> set[str]:
    rows = re.findall(r"^\| (`[^|]*`) \|", (ROOT / "docs" / "environment.md").read_text(), re.M)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_variable_is_on_the_page():
    missing = {name: place for name, place in all_read().items() if name not in documented()}
    assert not missing


def test_the_page_names_no_other():
    # Read by what we start.
    elsewhere = {"CUDA_LAUNCH_BLOCKING"}
    assert documented() - set(all_read()) <= elsewhere


def test_a_variable_is_noticed():
    assert read_in('std::getenv("KW_X"); os.environ["KW_Y"]; os.environ.get(\'KW_Z\', 1)\nif "KW_V" not in os.environ') == {
        "KW_X", "KW_Y", "KW_Z", "KW_V"}
    assert "KWEMU_SCHEDULE" in all_read() and "KW_CACHE_LIMIT" in all_read() and len(all_read()) > 20
