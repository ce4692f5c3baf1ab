"""The checker's strength: planted bugs are killed, by what is meant to see them, and legal variants pass. All of them: `make test-full`."""
import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))

# One planted bug for each detector, of a small kernel: what sees it, and what allclose says.
SAMPLE = {
    "wrong-result-overwritten": "memory",
    "swiglu-zeros": "number",
    "swiglu-nan": "number",
    "swiglu-stale": "uninit-global",
    "swiglu-identity": "number",
    "does-nothing:swiglu.cuh.1": "unwritten-output",
    "row-ends-unwatched": "global-oob",
}


def mutate(*words, status, **variables):
    done = subprocess.run([BUILD / "kw", "mutate", *words], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_planted_bug_for_each_detector(tmp_path):
    only = [word for name in SAMPLE for word in ("--only", name)]
    record, picture = tmp_path / "record.txt", tmp_path / "picture.svg"
    words = ["swiglu", "swiglu_backward", *only, "--only", "division-in-place", "--quick", "--json", str(tmp_path / "result.json"),
             "--record", str(record), "--picture", str(picture)]
    mutate(*words, status=0)
    result = json.loads((tmp_path / "result.json").read_text())
    assert {m["name"]: m["seen_by"] for m in result["mutants"] if m["number"]} == SAMPLE
    assert result["killed"] == result["planted"] == len(SAMPLE) and result["legal_variants"] == 1 and result["false_alarms"] == 0
    assert result["naive_allclose"] < len(SAMPLE)
    texts = [text.text for text in xml.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert "7 planted bugs, one at a time" in texts and "and 1 legal variants of the kernels: 0 false alarms" in texts

    # The record is the run: nothing is tried again but what is not in it, be it that a line was cut off when the run was stopped.
    lines = record.read_text().split("\n")[:-1]
    assert len(lines) == len(SAMPLE) + 1
    record.write_text("\n".join(lines)[:-20])
    mutate(*words, status=0)
    again, redone = json.loads((tmp_path / "result.json").read_text()), record.read_text().split("\n")[:-1]
    assert redone[:-2] == lines[:-1] and redone[-2] == lines[-1][:-20] and redone[-1].split("\t")[:2] == lines[-1].split("\t")[:2]
    seconds = [{**run, "mutants": [{**m, "seconds": 0} for m in run["mutants"]], "date": ""} for run in (result, again)]
    assert seconds[0] == seconds[1]


def test_a_run_that_is_stopped_leaves_nothing_behind(tmp_path):
    command = [BUILD / "kw", "mutate", "swiglu", "--only", "division-in-place", "--record", "record.txt", "--bugs",
               str(ROOT / "testing/mutants")]
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True) as run:
        time.sleep(1)
        assert list(tmp_path.glob("kw-mutate-*"))
        run.send_signal(signal.SIGTERM)
        out = run.communicate(timeout=60)[0]
    assert run.returncode == 1 and "stopped when 0 of 1 were tried; the same command goes on from there" in out
    assert [file.name for file in tmp_path.iterdir()] == ["record.txt"]


def test_a_survivor_and_a_false_alarm_are_told(tmp_path):
    (tmp_path / "bugs.txt").write_text(
        "bug no-bug 12\nsays nothing is wrong\nin kw/ops/swiglu/swiglu.cuh\n- return g;\n+ return g + 0;\n"
        "legal no-variant\nsays the other factor\nin kw/ops/swiglu/swiglu.cuh\n"
        "- .value * up; }, gate, up);\n+ .value * gate; }, gate, up);\n")
    out = mutate("swiglu", "--bugs", str(tmp_path), "--quick", status=1)
    assert "1 survivors without a reason" in out
    assert "SURVIVES" in out and "+     return g + 0;" in out and "FALSE ALARM" in out and "0 of 1 planted bugs killed" in out


def test_what_fails_without_the_bug_is_no_kill(tmp_path):
    wrong = tmp_path / "kw/ops/swiglu/swiglu.cuh"
    wrong.parent.mkdir(parents=True)
    text = (ROOT / "kw/ops/swiglu/swiglu.cuh").read_text()
    assert text.count(".value * up; }, gate, up);") == 1
    wrong.write_text(text.replace(".value * up; }, gate, up);", ".value * gate; }, gate, up);"))
    (tmp_path / "bugs.txt").write_text("bug no-bug 12\nsays nothing is wrong\nin kw/ops/swiglu/swiglu.cuh\n- return g;\n+ return g + 0;\n")
    out = mutate("swiglu", "--bugs", str(tmp_path), "--quick", status=1, KW_KERNEL_PATH=str(tmp_path))
    assert "UNFOUNDED" in out and "0 of 1 planted bugs killed" in out and "1 survivors without a reason" in out


@pytest.mark.parametrize("text, part", [
    ("bug a\n", "needs a number of the catalogue"),
    ("bug a 1\nsays b\nin kw/ops/swiglu/swiglu.cuh\n- no such text\n+ c\n", "does not hold: no such text"),
    ("bug a 1\nsays b\nin kw/ops/swiglu/swiglu.cuh\n- tile\n+ c\n", "holds more than once: tile"),
    ("hello\n", "begins with bug, legal or rule"),
])
def test_bugs_that_do_not_fit(tmp_path, text, part):
    (tmp_path / "bugs.txt").write_text(text)
    assert part in mutate("swiglu", "--bugs", str(tmp_path), status=2)


@pytest.mark.parametrize("record", sorted((ROOT / "benchmarks/results").glob("*-mutation-emulator.json"))[-1:], ids=lambda path: path.name)
def test_the_result_on_record(record):  # of a whole run; a part is named ...-part.json
    result = json.loads(record.read_text())
    assert result["run"] == result["chosen"] and result["planted"] >= 80 and result["killed"] >= 0.97 * result["planted"]
    assert all(m["reason"] for m in result["survivors"]) and len(result["survivors"]) == result["planted"] - result["killed"]
    assert result["legal_variants"] >= 30 and result["false_alarms"] == 0
    assert result["by_origin"]["rule"] >= 0.45 * result["planted"] and result["by_origin"]["stranger"] >= 20
    # Kernels that are no kernels always fail.
    states = {m["name"]: m["state"] for m in result["mutants"]}
    rooms = ("rms_norm", "swiglu", "cross_entropy")
    nothing = [f"{room}-{kind}" for room in rooms for kind in ("zeros", "nan", "stale")] + ["rms_norm-identity", "swiglu-identity"]
    nothing += [name for name in states if name.startswith("does-nothing:")]
    assert {states[name] for name in nothing} == {"killed"} and len(nothing) > 15
    # And the picture is that of these numbers.
    words = (ROOT / "docs/planted-bugs.svg").read_text()
    assert f"{result['planted']} planted bugs, one at a time" in words and f"emulate: {result['killed']} (" in words
    assert f"random input: {result['naive_allclose']} (" in words


def test_nonsense():
    assert "no planted bug is named like that" in mutate("--only", "there is none", status=2)
    assert "runs on --device emulate" in mutate("--device", "cuda", status=2)


def test_the_corpus():
    lines = [line.split() for line in mutate("--list", status=0).splitlines()[:-1]]
    numbers = [int(line[0]) for line in lines]
    bugs = [n for n in numbers if n]
    assert len(bugs) >= 80 and numbers.count(0) >= 30
    assert all(bugs.count(n) <= 0.065 * len(bugs) for n in set(bugs))
    assert sum(":" in line[1] for line in lines) >= 0.45 * len(bugs)
    assert len({line[1] for line in lines}) == len(lines)
