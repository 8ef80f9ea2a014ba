"""`strads train lda` from a shell's point of view."""

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from outputs import read_metrics, read_run

from strads.models import LatentDirichletAllocation

Strads = Callable[..., subprocess.CompletedProcess[str]]
FILES = ["metrics.jsonl", "model.npz", "run.json", "topics.txt"]
QUICK = ("--topics", 3, "--iterations", 30, "--seed", 3)


def read_topics(out: Path) -> list[list[str]]:
    header, *lines = (out / "topics.txt").read_text().splitlines()
    assert header == "topic\tshare\twords"
    return [line.split("\t") for line in lines]


@pytest.fixture(scope="module")
def text_run(strads_process: Strads, reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("runs") / "new" / "text"
    done = strads_process("train", "lda", "--data", reviews / "reviews.txt.gz", "--out", out, *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out, done.stdout


def test_directory_holds_model_metrics_record_and_topics(text_run: tuple[Path, str]) -> None:
    out, _ = text_run
    assert sorted(path.name for path in out.iterdir()) == FILES
    metrics = read_metrics(out)
    assert [record["iteration"] for record in metrics] == list(range(1, 31))
    assert all(math.isfinite(record["objective"]) and record["s_error"] >= 0 for record in metrics)
    assert metrics[-1]["objective"] > metrics[0]["objective"]


def test_planted_topics_are_named(text_run: tuple[Path, str]) -> None:
    out, _ = text_run
    topics = read_topics(out)
    assert [int(number) for number, _, _ in topics] == [0, 1, 2]
    assert sum(float(share) for _, share, _ in topics) == pytest.approx(1, abs=1e-3)
    found = [{word[:4] for word in words.split()} for _, _, words in topics]
    assert sorted(found, key=min) == [{"film"}, {"meal"}, {"road"}]
    assert all(len(words.split()) == 10 for _, _, words in topics)


def test_model_is_that_of_the_metrics(text_run: tuple[Path, str]) -> None:
    out, _ = text_run
    model = LatentDirichletAllocation.load(out / "model.npz")
    assert model.topic_word_counts_.shape == (60, 3)
    assert model.topic_word_counts_.sum() == 360 * 30
    assert model.history_ == read_metrics(out)
    assert [" ".join(words) for words in model.top_words(10)] == [words for _, _, words in read_topics(out)]


def test_record_tells_how_the_run_was_made(text_run: tuple[Path, str]) -> None:
    run, last = read_run(text_run[0]), read_metrics(text_run[0])[-1]
    assert (run["command"], run["status"], run["seed"]) == ("train lda", "finished", 3)
    assert run["arguments"] | {"n_components": 3, "min_df": 5, "max_df": 0.5, "holdout": 0.1} == run["arguments"]
    assert run["data"] | {"documents": 400, "held_out": 40, "words": 60, "tokens": 12_000} == run["data"]
    assert run["data"]["kind"].startswith("text")
    assert (run["iterations"], run["model_iteration"]) == (30, 30)
    assert run["log_likelihood_per_token"] == last["objective"]
    assert run["s_error"] == last["s_error"]
    assert run["perplexity"] < 30  # 20 equal words make a topic
    assert run["alpha"] > 0
    assert run["beta"] > 0
    assert run["tokens_per_second"] > 0


def test_output_is_readable_without_a_terminal(text_run: tuple[Path, str]) -> None:
    out, text = text_run
    assert "\x1b" not in text
    assert "12,000 tokens of 60 words in 400 documents; 40 held out" in text
    lines = [line for line in text.splitlines() if line.startswith("iteration")]
    assert len(lines) == 30
    assert lines[-1].startswith("iteration 30/30  log-likelihood/token -")
    assert "s-error 0." in lines[-1]
    assert "tokens/s" in lines[-1]
    assert "held-out perplexity" in text
    assert "learnt priors" in text
    assert f"topics               {out}/topics.txt" in text
    assert f'strads.models.LatentDirichletAllocation.load("{out}/model.npz")' in text


def test_bag_of_words_on_one_thread_gives_the_same_as_text(
    strads: Strads, reviews: Path, text_run: tuple[Path, str], tmp_path: Path
) -> None:
    vocab = tmp_path / "sorted.txt"
    vocab.write_text("".join(sorted((reviews / "vocab.txt").read_text().splitlines(keepends=True))))
    data = ("--data", reviews / "reviews.txt.gz", "--vocab", vocab)
    done = strads("train", "lda", *data, "--out", tmp_path / "run", *QUICK, "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert "note: " not in done.stdout  # of stop words as unknown ones
    with np.load(tmp_path / "run" / "model.npz") as ours, np.load(text_run[0] / "model.npz") as theirs:
        assert ours["counts"].tobytes() == theirs["counts"].tobytes()


def test_bag_of_words_with_names(strads: Strads, reviews: Path, tmp_path: Path) -> None:
    data = ("--data", reviews / "docword.txt.gz", "--vocab", reviews / "vocab.txt")
    options = ("--holdout", 0, "--evaluate-every", 0, "--learn-priors", "no", "--alpha", 0.5, "--beta", 0.25)
    done = strads("train", "lda", *data, "--out", tmp_path, *QUICK, *options)
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path)
    assert run["data"]["kind"].startswith("bag of words")
    assert (run["data"]["held_out"], run["perplexity"], run["log_likelihood"]) == (0, None, None)
    assert (run["alpha"], run["beta"]) == (1.5, 0.25)
    assert "perplexity" not in done.stdout
    assert "learnt priors" not in done.stdout
    assert {word[:4] for _, _, words in read_topics(tmp_path) for word in words.split()} == {"film", "meal", "road"}


def test_bag_of_words_without_names_over_an_earlier_run(strads: Strads, reviews: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"status": "finished"}')
    (tmp_path / "topics.txt").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    data = ("--data", reviews / "docword.txt.gz", "--out", tmp_path)
    done = strads("train", "lda", *data, *QUICK)
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert (tmp_path / "topics.txt").read_text() == "old"
    done = strads("train", "lda", *data, *QUICK, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert "--vocab gives them names" in done.stdout
    assert all(word.isdigit() for _, _, words in read_topics(tmp_path) for word in words.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "notes.txt"])


def test_words_that_the_vocabulary_lacks_are_told_of(strads: Strads, reviews: Path, tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("film1\nmeal1\nroad1\n")
    data = ("--data", reviews / "reviews.txt.gz", "--vocab", vocab, "--out", tmp_path / "run")
    done = strads("train", "lda", *data, "--topics", 2, "--iterations", 1)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "tokens are of words that the vocabulary does not have" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_its_iteration_and_saves_it(
    reviews: Path, tmp_path: Path, number: signal.Signals, environment: dict[str, str]
) -> None:
    options = ("--data", reviews / "reviews.txt.gz", "--out", tmp_path, "--topics", 3, "--iterations", 10_000_000)
    command = [sys.executable, "-m", "strads", "train", "lda", *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("iteration"):
            break
    process.send_signal(number)
    sent = time.monotonic()
    output, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert time.monotonic() - sent < 20
    assert errors == ""
    assert f"interrupted ({number.name})" in output
    run, model = read_run(tmp_path), LatentDirichletAllocation.load(tmp_path / "model.npz")
    assert (run["status"], run["signal"], run["perplexity"]) == ("interrupted", number.name, None)
    assert 1 <= len(read_metrics(tmp_path)) == model.n_iter_ == run["iterations"] == run["model_iteration"]
    assert model.topic_word_counts_.sum() == run["data"]["training_tokens"]
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
