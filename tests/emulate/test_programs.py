"""kw emulate: whole programs, their findings by kind and place, and what a user gets who asks for what cannot be had."""

import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KW = Path(os.environ.get("KW_BUILD", HERE.parents[1] / "build")) / "kw"
SCALE = str(HERE / "programs" / "scale.cu")


def emulate(*arguments, cwd=None, **environment):
    return subprocess.run(
        [KW, "emulate", *map(str, arguments)], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=100
    )


def line_of(text):
    return next(i for i, line in enumerate(open(SCALE), 1) if text in line)


def test_a_right_program_runs_and_nothing_is_found(tmp_path):
    done = emulate(SCALE, "--set", "N=300", "--json", tmp_path / "f.json", "--", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all 300 right\n"
    assert "0 errors, 0 warnings, 0 formal" in done.stderr
    assert json.load(open(tmp_path / "f.json"))["findings"] == []


@pytest.mark.parametrize(
    "bug, kind, place, words",
    [
        (1, "global-oob", "times(a, x[i])", "at byte 4000 of 4000, allocated at"),
        (2, "shared-race", "y[from] = tile[other]", "__shared__ tile"),
        (3, "host-access", 'printf("%g\\n", y[0])', "the host's code reads 4 bytes"),
        (4, "unwritten-output", None, "4 of 4000 bytes were never written"),
        (5, "livelock", "while (((volatile float*)tile)", "polls for ever"),
        (6, "shift", "1 << (n - n + 32)", "1 shifted by 32"),
    ],
)
def test_a_planted_mistake_is_found_where_it_is(bug, kind, place, words, tmp_path):
    report = tmp_path / "f.json"
    done = emulate(SCALE, "-D", f"BUG={bug}", "--json", report, "--schedule", "greedy" if bug == 2 else "inorder")
    found = json.load(open(report))
    assert kind in [f["kind"] for f in found["findings"]], done.stderr
    first = next(f for f in found["findings"] if f["kind"] == kind)
    assert words in first["what"] and first["help"]
    if place:
        assert f"scale.cu:{line_of(place)}" in first["at"], first
    assert first["severity"] == {"unwritten-output": "warning", "shift": "formal"}.get(kind, "error")
    # What was found decides over the status; a program with mere warnings keeps its own.
    assert done.returncode == (1 if first["severity"] == "error" else found["exit_status"])
    assert f"kwemu {first['severity']}: {kind}" in done.stderr


def test_strict_makes_errors_of_all():
    assert emulate(SCALE, "-D", "BUG=6", "--strict").returncode == 1


def test_sample_says_that_it_is_one():
    done = emulate(SCALE, "--sample", "2")
    assert "of every 2th block: the others did not run" in done.stderr
    assert done.returncode == 4 and "wrong at" in done.stdout  # the program's own check saw what did not run


def test_a_missing_function_is_named_before_anything_runs():
    done = emulate(SCALE, "-D", "BUG=7")
    assert "the program uses cufftNothing, which the emulator does not have" in done.stderr
    assert done.returncode == 72 and done.stdout == ""


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ([], "kw emulate needs a source file"),
        (["nothing.cu"], "there is no file nothing.cu"),
        ([SCALE, "--set", "nothing=3"], "there is no variable or macro nothing that begins with a value"),
        ([SCALE, "--set", "N"], "--set takes NAME=VALUE, not N"),
        ([SCALE, "--schedule", "random"], "--schedule does not take random"),
        ([SCALE, "--std", "99"], "-std=gnu++99"),
    ],
)
def test_what_cannot_be_is_said(arguments, sentence):
    done = emulate(*arguments)
    assert done.returncode == 2 and sentence in done.stderr, done.stderr


def test_the_compilers_error_has_the_users_line(tmp_path):
    (tmp_path / "wrong.cu").write_text("__global__ void k(float* p) {\n  p[threadIdx.x] = nothing;\n}\nint main() { k<<<1, 1>>>(0); }\n")
    done = emulate("wrong.cu", cwd=tmp_path)
    assert done.returncode == 2 and "wrong.cu:2:" in done.stderr and "nothing" in done.stderr


def test_no_compiler_is_a_sentence():
    done = emulate(SCALE, KWEMU_CXX="no-such-g++")
    assert done.returncode == 2 and "'no-such-g++' was not found" in done.stderr
