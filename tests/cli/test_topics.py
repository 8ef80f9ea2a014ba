"""`strads topics` with a saved model, from a shell's point of view."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from strads.models import Corpus, LatentDirichletAllocation

Strads = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(strads: Strads, reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "lda"
    options = ("--topics", 3, "--iterations", 30, "--min-df", 1, "--max-df", "1.0")
    done = strads("train", "lda", "--data", reviews / "reviews.txt.gz", "--out", out, *options)
    assert done.returncode == 0, done.stderr
    return out


def test_words_of_topics(strads: Strads, run: Path, tmp_path: Path) -> None:
    done = strads("topics", run, "-k", 5, "--out", tmp_path / "words.parquet")
    assert done.returncode == 0, done.stderr
    table = pyarrow.parquet.read_table(tmp_path / "words.parquet").to_pydict()
    model = LatentDirichletAllocation.load(run / "model.npz")
    assert table["word"] == [word for words in model.top_words(5) for word in words]
    assert table["rank"] == [1, 2, 3, 4, 5] * 3
    phi = model.components_ / model.components_.sum(1, keepdims=True)
    number_of = {word: number for number, word in enumerate(model.vocabulary_)}
    expected = [phi[topic, number_of[word]] for topic, word in zip(table["topic"], table["word"], strict=True)]
    assert np.allclose(table["weight"], expected)


def test_topics_of_documents(strads: Strads, run: Path, reviews: Path, tmp_path: Path) -> None:
    done = strads("topics", run, "--data", reviews / "reviews.txt.gz", "--out", tmp_path / "documents.csv")
    assert done.returncode == 0, done.stderr
    table = pyarrow.csv.read_csv(tmp_path / "documents.csv")
    assert table.column_names == ["document", "topic_0", "topic_1", "topic_2"]
    shares = np.stack([table.column(name).to_numpy() for name in table.column_names[1:]], 1)
    assert shares.shape == (400, 3)
    assert np.allclose(shares.sum(1), 1, atol=1e-4)
    assert (shares.max(1) > 0.8).mean() > 0.9


def test_evaluate(strads: Strads, run: Path, reviews: Path) -> None:
    data = reviews / "reviews.txt.gz"
    done = strads("evaluate", run, "--data", data, "-k", 5)
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    found = {name: float(value) for name, value in rows}
    model = LatentDirichletAllocation.load(run / "model.npz")
    documents = Corpus.from_file(data, vocabulary=model.vocabulary_)
    assert found["perplexity"] == pytest.approx(model.perplexity(documents))
    assert found["coherence"] == pytest.approx(model.coherence(documents, 5).mean())
    assert (header, len(found)) == (["measure", "value"], 2)
    done = strads("evaluate", run, "--data", data, "--target", "y")
    assert (done.returncode, "--target does not apply to a" in done.stderr) == (2, True)
    done = strads("predict", run, "--data", data)
    assert (done.returncode, "strads topics --data" in done.stderr) == (2, True)


def test_unknown_words_are_a_line_that_names_no_code(strads: Strads, run: Path, tmp_path: Path) -> None:
    known = LatentDirichletAllocation.load(run / "model.npz").vocabulary_[0]
    (tmp_path / "new.txt").write_text(f"{known} zzyzx\n")
    done = strads("topics", run, "--data", tmp_path / "new.txt")
    assert done.returncode == 0
    assert done.stderr.startswith("strads: warning: 1 token is of a word that the vocabulary does not have")
    assert done.stderr.count("\n") == 1


def test_what_is_refused(strads: Strads, run: Path, files: Path, tmp_path: Path) -> None:
    done = strads("topics", run, "--data", tmp_path / "nowhere.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere.txt" in done.stderr
    train = ("--data", files / "plain.tsv.gz", "--out", tmp_path / "mf", "--rank", 2, "--epochs", 1)
    assert strads("train", "mf", *train).returncode == 0
    done = strads("topics", tmp_path / "mf")
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds a MatrixFactorization: this command needs a model of LatentDirichletAllocation" in done.stderr
    done = strads("recommend", run)
    assert "holds a LatentDirichletAllocation: this command needs a model of MatrixFactorization" in done.stderr


def test_topics_without_words_have_no_coherence(strads: Strads, tmp_path: Path) -> None:
    data = tmp_path / "few.txt"
    data.write_text("red green\nred green\nred green\n")
    options = ("--topics", 8, "--iterations", 20, "--min-df", 1, "--max-df", "1.0")
    assert strads("train", "lda", "--data", data, "--out", tmp_path / "run", *options).returncode == 0
    done = strads("evaluate", tmp_path / "run", "--data", data)
    assert (done.returncode, done.stderr) == (0, "")
    found = dict(line.split("\t") for line in done.stdout.splitlines()[1:])
    coherence = LatentDirichletAllocation.load(tmp_path / "run" / "model.npz").coherence(["red green"])
    known = coherence[~np.isnan(coherence)]
    assert 0 < int(found["topics_without_coherence"]) == len(coherence) - len(known)
    assert ("coherence" in found) == (len(known) > 0)
    assert all(value != "nan" for value in found.values())
