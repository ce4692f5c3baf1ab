"""What the README shows runs as it is written."""
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KW_BUILD", ROOT / "build"))
README = (ROOT / "README.md").read_text()
COMMANDS = [line.split("  #")[0].strip() for line in re.findall(r"^build/(kw .*)$", README, re.M)]


def test_the_example(tmp_path):
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    assert len(example.splitlines()) <= 12
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run([sys.executable, "example.py"], capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 x RMSNorm -> ")


def test_commands_were_found():
    assert {command.split()[1] for command in COMMANDS} >= {"list", "plan", "check", "bench", "pack", "emulate", "doctor"}


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.split()[1] in ("list", "plan")])
def test_quick_commands(command):
    words = shlex.split(command)
    done = subprocess.run([BUILD / words[0], *words[1:]], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_options_exist(command):
    words = shlex.split(command)
    told = subprocess.run([BUILD / "kw", words[1], "--help"], capture_output=True, text=True, timeout=100).stdout
    for word in words[2:]:
        assert not word.startswith("-") or word == "--" or f"  {word} " in told, f"{word}: {told}"
