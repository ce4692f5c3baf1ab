"""`kw pack` and `kw cache` from outside: real cubins by NVRTC, the file as its page describes it, and a process that needs no compiler."""
import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))


def kw(*words, status=0, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KW_")}
    done = subprocess.run([str(BUILD / "kw"), *map(str, words)], capture_output=True, text=True, timeout=300, env={**clean, **environment})
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def op():
    ops = json.loads(kw("list", "--json"))["ops"]  # one of plain floating tensors
    plain = [op for op in ops if all(t["element"].get("variable") in ("T", "W") for t in op["inputs"])]
    return next(op for op in plain if op["backward_of"] is None and op["gradient"])


@pytest.fixture(scope="module")
def call(op):
    plan = json.loads(kw("plan", op["name"], "--json", "--arch", "sm_90"))[0]
    return plan["arguments"]


@pytest.fixture(scope="module")
def pack(op, call, tmp_path_factory):
    """One call's kernels for two architectures, by NVRTC."""
    folder = tmp_path_factory.mktemp("pack")
    words = ["--arg", call, "--arch", "sm_80,sm_90", "-o", folder / "a.pack", "--json"]
    said = kw("pack", op["name"], *words, KW_CACHE_DIR=str(folder / "cache"))
    said = json.loads(said)
    assert said["kernels"] == said["compiled"] >= 2 and set(said["archs"]) == {"sm_80", "sm_90"}
    assert said["ops"] == {op["name"]: said["kernels"]}
    return folder / "a.pack"


def read_pack(file: Path):
    """By docs/packs.md alone."""
    data = file.read_bytes()
    magic, version, count, size, emulator, major = struct.unpack_from("<8sIIQII", data)
    assert (magic, version, size) == (b"KWPACK\r\n", 1, len(data))
    end = 160 + 120 * count
    assert data[128:160] == hashlib.sha256(data[:128] + bytes(32) + data[160:end]).digest()
    kernels = []
    for i in range(count):
        at = 160 + 120 * i
        key, sources, content = data[at : at + 32], data[at + 32 : at + 64], data[at + 64 : at + 96]
        place, a, b, c, arch = struct.unpack_from("<QIIIi", data, at + 96)
        assert hashlib.sha256(data[place : place + a + b + c]).digest() == content and place >= end
        kernels.append((key, arch, data[place : place + a].decode(), data[place + a + b : place + a + b + c]))
    assert [k[0] for k in kernels] == sorted(k[0] for k in kernels)
    header = data[32:64].rstrip(b"\0").decode(), data[64:128].rstrip(b"\0").decode(), emulator, major
    return header, kernels


def test_the_file_is_as_its_page_says(pack):
    (version, compiler, emulator, major), kernels = read_pack(pack)
    assert version == kw("--version").split()[1] and compiler.startswith(f"nvrtc {major}.") and emulator == 0
    for _key, arch, expression, code in kernels:
        assert arch in (80, 90) and expression.startswith("kw::ops::") and code[:4] == b"\x7fELF" and len(code) > 2000
        assert struct.unpack_from("<H", code, 18)[0] == 190  # EM_CUDA
    assert stat.S_IMODE(pack.stat().st_mode) & 0o022 == 0


def test_the_plan_says_where_code_is(op, call, pack, tmp_path):
    def code(arch, **environment):
        plan = kw("plan", op["name"], "--arg", call, "--arch", arch, "--json", KW_CACHE_DIR=str(tmp_path), **environment)
        return {launch["code"] for launch in json.loads(plan)[0]["launches"]}

    assert code("sm_90", KW_PACK=str(pack)) == code("sm_80", KW_PACK=str(pack)) == {"pack"}
    assert code("sm_90") == code("sm_100", KW_PACK=str(pack)) == {"nowhere"}
    kw("plan", op["name"], "--arg", call, "--arch", "sm_90", "--compile", KW_CACHE_DIR=str(tmp_path))
    assert code("sm_90") == {"disk"}


def test_every_op_is_packed():
    listed = kw("pack", "--arch", "sm_80,sm_90,sm_100", "-o", "none", "--list").splitlines()
    assert len(listed) == len(set(listed)) and {line.split()[0] for line in listed} == {"sm_80", "sm_90", "sm_100"}
    ops = json.loads(kw("list", "--json"))["ops"]
    for op in ops:
        planned = json.loads(kw("plan", op["name"], "--arch", "sm_90", "--json"))[0]["launches"]
        assert all(f"sm_90 {launch['kernel']}" in listed for launch in planned), op["name"]


@pytest.mark.parametrize("words, part", [
    (["--arch", "sm_90"], "needs -o FILE"),
    (["-o", "f"], "needs --arch"),
    (["--arch", "sm_20", "-o", "f"], "sm_20 is not supported"),
    (["--arch", "sm_90,,", "-o", "f"], "'' is not an architecture"),
    (["--arch", "sm_999", "-o", "f", "{op}", "--arg", "{call}"], "does not compile for sm_999"),
    (["--arch", "sm_90", "-o", "f", "--arg", "x=f32[4]"], "--arg describes a call of one op"),
    (["--arch", "sm_90", "-o", "/no/such/folder/f", "{op}", "--arg", "{call}"], "cannot be written: No such file"),
    (["--arch", "sm_90", "-o", "f", "--jobs", "0"], "whole number"),
])
def test_nonsense_gets_a_sentence(op, call, words, part, tmp_path):
    error = kw("pack", *[w.format(op=op["name"], call=call) for w in words], status=2, KW_CACHE_DIR=str(tmp_path))
    assert part in error and error.startswith("kw: ") and error.count("\n") == 1


def doctor(**environment):
    return next(line for line in json.loads(kw("doctor", "--quick", "--json", **environment)) if line["what"] == "pack")


def test_doctor(op, pack, tmp_path):
    assert doctor(KW_PACK="0")["text"].startswith("none")
    line = doctor(KW_PACK=str(pack))
    assert line["state"] == "ok" and line["text"].endswith("kernels for sm_80, sm_90")
    for broken in (tmp_path / "absent", tmp_path / "cut"):
        (tmp_path / "cut").write_bytes(pack.read_bytes()[:3000])
        line = doctor(KW_PACK=str(broken))
        assert line["state"] == "warning" and str(broken) in line["text"] and "compiled at their first call" in line["advice"]
    source = json.loads(kw("plan", op["name"], "--json"))[0]["launches"][0]["source"]
    (tmp_path / source).parent.mkdir(parents=True)
    (tmp_path / source).write_text((ROOT / source).read_text() + "// edited\n")
    assert "are of other sources" in doctor(KW_PACK=str(pack), KW_KERNEL_PATH=str(tmp_path))["text"]


def test_a_process_needs_no_compiler(op, tmp_path):
    """On the emulator, whose compiler is g++: the process that uses the pack has none on its PATH."""
    arguments = " ".join(f"{t['name']}=f32[4,256]" if t["shape"][0] != "N" else f"{t['name']}=f32[256]" for t in op["inputs"])
    common = {"KW_DRIVER": "emulator", "KW_CACHE_DIR": str(tmp_path / "cache")}
    file = tmp_path / "e.pack"
    kw("pack", op["name"], "--arg", arguments, "--arch", "sm_90", "-o", file, **common)
    code = f"import kernelwright as k; k.warmup({op['name']!r}, {arguments!r}); print(k.kernel_counts())"

    def run(pack, cache="0"):
        environment = {"PATH": "/nonexistent", "PYTHONPATH": str(BUILD / "python"), "KW_PACK": str(pack), "KW_CACHE": cache, **common}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)

    done = run(file)
    assert done.returncode == 0 and "'compiled': 0" in done.stdout and "'pack': 0" not in done.stdout and not done.stderr, done.stderr
    done = run("0")
    assert done.returncode != 0 and "ToolchainError" in done.stderr  # so there was no compiler
    assert "'disk': 0" not in run("0", cache="1").stdout  # what was packed is in the disk cache too


def test_cache(op, call, tmp_path):
    folder = {"KW_CACHE_DIR": str(tmp_path / "cache")}
    assert kw("cache", "path", **folder).strip() == folder["KW_CACHE_DIR"]
    assert json.loads(kw("cache", "--json", **folder))["files"] == 0
    for arch in ("sm_80", "sm_90"):
        kw("plan", op["name"], "--arg", call, "--arch", arch, "--compile", **folder)
    shown = json.loads(kw("cache", "show", "--json", **folder))
    assert shown["files"] >= 2 and shown["limit"] == 2**30 and shown["oldest_use"] > 1.7e9
    files = sorted((tmp_path / "cache").glob("*.kernel"), key=lambda f: f.stat().st_size)
    assert len(files) == shown["files"] and sum(f.stat().st_size for f in files) == shown["bytes"]
    os.utime(files[0], (1e9, 1e9))
    trimmed = json.loads(kw("cache", "trim", "--limit", shown["bytes"] - 1, "--json", **folder))
    assert trimmed["removed_files"] == 1 and not files[0].exists() and files[-1].exists()
    assert json.loads(kw("cache", "clear", "--json", **folder))["removed_files"] == shown["files"] - 1
    assert "kernels  0" in kw("cache", **folder)
    (tmp_path / "cache").chmod(0o777)
    assert "may be written by other users" in kw("cache", status=2, **folder)
    assert "turned off" in kw("cache", status=2, KW_CACHE="0")
    for words, part in ((["melt"], "takes show, path, clear or trim"), (["show", "--limit", "1M"], "goes with kw cache trim"),
                        (["trim", "--limit", "much"], "takes a size"), (["show", "clear"], "takes one word")):
        assert part in kw("cache", *words, status=2, KW_CACHE_DIR=str(tmp_path / "c"))
