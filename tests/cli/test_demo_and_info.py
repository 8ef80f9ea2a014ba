"""`strads demo`, `strads info`, `--version` and help."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import strads as library
from strads import cli

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


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "expected"),
    [("strads train mf --ra", "--rank"), ("strads train la", "lasso"), ("strads rec", "recommend")],
)
def test_shells_complete(environment: dict[str, str], words: str, expected: str) -> None:
    asked = {"_STRADS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [Path(sys.executable).with_name("strads")],
        env=environment | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert expected in done.stdout.split()


def test_the_summary_on_a_narrow_terminal(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    arguments = ["train", "mf", "--data", files / "plain.tsv.gz", "--out", tmp_path / "run", "--epochs", "2"]
    assert cli.run([str(each) for each in arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("training  "))
    assert lines[place].endswith("for 2 epochs,")
    assert lines[place + 1].strip() == "compiling included"


@pytest.mark.parametrize("command", [(), ("train", "lasso"), ("train", "mf"), ("predict",), ("info",)])
def test_help_on_a_narrow_terminal(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.run([*command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in lines if "<" not in line)  # of a choice, click keeps the values together
    assert not any("[bold]" in line for line in lines)
    words = {word for line in lines for word in line.split()}
    assert not any(word.startswith("--") and word.endswith("…") for word in words)
    assert command[:1] != ("train",) or "--checkpoint-every" in words
