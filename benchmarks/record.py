"""What every result file on a GPU says about where it comes from."""

import datetime
import json
import os
import subprocess
import sys

import torch


def commit() -> str:
    """KW_COMMIT, for trees that were carried without their .git; else git's HEAD."""
    asked = ["git", "rev-parse", "--verify", "-q", "HEAD"]
    return os.environ.get("KW_COMMIT") or subprocess.run(asked, capture_output=True, text=True).stdout.strip()


def write(path: str, kind: str, **fields) -> None:
    head = {
        "kind": kind,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
        "commit": commit(),
        "machine": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
    }
    with open(path, "w") as file:
        json.dump({**head, **fields}, file, indent=1)
