import os
from pathlib import Path

import pytest
import torch

import kernelwright
import kernelwright.torch  # noqa: F401  registers the ops

BUILD = Path(os.environ.get("KW_BUILD", Path(__file__).resolve().parents[2] / "build"))
TEST_ROOM = str(BUILD / "tests" / "kw_test_room.so")
kernelwright.load_library(TEST_ROOM)  # the ops test_*: what the contract language knows and the built-in rooms do not use

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def test_room():
    return TEST_ROOM
