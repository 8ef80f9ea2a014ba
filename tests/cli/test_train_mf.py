"""`strads train mf` from a shell's point of view."""

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from outputs import read_metrics, read_run

from strads.models import MatrixFactorization

Strads = Callable[..., subprocess.CompletedProcess[str]]
ML_100K = Path(__file__).parents[2] / "../shared/data/ml-100k/u.data.gz"
QUICK = ("--rank", 4, "--epochs", 3)


@pytest.fixture(scope="module")
def tsv_run(strads_process: Strads, files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("runs") / "new" / "tsv"
    done = strads_process("train", "mf", "--data", files / "plain.tsv.gz", "--out", out, *QUICK, "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out, done.stdout


def test_directory_holds_model_metrics_and_record(tsv_run: tuple[Path, str]) -> None:
    out, _ = tsv_run
    assert sorted(path.name for path in out.iterdir()) == ["metrics.jsonl", "model.npz", "run.json"]
    metrics = read_metrics(out)
    assert [record["iteration"] for record in metrics] == [1, 2, 3]
    assert all(math.isfinite(record["validation_rmse"]) for record in metrics)


def test_model_predicts(tsv_run: tuple[Path, str]) -> None:
    out, _ = tsv_run
    model = MatrixFactorization.load(out / "model.npz")
    assert model.user_ids_.tolist() == list(range(1, 101))
    assert model.user_factors_.shape == (100, 4)
    assert model.item_factors_.shape == (50, 4)
    assert np.isfinite(model.predict([[1, 1], [100, 50]])).all()
    assert model.history_ == read_metrics(out)


def test_record_tells_how_the_run_was_made(tsv_run: tuple[Path, str]) -> None:
    out, _ = tsv_run
    run = read_run(out)
    assert run["status"] == "finished"
    assert run["seed"] == 3
    assert run["arguments"]["n_components"] == 4
    assert run["data"]["ratings"] == 3000
    assert run["data"]["held_out"] == 300
    assert (run["data"]["users"], run["data"]["items"]) == (100, 50)
    assert run["data"]["bytes"] > 0
    assert {"strads", "python", "numpy", "numba"} <= set(run["versions"])
    assert {"platform", "cpu", "cores", "threads"} <= set(run["machine"])
    assert run["validation_rmse"] == read_metrics(out)[-1]["validation_rmse"]
    assert run["started"].endswith("Z")
    assert run["started"] <= run["ended"]


def test_output_without_a_terminal_is_plain_lines(tsv_run: tuple[Path, str]) -> None:
    out, text = tsv_run
    assert "\x1b" not in text
    assert "\r" not in text
    assert "preparing" in text or "compiling" in text
    assert [line[:9] for line in text.splitlines() if line.startswith("epoch")] == [
        "epoch 1/3",
        "epoch 2/3",
        "epoch 3/3",
    ]
    assert "3,000 ratings of 50 items by 100 users; 300 held out" in text
    assert f'strads.models.MatrixFactorization.load("{out}/model.npz")' in text


def test_an_earlier_run_is_not_destroyed_silently(strads: Strads, files: Path, tsv_run: tuple[Path, str]) -> None:
    out, _ = tsv_run
    before = {path: path.read_bytes() for path in out.iterdir()}
    done = strads("train", "mf", "--data", files / "plain.tsv.gz", "--out", out)
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert {path: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize("columns", ["userId,movieId,rating", "item=movieId,score=rating", None])
def test_columns_in_another_order_give_the_same_model(
    strads: Strads, files: Path, tsv_run: tuple[Path, str], tmp_path: Path, columns: str | None
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "run.json").write_text('{"status": "finished"}')
    (out / "notes.txt").write_text("mine")
    done = strads(
        *("train", "mf", "--data", files / "header.csv", "--out", out, *QUICK, "--seed", 3),
        *("--overwrite", "--columns", columns) if columns else ("--overwrite",),
    )
    assert done.returncode == 0, done.stderr
    assert "userId is the user" in done.stdout
    assert (out / "notes.txt").read_text() == "mine"
    first, second = (MatrixFactorization.load(path / "model.npz") for path in (out, tsv_run[0]))
    assert np.array_equal(first.user_factors_, second.user_factors_)


def test_parquet_on_one_thread_without_holdout(strads: Strads, files: Path, tmp_path: Path) -> None:
    options = (*QUICK, "--holdout", 0, "--threads", 1, "--no-biases", "--step", "constant")
    options = (*options, "--columns", "who,what,stars")
    done = strads("train", "mf", "--data", "ratings.parquet", "--out", tmp_path, *options, cwd=files)
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path)
    assert run["data"]["held_out"] == 0
    assert run["validation_rmse"] is None
    assert run["machine"]["threads"] == 1
    assert run["data"]["columns"] == {"user": "who", "item": "what", "score": "stars"}
    assert "validation_rmse" not in read_metrics(tmp_path)[0]


def test_early_stopping_keeps_the_best_epoch(strads: Strads, files: Path, tmp_path: Path) -> None:
    options = ("--epochs", 300, "--early-stopping", "--learning-rate", 0.5, "--regularization", 0)
    done = strads("train", "mf", "--data", files / "plain.tsv.gz", "--out", tmp_path, *options)
    assert done.returncode == 0, done.stderr
    metrics = read_metrics(tmp_path)
    assert len(metrics) < 300
    best = min(record["validation_rmse"] for record in metrics)
    assert read_run(tmp_path)["validation_rmse"] == best
    assert metrics[read_run(tmp_path)["model_epoch"] - 1]["validation_rmse"] == best
    assert f"{best:.4f}" in done.stdout.rpartition("held-out RMSE")[2]


def test_divergence_keeps_the_metrics(strads: Strads, files: Path, tmp_path: Path) -> None:
    options = ("--step", "constant", "--learning-rate", 1e6)
    done = strads("train", "mf", "--data", files / "plain.tsv.gz", "--out", tmp_path, *options)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "diverged" in done.stderr
    assert read_run(tmp_path)["status"] == "failed"
    assert (tmp_path / "metrics.jsonl").exists()
    assert not (tmp_path / "model.npz").exists()


@pytest.mark.skipif(not ML_100K.exists(), reason="needs ../shared/data/ml-100k/u.data.gz")
def test_movielens_with_default_options(strads: Strads, tmp_path: Path) -> None:
    done = strads("train", "mf", "--data", ML_100K, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path)
    assert run["validation_rmse"] <= 0.925
    assert run["data"] | {"ratings": 100_000, "users": 943, "items": 1682} == run["data"]


def test_coordinate_descent(strads: Strads, files: Path, tmp_path: Path) -> None:
    done = strads("train", "mf", "--data", files / "plain.tsv.gz", "--out", tmp_path, *QUICK, "--solver", "ccd")
    assert done.returncode == 0, done.stderr
    objectives = [record["objective"] for record in read_metrics(tmp_path)]
    assert objectives == sorted(objectives, reverse=True)


def test_ids_of_any_kind(strads: Strads, tmp_path: Path) -> None:
    """Texts with blanks, quotes and letters of any script, large and negative numbers, an unused column of dates."""
    rng = np.random.default_rng(0)
    users = ["Zoë", 'the "one", two', "007", "7", "x" * 300]
    items = [-(2**62), 2**62, 3, 10**12]
    lines = ["date,rating,movieId,username"]
    for _ in range(200):
        user = users[rng.integers(5)].replace('"', '""')
        lines.append(f'2026-01-01, {rng.integers(1, 6)} , {items[rng.integers(4)]},"{user}"')
    (tmp_path / "ratings.csv").write_text("\n\n".join(lines) + "\n")
    done = strads("train", "mf", "--data", tmp_path / "ratings.csv", "--out", tmp_path / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "200 ratings of 4 items by 5 users" in done.stdout
    assert "username is the user" in done.stdout
    model = MatrixFactorization.load(tmp_path / "run" / "model.npz")
    assert model.user_ids_.tolist() == sorted(users)
    assert model.item_ids_.tolist() == sorted(items)
    assert set(model.recommend("007", exclude_rated=False)[0].tolist()) == set(items)


@pytest.mark.parametrize(
    ("text", "options", "users"),
    [
        ("alice,book,5\nbob,pen,3\n", (), ["alice", "bob"]),
        ("5;alice;book\n3;bob;pen\n", ("--columns", "2,3,1"), ["alice", "bob"]),
        ("alice::book::5\nalice::pen::1\n", ("--columns", "user=2,item=1,score=3"), ["book", "pen"]),
        ("wer,was,note\na,b,1\nc,d,2\n", ("--columns", "wer,was,note"), ["a", "c"]),
        ('"1"\tx\t5\n2\ty\t3\n', (), [1, 2]),
        ("1 x 5\n2 y 3\n", (), [1, 2]),
    ],
)
def test_files_of_texts(strads: Strads, tmp_path: Path, text: str, options: tuple[str, ...], users: list) -> None:
    (tmp_path / "ratings.txt").write_text(text)
    data = ("--data", tmp_path / "ratings.txt", "--out", tmp_path / "run", "--holdout", 0)
    done = strads("train", "mf", *data, *QUICK, *options)
    assert done.returncode == 0, done.stderr
    assert MatrixFactorization.load(tmp_path / "run" / "model.npz").user_ids_.tolist() == users


def test_quiet(strads: Strads, files: Path, tmp_path: Path) -> None:
    done = strads("train", "mf", "--data", files / "plain.tsv.gz", "--out", tmp_path, "--epochs", 2, "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert MatrixFactorization.load(tmp_path / "model.npz").n_iter_ == 2
    assert "quiet" not in read_run(tmp_path)["arguments"]


def test_ids_that_only_a_few_make_texts_are_reported(strads: Strads, tmp_path: Path) -> None:
    lines = [f"{user},{item},{1 + (user + item) % 5}" for user in range(20) for item in range(10)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *lines, "l7,3,5"]) + "\n")
    done = strads("train", "mf", "--data", tmp_path / "ratings.csv", "--out", tmp_path / "run", "--epochs", 1)
    assert done.returncode == 0, done.stderr
    assert "user ids are texts: 1 of 21 are not whole numbers, for instance 'l7'" in done.stdout
    assert "item ids are texts" not in done.stdout
