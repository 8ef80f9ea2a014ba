"""`strads train word2vec` from a shell's point of view, and what it refuses."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from launching import needs_mpi, run_under_mpi
from outputs import read_metrics, read_run

from strads.cli import run
from strads.models import Word2Vec, WordVectors

Strads = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("--vector-size", 16, "--epochs", 4, "--sample", 0, "--alpha", 0.1, "--seed", 3)


@pytest.fixture(scope="module")
def trained(strads: Strads, reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "pairs.tsv").write_text("film1\tfilm2\t9\nfilm1\tmeal2\t1\nroad1\troad3\t8\nroad3\tfilm3\t2\nx\ty\t1\n")
    files = ("--pairs", folder / "pairs.tsv", "--vectors", folder / "vectors.bin")
    done = strads("train", "word2vec", "--data", reviews / "reviews.txt.gz", "--out", folder / "run", *files, *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder, done.stdout


def test_directory_holds_model_metrics_and_record(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    out = folder / "run"
    assert sorted(path.name for path in out.iterdir()) == ["metrics.jsonl", "model.npz", "run.json"]
    model = Word2Vec.load(out / "model.npz")
    metrics = read_metrics(out)
    assert model.history_ == metrics
    assert [record["iteration"] for record in metrics] == [1, 2, 3, 4]
    assert metrics[-1]["objective"] < metrics[0]["objective"]
    assert {word[:4] for word, _ in model.most_similar("meal3", topn=5)} == {"meal"}
    record = read_run(out)
    assert (record["command"], record["status"], record["seed"]) == ("train word2vec", "finished", 3)
    assert record["data"] | {"sentences": 400, "tokens": 12_400, "words": 61} == record["data"]
    assert record["word_pairs"]["spearman"] > 0.5
    assert record["word_pairs"]["unknown"] == 1
    assert record["loss"] == metrics[-1]["objective"]
    assert record["words_per_second"] > 0


def test_vectors_are_written_for_other_programs(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    vectors = WordVectors.load_word2vec_format(folder / "vectors.bin", binary=True)
    model = Word2Vec.load(folder / "run" / "model.npz")
    assert vectors.words == model.vocabulary_
    assert np.array_equal(vectors.vectors, model.vectors_)


def test_output_is_readable_without_a_terminal(trained: tuple[Path, str]) -> None:
    _, text = trained
    assert "12,400 words in 400 lines, 61 different ones" in text
    assert "epoch 4/4" in text
    assert "similar words" in text
    assert "on 4 pairs, 1 unknown" in text
    assert 'strads.models.Word2Vec.load("' in text


@pytest.mark.slow  # as `train mf` in test_nodes.py, and Word2Vec on nodes among the tests of models
@needs_mpi
def test_nodes_give_the_same_model(trained: tuple[Path, str], reviews: Path, tmp_path: Path) -> None:
    data = ["--data", str(reviews / "reviews.txt.gz"), "--out", str(tmp_path / "run")]
    done = run_under_mpi(2, "-m", "strads", "train", "word2vec", *data, *map(str, QUICK))
    assert done.returncode == 0, done.stderr
    models = [Word2Vec.load(folder / "run" / "model.npz") for folder in (tmp_path, trained[0])]
    assert models[0].vectors_.tobytes() == models[1].vectors_.tobytes()


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", [], "the file is empty"),
        (b"\n\n", [], "none of the 2 sentences has a word"),
        (b"a b\n", [], "no word occurs --min-count=5 times"),
        (b"a b\ncaf\xe9\n", [], "text:2: not UTF-8"),
        (b"a b\n", ["--min-count", "1", "--min-alpha", "0.5"], "--min-alpha is above --alpha"),
        (b"a b\n", ["--min-count", "1", "--sample", "1.5"], "1.5 is not a share"),
        (b"a b\n", ["--min-count", "1", "--window", "300"], "--window"),
        (b"a b\n", ["--min-count", "1", "--vectors", "/nowhere/vectors.bin"], "no such folder"),
        (b"a b\n", ["--min-count", "1", "--pairs", "/nowhere.tsv"], "no such file"),
        (b"a b\n", ["--vectors", "text"], "text: is a file that this command reads, and --vectors text would replace"),
    ],
)
def test_what_cannot_be_used_is_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    content: bytes,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_bytes(content)
    where = ["--data", str(tmp_path / "text"), "--out", str(tmp_path / "out")]
    assert run(["train", "word2vec", *where, *options]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert not (tmp_path / "out").exists()
