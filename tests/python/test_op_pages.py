"""docs/ops says what the contracts and the rooms' READMEs say, and its links lead somewhere."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import op_pages  # noqa: E402


def test_no_page_is_stale():
    names = op_pages.stale(op_pages.pages(), op_pages.PAGES)
    assert names == [], "PYTHONPATH=build/python .venv/bin/python scripts/op_pages.py writes them again"


def test_a_stale_page_is_noticed(tmp_path):
    pages = op_pages.pages()
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
    assert op_pages.stale(pages, tmp_path) == []
    first, second = sorted(pages)[:2]
    (tmp_path / first).write_text("something else")
    (tmp_path / second).unlink()
    (tmp_path / "gone.md").write_text("of an op that was")
    assert op_pages.stale(pages, tmp_path) == sorted([first, second, "gone.md"])


def links(page: Path) -> list[str]:
    return re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())


def test_every_link_of_the_documents_leads_somewhere():
    pages = [file for folder in ("docs", "kw", "emulator", "examples", "benchmarks") for file in (ROOT / folder).rglob("*.md")]
    pages += ROOT.glob("*.md")
    broken = [f"{page.relative_to(ROOT)}: {link}" for page in pages for link in links(page) if not (page.parent / link).exists()]
    assert broken == [] and sum(len(links(page)) for page in pages) > 20
