"""`strads train bpr` from a shell's point of view."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from outputs import read_metrics, read_run

from strads.models import BayesianPersonalizedRanking, evaluate_ranking

Strads = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("--factors", 4, "--iterations", 3)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    pairs = np.unique(np.stack([1 + rng.integers(0, 60, 900), 1 + rng.integers(0, 40, 900)], 1), axis=0)
    path = tmp_path_factory.mktemp("data") / "likes.tsv"
    path.write_text("".join(f"{user}\t{item}\t{1 + (user + item) % 5}\n" for user, item in pairs))
    return path


@pytest.fixture(scope="module")
def run(strads: Strads, data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("runs") / "bpr"
    done = strads("train", "bpr", "--data", data, "--out", out, *QUICK, "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out, done.stdout


def test_directory_holds_model_metrics_and_record(run: tuple[Path, str]) -> None:
    out, shown = run
    assert sorted(path.name for path in out.iterdir()) == ["metrics.jsonl", "model.npz", "run.json"]
    model = BayesianPersonalizedRanking.load(out / "model.npz")
    assert model.user_ids_.tolist() == list(range(1, 61))
    assert model.user_factors_.shape == (60, 4)
    metrics = read_metrics(out)
    assert model.history_ == metrics
    record = read_run(out)
    assert record["status"] == "finished"
    assert record["validation_auc"] == metrics[-1]["validation_auc"]
    assert "held-out AUC" in shown


def test_logical_nodes_give_the_same_model(strads: Strads, data: Path, run: tuple[Path, str], tmp_path: Path) -> None:
    nodes = ("--backend", "threads", "--nodes", 2)
    done = strads("train", "bpr", "--data", data, "--out", tmp_path / "run", *QUICK, "--seed", 3, *nodes)
    assert done.returncode == 0, done.stderr
    models = [BayesianPersonalizedRanking.load(path / "model.npz") for path in (run[0], tmp_path / "run")]
    assert (models[0].item_factors_ == models[1].item_factors_).all()


def test_likes_from_a_score_on(strads: Strads, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "likes.tsv"
    file.write_text(data.read_text() + "61\t1\t3\n1\t41\t3\n")  # a user without likes, and an item that nobody likes
    done = strads("train", "bpr", "--data", file, "--out", tmp_path / "run", *QUICK, "--at-least", 4)
    assert done.returncode == 0, done.stderr
    record = read_run(tmp_path / "run")
    scores = [int(line.split()[2]) for line in data.read_text().splitlines()]
    assert record["data"]["likes"] == sum(score >= 4 for score in scores)
    assert (record["data"]["users"], record["data"]["items"]) == (60, 40)
    assert "likes of 40 items by 60 users" in done.stdout


@pytest.mark.parametrize(("split", "held_out"), [("last", 60), ("time", 90)])
def test_what_is_held_out_by_time(strads: Strads, tmp_path: Path, split: str, held_out: int) -> None:
    rng = np.random.default_rng(0)
    cells = rng.choice(60 * 40, 900, replace=False)
    times = rng.permutation(900)
    lines = [f"{time},u{cell // 40},i{cell % 40}" for time, cell in zip(times, cells, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["timestamp,user_id,item_id", *lines]) + "\n")
    data = ("--data", tmp_path / "data.csv", "--out", tmp_path / "run")
    done = strads("train", "bpr", *data, *QUICK, "--split", split)
    assert done.returncode == 0, done.stderr
    record = read_run(tmp_path / "run")
    assert record["data"]["held_out"] == held_out
    assert "the best 10" in done.stdout
    model = BayesianPersonalizedRanking.load(tmp_path / "run" / "model.npz")
    held = (
        times >= 810
        if split == "time"
        else [max(times[cells // 40 == cell // 40]) == t for t, cell in zip(times, cells, strict=True)]
    )
    users, items = [f"u{cell // 40}" for cell in cells[held]], [f"i{cell % 40}" for cell in cells[held]]
    assert record["ranking"]["ndcg"] == evaluate_ranking(model, (users, items)).ndcg
    assert record["ranking"]["left_out"] == 0


def test_times_are_not_needed_if_nothing_is_held_out(strads: Strads, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("user,item\n1,2\n3,1\n")
    data = ("--data", tmp_path / "data.csv", "--out", tmp_path / "run")
    done = strads("train", "bpr", *data, *QUICK, "--split", "time", "--holdout", 0)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1\t2\t-1\n3\t1\t2\n", (), "score -1.0: negative scores are not likes"),
        ("1\t2\t1\n3\t1\t2\n", ("--at-least", 9), "no score is 9.0 or more"),
        ("1\t2\t1\n3\t1\t2\n", ("--split", "time"), "data.tsv:1: a fourth column is needed, the timestamp"),
        ("user\titem\n1\t2\n", ("--split", "last"), "timestamp=… names it among 'user', 'item'"),
        ("user\titem\ttime\tdate\n1\t2\t3\t4\n", ("--split", "last"), "several columns may hold the timestamp"),
        ("user\titem\tdate\n1\t2\t3\n", ("--split", "last"), "--split last leaves nothing to hold out"),
        ("1\t2\t1\n", (), "holding out needs at least two likes"),
        ("1\t2\t0\n3\t1\t0\n", ("--holdout", 0), "no score is above 0"),
        ("who\twhat\n1\tx\n", (), "data.tsv:1: no column is known to hold the user"),
    ],
)
def test_bad_input(strads: Strads, tmp_path: Path, text: str, options: tuple[object, ...], message: str) -> None:
    (tmp_path / "data.tsv").write_text(text)
    done = strads("train", "bpr", "--data", tmp_path / "data.tsv", "--out", tmp_path / "run", *QUICK, *options)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
