"""kw emulate: what programs are written with beyond plain CUDA C++. Each prints what a GPU computes; each mistake in it is found."""

import json
from pathlib import Path

import pytest
from test_programs import emulate

PROGRAMS = Path(__file__).parent / "programs"


def findings(name, bug, tmp_path):
    report = tmp_path / "f.json"
    done = emulate(PROGRAMS / f"{name}.cu", "-D", f"BUG={bug}", "--json", report)
    return done, json.loads(report.read_text())["findings"] if report.is_file() else None


def lines_of(name, text):
    return [i for i, line in enumerate((PROGRAMS / f"{name}.cu").read_text().splitlines(), 1) if text in line]


OUTPUT = {
    # A graph runs nothing before its launch, and each launch runs it all; a node has its own copy of the arguments.
    "graph": ["while captured 0, waiting refused 1", "three times 14", "by hand 5", "by address 15"],
    "ptx": ["127 192 582 32", "67 f 0 -2 0 3 3e00", "0 products wrong"],
    # 3e10 becomes the largest unsigned number, 5 << 32 is 0 and -4 >> 32 is -1, as PTX has it; then 31 + 100 * 16 + 1 and
    # 10 * 1000 + 100 * 16 + 4.
    "words": [
        "3.75 2.71875 1 1 -0.3333333 1.414062 0.4769363 0 1.959964 "
        "30405 ffffffff 10101010 f ffffffff fffffffe 0 ffffffff ffffff 1632 11604"
    ],
}


@pytest.mark.parametrize("name", OUTPUT)
def test_a_right_program_computes_what_a_gpu_does(name, tmp_path):
    done, found = findings(name, 0, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == OUTPUT[name]
    assert [f for f in found if f["kind"] != "shift"] == [], done.stderr


@pytest.mark.parametrize(
    "name, bug, kind, place, words",
    [
        ("graph", 1, "shared-race", "if (i < n) p[i] = tile", "__shared__ tile"),
        ("graph", 2, "uninit-global", "tile[i] = p[i];", "never written"),
        ("ptx", 1, "async-pending", "st.global.cs.f32", "still filling"),
        ("ptx", 2, "global-oob", "LOAD4(v, x", "read of 16 bytes"),
        ("ptx", 3, "global-race", "st.global.cs.f32", "with no ordering between"),
        ("words", 1, "global-oob", "p[BUG == 1", "byte 32 of 32 of variable first"),
        ("words", 2, "global-oob", "p[BUG == 1", "byte 8 of 8 of variable counter"),
    ],
)
def test_a_planted_mistake_is_found_where_it_is(name, bug, kind, place, words, tmp_path):
    done, found = findings(name, bug, tmp_path)
    places = [f"{name}.cu:{line}" for line in lines_of(name, place)]
    assert any(f["kind"] == kind and words in f["what"] and any(p in f["at"] for p in places) for f in found), done.stderr
    assert done.returncode == 1


def test_unknown_ptx_is_refused_with_its_line_before_anything_runs(tmp_path):
    done, _ = findings("ptx", 4, tmp_path)
    (line,) = lines_of("ptx", "wgmma")
    assert done.returncode == 2 and done.stdout == ""
    assert f"ptx.cu:{line}:" in done.stderr and "the emulator has no PTX for instruction wgmma.fence.sync.aligned" in done.stderr


def test_launches_in_macros_and_lines_stay_where_they_are(tmp_path):
    (tmp_path / "macro.cu").write_text(
        "#include <cstdio>\n"
        "template <int a, int b> __global__ void set(int* p) { p[a] = b; }\n"
        "#define RUN(a)   \\\n  set<a,  \\\n      7>  \\\n      <<<1, 1>>>( \\\n          p)\n"
        "int main() {\n  int *p, h[2];\n  cudaMalloc(&p, 8);\n  RUN(0);\n  set<1, 3>\n      <<<1, 1>>>(p);\n"
        "  set<2, 3><<<1, 1>>>(p);\n  cudaMemcpy(h, p, 8, cudaMemcpyDeviceToHost);\n  printf(\"%d %d\\n\", h[0], h[1]);\n}\n"
    )
    done = emulate("macro.cu", "--json", tmp_path / "f.json", cwd=tmp_path)
    assert done.stdout == "7 3\n", done.stderr
    (found,) = json.loads((tmp_path / "f.json").read_text())["findings"]
    assert found["kind"] == "global-oob" and found["at"] == "macro.cu:2 < macro.cu:14", found


def test_the_hosts_own_assembly_is_left_alone(tmp_path):
    (tmp_path / "host.cu").write_text(
        '#include <cstdio>\nint main() {\n  unsigned a, d;\n  asm volatile("rdtsc" : "=a"(a), "=d"(d));\n  printf("%d\\n", a != 0);\n}\n'
    )
    done = emulate("host.cu", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "1\n", done.stderr
