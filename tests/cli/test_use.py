"""`strads predict`, `recommend`, `similar` and `evaluate` with saved models, from a shell's point of view."""

import csv
import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from outputs import read_run

from strads.models import BayesianPersonalizedRanking, MatrixFactorization, evaluate_ranking

Strads = Callable[..., subprocess.CompletedProcess[str]]
USERS = ["Zoë", "a, b", "ann", 'the "one"', "bob"]


@pytest.fixture(scope="module")
def folder(strads: Strads, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, "mf" with users that are texts and items that are numbers, and "bpr"; test.csv has unknown ids."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("use")
    pairs = np.unique(np.stack([rng.integers(0, 5, 90), rng.integers(0, 40, 90)], 1), axis=0)
    with open(folder / "train.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["rating", "movieId", "userId"])
        writer.writerows([1 + (u + i) % 5, 1000 + 7 * i, USERS[u]] for u, i in pairs.tolist())
    with open(folder / "test.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["rating", "movieId", "userId"])
        known = {1000 + 7 * int(i) for i in pairs[:, 1]}
        writer.writerows([5, item, user] for user in USERS for item in sorted(known)[::4])
        writer.writerows([[4, 1, "ann"], [4, 1000, "stranger"]])
    (folder / "blank.txt").write_text("\n")
    (folder / "words.txt").write_text("7\nseven\n")
    for model, options in (("mf", ("--rank", 4, "--epochs", 3)), ("bpr", ("--factors", 4, "--iterations", 3))):
        done = strads("train", model, "--data", folder / "train.csv", "--out", folder / model, "--holdout", 0, *options)
        assert done.returncode == 0, done.stderr
    return folder


def rows(text: str, delimiter: str = "\t") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


@pytest.mark.parametrize("model", ["mf", "bpr"])
def test_recommend(strads: Strads, folder: Path, model: str) -> None:
    done = strads("recommend", folder / model, "--user", "a, b", "--user", 'the "one"', "--user", "nobody", "-k", 3)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "1 user was not in the training data and left out: nobody\n"
    header, *found = rows(done.stdout)
    assert header == ["user", "rank", "item", "score"]
    assert [row[:2] for row in found] == [[user, str(rank)] for user in ("a, b", 'the "one"') for rank in (1, 2, 3)]
    kind = MatrixFactorization if model == "mf" else BayesianPersonalizedRanking
    items, scores = kind.load(folder / model / "model.npz").recommend("a, b", N=3)
    assert [int(row[2]) for row in found[:3]] == items.tolist()
    assert np.allclose([float(row[3]) for row in found[:3]], scores, rtol=1e-4)


def test_recommend_to_all_and_to_those_of_a_file(strads: Strads, folder: Path, tmp_path: Path) -> None:
    done = strads(
        "recommend", folder / "mf" / "model.npz", "-k", 100, "--include-known", "--out", tmp_path / "a.parquet"
    )
    assert done.returncode == 0, done.stderr
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    items = MatrixFactorization.load(folder / "mf" / "model.npz").item_ids_
    assert table.num_rows == 5 * len(items)
    assert set(table.column("item").to_pylist()) == set(items.tolist())
    (tmp_path / "users.txt").write_text("\ufeffbob\r\n\r\nZoë\r\nbob\r\n", encoding="utf-8", newline="")
    done = strads("recommend", folder / "mf", "--users", tmp_path / "users.txt", "-k", 2, "--out", tmp_path / "b.csv")
    assert done.returncode == 0, done.stderr
    assert [row[0] for row in rows((tmp_path / "b.csv").read_text(encoding="utf-8"), ",")[1:]] == ["bob"] * 2 + [
        "Zoë"
    ] * 2


def test_similar(strads: Strads, folder: Path) -> None:
    done = strads("similar", folder / "bpr", "--item", 1007, "-k", 4)
    assert done.returncode == 0, done.stderr
    ids, cosines = BayesianPersonalizedRanking.load(folder / "bpr" / "model.npz").similar_items(1007, N=5)
    found = rows(done.stdout)[1:]
    assert [int(row[2]) for row in found] == ids[1:].tolist()
    assert np.allclose([float(row[3]) for row in found], cosines[1:], rtol=1e-4)


def test_predict(strads: Strads, folder: Path, tmp_path: Path) -> None:
    done = strads("predict", folder / "mf", "--data", folder / "test.csv", "--out", tmp_path / "p.tsv")
    assert done.returncode == 0, done.stderr
    given = rows((folder / "test.csv").read_text(encoding="utf-8"), ",")[1:]
    assert f"2 of {len(given)} pairs are left out" in done.stderr
    assert "the first is user ann, item 1 " in done.stderr
    found = rows((tmp_path / "p.tsv").read_text(encoding="utf-8"))[1:]
    assert [row[:2] for row in found] == [[row[2], row[1]] for row in given[:-2]]
    predictions = np.array([float(row[2]) for row in found])
    assert 1 <= predictions.min() <= predictions.max() <= 5
    model = MatrixFactorization.load(folder / "mf" / "model.npz")
    expected = model.predict(([row[2] for row in given[:-2]], [int(row[1]) for row in given[:-2]]))
    assert np.allclose(predictions, expected, rtol=1e-4)
    done = strads("predict", folder / "mf", "--data", folder / "test.csv", "--unknown", "mean")
    assert len(rows(done.stdout)) == 1 + len(given)
    done = strads("predict", folder / "mf", "--data", folder / "test.csv", "--unknown", "error")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"test.csv:{len(given)}: item id 1 was not in the training data" in done.stderr


@pytest.fixture(scope="module")
def numbered(strads: Strads, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run "mf" whose users and items are numbers."""
    folder = tmp_path_factory.mktemp("numbered")
    lines = [f"{k % 7},{k * k % 11},{k % 5 + 1}" for k in range(60)]
    (folder / "train.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    done = strads("train", "mf", "--data", folder / "train.csv", "--out", folder / "mf", "--epochs", 2)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_text_among_numbers_is_unknown(strads: Strads, numbered: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\nuser,item\n1,4\n\nabc,1\n2,1\n")
    predict = ("predict", numbered / "mf", "--data", pairs)
    done = strads(*predict, "--out", tmp_path / "p.parquet")
    assert done.returncode == 0, done.stderr
    assert "1 of 3 pairs are left out" in done.stderr
    assert f"the first is user abc, item 1 ({pairs}:5; --unknown mean" in done.stderr
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert (table["user"], table["item"]) == ([1, 2], [4, 1])
    done = strads(*predict, "--unknown", "error")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{pairs}:5: user id 'abc' was not in the training data: --unknown skip leaves" in done.stderr
    done = strads(*predict, "--unknown", "mean")
    assert [row[:2] for row in rows(done.stdout)[1:]] == [["1", "4"], ["abc", "1"], ["2", "1"]]
    pairs.write_text("user,item,rating\n1,4,3\nabc,1,3\n")
    assert strads("evaluate", *predict[1:]).stderr.startswith("strads: error: none of the 2 held-out pairs")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("user,item,rating\n1,4,\n2,1,?\n", ()),
        ("user,item,rating,stars\n1,4,,\n2,1,,\n", ()),
        ("1,4,?\n2,1,?\n", ("--no-header",)),
        ("user,item\n1,4\n2,1\n", ("--columns", "user,item,rating")),
    ],
)
def test_scores_are_not_needed_for_predictions(
    strads: Strads, numbered: Path, tmp_path: Path, text: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "pairs.csv").write_text(text)
    done = strads("predict", numbered / "mf", "--data", tmp_path / "pairs.csv", *options)
    assert done.returncode == 0, done.stderr
    assert [row[:2] for row in rows(done.stdout)[1:]] == [["1", "4"], ["2", "1"]]


@pytest.mark.parametrize("model", ["mf", "bpr"])
def test_evaluate(strads: Strads, folder: Path, model: str) -> None:
    done = strads("evaluate", folder / model, "--data", folder / "test.csv", "-k", 3, "--at-least", 5)
    assert done.returncode == 0, done.stderr
    found = {name: float(value) for name, value in rows(done.stdout)[1:]}
    kind = MatrixFactorization if model == "mf" else BayesianPersonalizedRanking
    given = [row for row in rows((folder / "test.csv").read_text(encoding="utf-8"), ",")[1:] if row[0] == "5"]
    pairs = [row[2] for row in given], [int(row[1]) for row in given]
    expected = evaluate_ranking(kind.load(folder / model / "model.npz"), pairs, 3)
    assert found["ndcg"] == pytest.approx(expected.ndcg)
    assert found["k"] == 3
    assert ("rmse" in found) == (model == "mf")


def test_ratings_that_the_model_has_seen_do_not_count(strads: Strads, folder: Path, tmp_path: Path) -> None:
    options = ("--epochs", 3, "--rank", 4, "--holdout", 0.3)
    done = strads("train", "mf", "--data", folder / "train.csv", "--out", tmp_path / "mf", *options)
    assert done.returncode == 0, done.stderr
    held_out = read_run(tmp_path / "mf")["validation_rmse"]
    done = strads("evaluate", tmp_path / "mf", "--data", folder / "train.csv")
    found = {name: float(value) for name, value in rows(done.stdout)[1:]}
    assert found["rmse"] <= held_out * (1 + 1e-6)  # predictions are clipped
    assert found["rmse"] == pytest.approx(held_out, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recommend", "nowhere"), "nowhere: there is no such model file"),
        (("recommend", "train.csv"), "not a model file"),
        (("recommend", "mf", "--user", "nobody"), "none of the 1 users was in the training data"),
        (("recommend", "mf", "--user", "ann", "--users", "train.csv"), "exclude each other"),
        (("recommend", "mf", "--users", "blank.txt"), "blank.txt: there are no ids: give one user id a line"),
        (("similar", "mf", "--items", "words.txt"), "words.txt: the item ids of the model are whole numbers: 'seven'"),
        (("recommend", "mf", "--out", "x.xlsx"), "ends in .tsv, .csv or .parquet"),
        (("recommend", "mf", "--out", "none/x.csv"), "there is no such folder"),
        (("recommend", "mf", "--out", "train.csv"), "exists already"),
        (("recommend", "mf", "-k", "0"), "-k"),
        (("similar", "mf", "--item", "seven"), "whole numbers: 'seven' is not one"),
        (("predict", "bpr", "--data", "test.csv"), "does not predict scores"),
        (("predict", "mf", "--data", "nowhere.csv"), "no such file"),
        (("evaluate", "mf", "--data", "test.csv", "--at-least", "9"), "no score is 9.0 or more"),
        (("evaluate", "mf", "--data", "train.csv"), "none of the"),
        (("predict", "mf", "--data", "test.csv", "--out", "mf/../test.csv", "--overwrite"), "test.csv: is a file that"),
        (("similar", "mf", "--items", "words.txt", "--out", "words.txt"), "would replace it: choose another --out"),
    ],
)
def test_what_is_refused(strads: Strads, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = strads(*arguments, cwd=folder)
    assert done.returncode == 2
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert message in done.stderr
