"""`strads demo lda`: topics of Python's own documentation."""

import re
import subprocess
from collections.abc import Callable

import pytest

Strads = Callable[..., subprocess.CompletedProcess[str]]


pytestmark = pytest.mark.slow  # the demo of matrix factorization is a test of the frame


@pytest.fixture(scope="module")
def demo(strads_process: Strads) -> str:
    done = strads_process("demo", "lda", "--seed", 1, "--threads", 2)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_topics_keep_apart_what_modules_are_about(demo: str) -> None:
    topics = [set(words.split()) for words in re.findall(r"^ ?\d+\.\d%  (.*)$", demo, re.MULTILINE)]
    assert len(topics) == 40
    pairs = [
        "widget master",
        "turtle screen",
        "decimal nan",
        "read bytes",
        "socket server",
        "log handler",
        "path directory",
    ]
    found = [pair for pair in pairs if any(set(pair.split()) <= topic for topic in topics)]
    assert len(found) >= 5, found
    assert not any({"turtle", "decimal"} <= topic or {"widget", "socket"} <= topic for topic in topics)


def test_topics_have_typical_documents_of_different_places(demo: str) -> None:
    named = [line.split(", ") for line in re.findall(r"^ {7}(\S.*)$", demo, re.MULTILINE)]
    assert len(named) == 40
    for names in named:
        assert len({name.rpartition(".")[0] for name in names}) == 3
    assert any(name.startswith("turtle.") for names in named for name in names)


def test_two_trainings_agree_and_speed_is_told(demo: str) -> None:
    assert re.search(r"same result\? +yes: 2 threads and 1 thread give [\d,]+ counts", demo)
    assert re.search(r"throughput +\d.* tokens/s on 2 threads", demo)
    assert re.search(r"log-likelihood +-\d\.\d{4} per token", demo)
    assert "strads train lda --data" in demo
    assert len(re.findall("^iteration", demo, re.MULTILINE)) == 2 * 15
