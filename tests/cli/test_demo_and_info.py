"""`strads demo`, `strads info`, `--version` and help."""

import re
import subprocess
from collections.abc import Callable

import pytest

import strads as library

Strads = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def demo(strads_process: Strads) -> str:
    done = strads_process("demo", "--seed", 1, "--threads", 2)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_demo_comes_close_to_the_noise(demo: str) -> None:
    found = re.search(r"held-out RMSE\s+(\d\.\d+)", demo)
    assert found is not None
    assert 0.3 < float(found[1]) < 0.3 * 1.06


def test_demo_finds_equal_results(demo: str) -> None:
    assert re.search(r"same result\?\s+yes", demo)


def test_demo_tells_speed_and_what_to_do_next(demo: str) -> None:
    assert re.search(r"speed-up\s+\d+\.\d+× on 2 threads", demo)
    assert "strads train mf --data" in demo


def test_info(strads_process: Strads) -> None:
    done = strads_process("info")
    assert done.returncode == 0
    for name in ("numba", "threads", "cores", library.__version__):
        assert name in done.stdout


def test_version(strads: Strads) -> None:
    assert strads("--version").stdout == f"strads {library.__version__}\n"


@pytest.mark.parametrize(("arguments", "word"), [((), "demo"), (("train",), "mf"), (("train", "mf", "-h"), "--data")])
def test_help(strads: Strads, arguments: tuple[str, ...], word: str) -> None:
    done = strads(*arguments)
    assert done.returncode == 0
    assert done.stderr == ""
    assert word in done.stdout
