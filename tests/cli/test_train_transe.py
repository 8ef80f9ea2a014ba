"""`strads train transe` from a shell's point of view, and wrong input of it."""

import gzip
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import read_metrics, read_run, refusal

from strads.models import TransE

Strads = Callable[..., subprocess.CompletedProcess[str]]
FILES = ["metrics.jsonl", "model.npz", "run.json"]
ELEMENTS = 6  # entities are sets of so many, relation k adds element k
QUICK = ("--dimensions", 16, "--epochs", 60)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Triples with labels, as train.tsv.gz and test.tsv, and in OpenKE's format."""
    folder = tmp_path_factory.mktemp("graph")
    triples = [
        (members, element, members | 1 << element)
        for element in range(ELEMENTS)
        for members in range(1 << ELEMENTS)
        if not members >> element & 1
    ]
    triples = [triples[number] for number in np.random.default_rng(0).permutation(len(triples))]
    for name, part in (("train", triples[30:]), ("test", triples[:30])):
        text = "".join(f"e{head:02}\tadds {relation}\te{tail:02}\n" for head, relation, tail in part)
        (folder / f"{name}.tsv").write_text(text)
        ids = "".join(f"{head} {tail} {relation}\n" for head, relation, tail in part)
        (folder / f"{name}2id.txt").write_text(f"{len(part)}\n{ids}")
    (folder / "train.tsv.gz").write_bytes(gzip.compress((folder / "train.tsv").read_bytes()))
    names = "".join(f"e{number:02}\t{number}\n" for number in range(1 << ELEMENTS))
    (folder / "entity2id.txt").write_text(f"{1 << ELEMENTS}\n{names}")
    return folder


@pytest.fixture(scope="module")
def labelled_run(strads: Strads, graph: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("runs") / "new"
    data = ("--data", graph / "train.tsv.gz", "--test", graph / "test.tsv")
    done = strads("train", "transe", *data, "--out", out, *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out, done.stdout


def test_directory_holds_model_metrics_and_record(labelled_run: tuple[Path, str]) -> None:
    out, text = labelled_run
    assert sorted(path.name for path in out.iterdir()) == FILES
    metrics, record = read_metrics(out), read_run(out)
    assert [each["iteration"] for each in metrics] == list(range(1, 61))
    assert metrics[-1]["objective"] < 0.5 * metrics[0]["objective"]
    assert (record["command"], record["status"], record["seed"]) == ("train transe", "finished", 0)
    assert record["data"] | {"triples": 162, "test_triples": 30, "entities": 64, "relations": 6} == record["data"]
    assert record["loss"] == metrics[-1]["objective"]
    assert record["test"]["filtered"]["hits_at_10"] > 0.8
    assert record["triples_per_second"] > 0
    assert "162 triples of 64 entities, 6 relations; 30 to test" in text
    assert "test, filtered" in text
    assert f'strads.models.TransE.load("{out}/model.npz")' in text


def test_model_is_that_of_the_metrics(labelled_run: tuple[Path, str]) -> None:
    model = TransE.load(labelled_run[0] / "model.npz")
    assert model.history_ == read_metrics(labelled_run[0])
    assert model.entities_[7] == "e07"
    labels, _ = model.predict_tails("e10", "adds 0", topn=3)
    assert "e11" in labels


def test_ids_with_names_on_one_thread_give_the_same(
    strads: Strads, graph: Path, labelled_run: tuple[Path, str], tmp_path: Path
) -> None:
    data = ("--data", graph / "train2id.txt", "--entities", graph / "entity2id.txt", "--known", graph / "test2id.txt")
    done = strads("train", "transe", *data, "--out", tmp_path, *QUICK, "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert read_run(tmp_path)["test"] is None
    with np.load(tmp_path / "model.npz") as ours, np.load(labelled_run[0] / "model.npz") as theirs:
        assert ours["entities"].tobytes() == theirs["entities"].tobytes()


@pytest.mark.slow
def test_an_interrupted_run_ends_its_epoch_and_saves_it(
    graph: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    options = ("--data", graph / "train.tsv", "--out", tmp_path, "--epochs", 10_000_000)
    command = [sys.executable, "-m", "strads", "train", "transe", *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch"):
            break
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - sent < 20
    assert errors == ""
    assert "interrupted (SIGINT)" in output
    model = TransE.load(tmp_path / "model.npz")
    assert 1 <= len(read_metrics(tmp_path)) == model.n_iter_ == read_run(tmp_path)["epochs"]


@pytest.fixture
def refused(strads: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> Callable[..., str]:
    """What standard error says of options."""
    out = tmp_path / "out"
    return lambda *options: refusal(strads("train", "transe", "--out", out, *options), out)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "file is empty"),
        (b"a\tr\tb\na r b\n", ":2: expected head, relation and tail"),
        (b"a\tr\tcaf\xe9\n", ":1: not UTF-8"),
        (b"3\n0 1 0\n", ":1: 3 triples are announced"),
    ],
)
def test_triples_that_cannot_be_used(refused: Callable[..., str], tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "train.txt"
    file.write_bytes(content)
    message = refused("--data", file)
    assert problem in message
    assert str(file) in message


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--test", "train.tsv"), "has ids, the other labels"),
        (("--entities", "short"), "or another file has the id 63"),
        (("--test", "nowhere.txt"), "nowhere.txt: no such file"),
        (("--norm", 3), "--norm"),
        (("--margin", 0), "--margin"),
        (("--epochs", 0), "--epochs"),
        (("--loss", "hinge"), "--loss"),
        (("--adversarial-temperature", -1), "--adversarial-temperature"),
    ],
    ids=str,
)
def test_wrong_options(
    refused: Callable[..., str], graph: Path, tmp_path: Path, options: tuple[str, Any], problem: str
) -> None:
    (tmp_path / "short").write_text("2\na\t0\nb\t1\n")
    files = {"train.tsv": graph / "train.tsv", "short": tmp_path / "short"}
    name, value = options
    assert problem in refused("--data", graph / "train2id.txt", name, files.get(value, value))


def test_names_are_for_ids(refused: Callable[..., str], graph: Path) -> None:
    message = refused("--data", graph / "train.tsv", "--entities", graph / "entity2id.txt")
    assert "the triples have labels, not ids" in message
