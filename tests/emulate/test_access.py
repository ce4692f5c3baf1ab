"""kw emulate --access and --html, kw plan --access: costs at their lines, in every form."""

import html.parser
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KW = Path(os.environ.get("KW_BUILD", HERE.parents[1] / "build")) / "kw"
COSTS = HERE / "programs" / "costs.cu"
SCALE = HERE / "programs" / "scale.cu"


def kw(*arguments):
    return subprocess.run([KW, *map(str, arguments)], capture_output=True, text=True, timeout=100)


def line_of(text):
    return next(i for i, line in enumerate(COSTS.open(), 1) if text in line)


def access_of(report, kernel, what):
    return next(a for k in report["kernels"] if k["kernel"] == kernel for a in k["accesses"] if a["what"] == what)


@pytest.mark.parametrize("pad, wavefronts", [(0, 32), (1, 1)])
def test_a_program_costs_what_it_must(tmp_path, pad, wavefronts):
    done = kw("emulate", COSTS, "-D", f"PAD={pad}", "--access", "--json", tmp_path / "f.json")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    report = json.load((tmp_path / "f.json").open())["access"]
    column = access_of(report, "through_shared", "shared load")
    assert column["place"].endswith(f"costs.cu:{line_of('// column')}")
    assert (column["requests"], column["wavefronts"], column["least"]) == (4 * 32, 4 * 32 * wavefronts, 4 * 32)
    assert ("bank conflicts: 3968" in done.stderr) == (pad == 0)
    store = access_of(report, "scattered", "global store")
    assert (store["requests"], store["lanes"], store["sectors"], store["least"]) == (3 * 128, 3 * 4096, 3 * 4096, 3 * 512)
    assert "32.00 sectors         4.00" in done.stderr and "88% of the bytes unused" in done.stderr
    kernel = next(k for k in report["kernels"] if k["kernel"] == "scattered")
    assert kernel["launches"] == 3
    read, written = sorted(kernel["buffers"], key=lambda b: b["written"])
    assert (read["times_read"], written["times_written"], written["written_sectors"]) == (1, 1, 3 * 4096)
    assert f"allocated at {COSTS}:" in read["name"]


def test_nothing_is_counted_unless_asked(tmp_path):
    done = kw("emulate", COSTS, "--json", tmp_path / "f.json")
    assert "access" not in done.stderr and "access" not in json.load((tmp_path / "f.json").open())


def test_the_report_outlives_exit_and_says_so_where_it_does_not(tmp_path):
    left = kw("emulate", COSTS, "-D", "END=2", "--access")
    assert left.returncode == 7 and "through_shared" in left.stderr
    killed = kw("emulate", COSTS, "-D", "END=1", "--access", "--html", tmp_path / "page.html")
    assert killed.returncode == 128 + 6 and "there is no access report, because the program did not come to its end" in killed.stderr
    assert "there is no access report" in (tmp_path / "page.html").read_text()


class Page(html.parser.HTMLParser):
    """Every tag closed that must be, every link with a target."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.text = [], set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        assert tag not in ("script", "link", "img"), "the page stands alone"
        self.ids |= {values["id"]} if "id" in values else set()
        self.links += [values["href"]] if "href" in values else []
        if tag in ("div", "details", "table", "span", "p", "h1", "h2", "h3", "a", "b", "code"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("div", "details", "table", "span", "p", "h1", "h2", "h3", "a", "b", "code"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_marks_the_lines(tmp_path):
    kw("emulate", COSTS, "--html", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert not page.open and page.links and all(link[1:] in page.ids for link in page.links)
    row = re.search(rf'<tr id="[^"]*costs.cu-{line_of("// column")}" class="marked">.*?</tr>', text, re.S)[0]
    assert "shared load 32 (least 1)" in row and 'class="over"' in row and "block[threadIdx.x][threadIdx.y]" in row
    assert "// &lt; each lane" in text  # what looks like a tag is none


def test_the_page_shows_both_sides_of_a_race(tmp_path):
    done = kw("emulate", SCALE, "-D", "BUG=2", "--schedule", "greedy", "--html", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert done.returncode == 1 and "shared-race" in text and "2 errors, 0 warnings" in text
    assert "the other side: shared-race" in page.text and "put __syncthreads()" in page.text
    assert all(link[1:] in page.ids for link in page.links)


def test_a_page_that_cannot_be_written_is_said():
    done = kw("emulate", COSTS, "--html", "/no/such/folder/page.html")
    assert done.returncode == 2 and "writing /no/such/folder/page.html failed" in done.stderr


def first_op():
    return re.search(r"^(\w+)$", kw("list").stdout, re.M)[1]


def small_call(op):
    """Its first bench case with 16 rows."""
    arguments = json.loads(kw("plan", op, "--json").stdout)[0]["arguments"]
    return [word for a in re.sub(r"\[\d{4,}", "[16", arguments).split() if "[" in a for word in ("--arg", a)]


def test_plan_counts_the_same_call():
    op = first_op()
    words = small_call(op)
    done = kw("plan", op, "--access", "--json", "--gpu", "h200", *words)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)[0]
    assert [k["kernel"] for k in plan["access"]["kernels"]] == [launch["kernel"] for launch in plan["launches"]]
    for kernel in plan["access"]["kernels"]:
        assert kernel["accesses"] and not any(a["dropped"] for a in kernel["accesses"])
        assert all(a["least"] <= a.get("sectors", a.get("wavefronts")) for a in kernel["accesses"])
        assert all("kw/device/" not in a["place"] for a in kernel["accesses"])  # of the room's line, not of a word's
        assert all(b["name"].isidentifier() for b in kernel["buffers"])
    human = kw("plan", op, "--access", "--gpu", "h200", *words)
    assert "global load" in human.stdout and "times its size" in human.stdout


def test_plan_counts_on_one_gpu():
    done = kw("plan", first_op(), "--access", "--gpu", "all")
    assert done.returncode == 2 and "--access runs the call as on one GPU" in done.stderr
    strided = kw("plan", first_op(), "--access", *[re.sub(r"(\d+,\d+)\]", r"\1:500000,1]", word) for word in small_call(first_op())])
    assert strided.returncode == 2 and "--access counts contiguous tensors" in strided.stderr
