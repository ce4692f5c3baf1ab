"""The command line from outside: every verb does its work, refuses nonsense with a sentence and the right exit status."""
import json
import os
import random
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))
VERBS = ("doctor", "list", "plan", "check", "bench", "pack", "cache")


def kw(*words, status=0, **environment):
    command = [str(BUILD / "kw"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def ops():
    found = json.loads(kw("list", "--json")[0])["ops"]
    assert found
    return {op["name"]: op for op in found}


def test_help():
    for verb in VERBS:
        assert f"kw {verb}" in kw("--help")[0]
        out = kw(verb, "--help")[0]
        assert "example: kw " + verb in out and "--json" in out


def test_list_shows_every_contract(ops):
    out = kw("list")[0]
    for name in ops:
        assert re.search(rf"^  {name}\(", out, re.M)


def test_doctor():
    lines = json.loads(kw("doctor", "--quick", "--json")[0])
    assert {"kw", "cpu", "driver", "nvrtc", "emulator", "g++", "cache", "pack"} <= {line["what"] for line in lines}
    assert all(line["state"] in ("ok", "warning", "missing") and line["text"] for line in lines)
    assert all(line.get("advice") for line in lines if line["state"] == "missing")
    assert "GB/s" in kw("doctor")[0]


def test_plan_says_what_a_face_copies(ops):
    for op in ops:
        rows = json.loads(kw("plan", op, "--json", "--arch", "sm_90")[0])[0]["copies"]
        assert rows == [], op
    slices, columns = ("gate=bf16[2,3,64:6000,100,1]", "gate=bf16[6,64:128,2]")
    assert "copy" not in kw("plan", "swiglu", "--arg", slices, "--arch", "sm_90")[0]
    assert "copy    gate: no kernel reads this layout" in kw("plan", "swiglu", "--arg", columns, "--arch", "sm_90")[0]


def test_plan_needs_no_gpu(ops):
    for name in ops:
        out = kw("plan", name, "--arch", "all")[0]
        assert [m for m in re.findall(r"sm_(\d+),", out)] == ["75", "80", "90", "100"] and "launch 1" in out
        for plan in json.loads(kw("plan", name, "--gpu", "all", "--json")[0]):
            assert plan["launches"] and all(launch["grid"][0] >= 1 and 32 <= launch["block"][0] <= 1024 for launch in plan["launches"])


@pytest.mark.parametrize("words, part", [
    (["lst"], "did you mean list?"),
    (["plan"], "needs the name of an op"),
    (["plan", "{op}x"], "did you mean {op}?"),
    (["plan", "{op}", "--arch", "sm_20"], "sm_"),
    (["plan", "{op}", "--gpu", "abacus"], "abacus"),
    (["plan", "{op}", "--arch", "sm_90", "--gpu", "h200"], "exclude each other"),
    (["plan", "{op}", "--arg", "{x}=bf16[99999999999999999999]"], "does not fit in 64 bits"),
    (["plan", "{op}", "--arg", "{x}="], "write name=dtype[sizes]"),
    (["plan", "{op}", "--arg", "{x}=f32[-1]"], "negative size"),
    (["plan", "{op}", "--arg", "{x}=bool[4]"], "{x}"),
    (["plan", "{op}", "--arg"], "needs a value"),
    (["check", "--devcie", "cpu"], "did you mean --device?"),
    (["check", "--device", "abacus"], "cpu, emulate or cuda"),
    (["check", "--seed", "-1"], "whole number"),
    (["check", "{op}", "--values", "random"], "add --arg"),
    (["check", "{op}", "--arg", "{x}=f32[4]", "--values", "nice"], "no values 'nice'"),
    (["bench", "--device", "emulate"], "cpu or cuda"),
    (["bench", "--min-time", "nan"], "takes a number"),
    (["bench", "{op}", "--arg", "{x}=f32[4,4]", "--json", "/no/such/folder/f.json"], "cannot write"),
    (["doctor", "me"], "takes no 'me'"),
])
def test_nonsense_gets_a_sentence(ops, words, part):
    name, op = next(iter(ops.items()))
    fill = {"op": name, "x": op["inputs"][0]["name"]}
    out, err = kw(*(word.format(**fill) for word in words), status=2)
    assert part.format(**fill) in err and err.startswith("kw: ") and err.count("\n") == 1 and not out


def test_no_verb_is_a_usage_error():
    assert "kw check" in kw(status=2)[0]


def test_mutated_command_lines(ops):
    """Whole command lines, mutated: each does something or says a sentence; none crashes or hangs."""
    name, op = next(iter(ops.items()))
    good = ["plan", name, "--arg", f"{op['inputs'][0]['name']}=bf16[8192,4096]", "--arch", "sm_90", "--json"]
    dice, codes = random.Random(7), []
    for _ in range(250):
        words = list(good)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(words)) if words else 0
            change = dice.randrange(5)
            if change == 0 and words:
                del words[at]
            elif change == 1:
                words.insert(at, dice.choice(good + ["--", "-", "--gpu=h200", "=", "9" * 30, "é", "--compile=1"]))
            elif words:
                text = words[at]
                spot = dice.randint(0, len(text))
                words[at] = text[:spot] + dice.choice(["[", "]", "=", ",", "-", "9" * 25, " ", "\\", "%s%n", ""]) + text[spot + change - 2:]
        done = subprocess.run([str(BUILD / "kw"), *words], capture_output=True, timeout=60)
        codes.append(done.returncode)
        assert done.returncode in (0, 1, 2), (words, done.returncode, done.stderr)
        assert done.returncode != 2 or not words or done.stderr.startswith(b"kw: "), (words, done.stderr)
    assert codes.count(2) > 50 and codes.count(0) >= 5


def test_check_on_the_cpu(ops):
    report = json.loads(kw("check", "--quick", "--json")[0])
    assert report["ok"] and {op["op"] for op in report["ops"]} == set(ops)
    for op in report["ops"]:
        assert [layer["layer"] for layer in op["layers"]] == "shapes dtypes values layouts repeat rows places far refusal grades".split()
        assert all(layer["ok"] and (layer["cases"] > 0 or layer.get("skipped")) for layer in op["layers"])


def test_check_of_a_single_case(ops):
    name, op = next(iter(ops.items()))
    x = op["inputs"][0]["name"]
    out = kw("check", name, "--arg", f"{x}=f32[3,33]", "--values", "huge", "--layout", "both", "--seed", 5)[0]
    assert "case     ok" in out


def test_the_picture_of_a_check(ops, tmp_path):
    name, op = next((name, op) for name, op in ops.items() if any(r["kind"] == "saved" for r in op["results"]))
    file, x = tmp_path / "errors.svg", op["inputs"][0]["name"]
    kw("check", name, "--quick", "--picture", file)
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in xml.parse(file).iter(space + "text")]
    assert name in texts and {"nan", "masked", "513 to 4096", "f32"} <= set(texts) and "x" not in texts
    kw("check", name, "--arg", f"{x}=f32[3,33]", "--no-saved", "--picture", file)
    assert sum(re.fullmatch(r"\d+\.\d", text.text) is not None for text in xml.parse(file).iter(space + "text")) == 1
    assert "belong to a single case" in kw("check", name, "--no-saved", status=2)[1]


def test_check_on_the_emulator(ops):
    name = next(iter(ops))
    report = json.loads(kw("check", name, "--quick", "--device", "emulate", "--json")[0])
    assert report["ok"] and report["device"] == "emulate" and all(layer["ok"] for layer in report["ops"][0]["layers"])


def test_check_finds_a_fault_in_a_kernel(ops, tmp_path):
    """The same command on the same kernel with one number changed: exit status 1, the place, and a command that repeats it."""
    name = next(name for name, op in ops.items() if "eps" in [a["name"] for a in op["attributes"]])
    source = json.loads(kw("plan", name, "--json")[0])[0]["launches"][0]["source"]
    for folder in ("device", "ops"):
        shutil.copytree(ROOT / "kw" / folder, tmp_path / "kw" / folder)
    kernel = tmp_path / source
    changed, count = re.subn(r"\bp\.eps\b", "(10 * p.eps)", kernel.read_text())
    assert count
    kernel.write_text(changed)
    command = [str(BUILD / "kw"), "check", name, "--quick", "--device", "emulate"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300,
                           env={**os.environ, "KW_KERNEL_PATH": str(tmp_path), "KW_CACHE_DIR": str(tmp_path / "cache")})
    assert found.returncode == 1, found.stdout + found.stderr
    assert re.search(r"values +FAILED", found.stdout) and "but the reference says" in found.stdout and "refused" not in found.stdout
    assert f"next: KW_KERNEL_PATH={tmp_path} kw check {name} --device emulate --arg" in found.stdout


def test_bench_writes_what_its_page_says(ops, tmp_path):
    name, op = next((name, op) for name, op in ops.items() if all(t["element"].get("variable") in ("T", "W") for t in op["inputs"]))
    x = op["inputs"][0]["name"]
    file = tmp_path / "out.json"
    kw("bench", name, "--arg", f"{x}=f32[64,256]", "--min-time", "0.01", "--json", file)
    record = json.loads(file.read_text())
    page = (ROOT / "benchmarks" / "README.md").read_text()
    for key in [*record, *record["machine"], *record["cases"][0]]:
        assert f"`{key}`" in page or f"`.{key}`" in page or f"`cases[].{key}`" in page, key
    case = record["cases"][0]
    assert record["kind"] == "kw_bench" and record["copy_gb_per_s"] > 0.1 and case["runs"] >= 11
    assert 0 < case["p20_us"] <= case["median_us"] <= case["p80_us"]
    present = [i for i in op["inputs"] if not i["optional"]]
    assert case["bytes"] % (64 * 256 * 4) == 0 and case["bytes"] >= (len(present) + 1) * 64 * 256 * 4


@pytest.mark.parametrize("verb", ["list", "doctor"])
def test_lost_output_is_no_success(verb):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(BUILD / "kw"), verb], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2 and "the output could not be written" in done.stderr


def test_a_kernel_path_that_cannot_be_read_is_said(tmp_path):
    """Falling back to the library's own text would look like a checked edit."""
    file = tmp_path / "kw/device/types.cuh"
    file.parent.mkdir(parents=True)
    for path, part in ((tmp_path / "absent", "not a folder that can be read"), (tmp_path, "is not a regular file")):
        file.unlink(missing_ok=True)
        os.mkfifo(file)
        name = next(op["name"] for op in json.loads(kw("list", "--json")[0])["ops"] if not op["backward_of"])
        command = [str(BUILD / "kw"), "check", name, "--quick", "--device", "emulate"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "KW_KERNEL_PATH": str(path)})
        assert found.returncode != 0 and part in found.stdout + found.stderr
