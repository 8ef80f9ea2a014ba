"""`strads train mlr` from a shell's point of view."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from outputs import read_run
from sklearn.datasets import dump_svmlight_file

from strads.models import MultinomialLogisticRegression

# Here models predict from plain arrays; commands compare the names first.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

Strads = Callable[..., subprocess.CompletedProcess[str]]
LABELS = np.array(["bird", "fish", "horse"])


def samples() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 12)).round(4)
    z = X[:, :3] @ np.array([[3.0, 0.0, -1.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 2.0]]) + rng.gumbel(size=(240, 3))
    return X, z.argmax(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples as LIBSVM and CSV, the last 80 apart."""
    folder = tmp_path_factory.mktemp("samples")
    X, y = samples()
    for name, rows in (("train", slice(0, 160)), ("test", slice(160, None))):
        dump_svmlight_file(X[rows], y[rows], str(folder / f"{name}.svm"), zero_based=False)
        lines = [",".join([*map(str, x), LABELS[k]]) for x, k in zip(X[rows], y[rows], strict=True)]
        header = ",".join([*(f"x{column}" for column in range(12)), "kind"])
        (folder / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    return folder


def test_directory_holds_model_metrics_coefficients_and_record(strads: Strads, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = strads("train", "mlr", "--data", folder / "train.csv", "--target", "kind", "--test", folder / "test.csv",
                  "--out", out)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == ["coefficients.tsv", "metrics.jsonl", "model.npz", "run.json"]
    X, y = samples()
    model = MultinomialLogisticRegression.load(out / "model.npz")
    expected = MultinomialLogisticRegression().fit(X[:160], LABELS[y[:160]])
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.classes_.tolist() == LABELS.tolist()
    record = read_run(out)
    assert record["status"] == "finished"
    assert record["converged"]
    assert record["data"]["classes"] == 3
    assert record["accuracy"] == model.score(X[160:], LABELS[y[160:]])
    header, first, *rest = (out / "coefficients.tsv").read_text().splitlines()
    assert header == "class\tfeature\tcoefficient"
    assert first == f"bird\t(intercept)\t{float(model.intercept_[0])!r}"
    assert rest[0].startswith("bird\tx0\t")
    assert len(rest) == 38
    assert "3 classes: bird, fish, horse" in done.stdout
    assert f"{record['accuracy']:.4f}" in done.stdout


@pytest.mark.parametrize("penalty", ["l1", "none"])
def test_penalties_on_nodes(strads: Strads, folder: Path, tmp_path: Path, penalty: str) -> None:
    options = ("--data", folder / "train.svm", "--penalty", penalty, "--C", 0.1, "--balanced", "--no-intercept")
    for nodes, out in ((1, tmp_path / "one"), (2, tmp_path / "two")):
        done = strads("train", "mlr", *options, "--nodes", nodes, "--threads", 1, "--out", out)
        assert done.returncode == 0, done.stderr
    one, two = (MultinomialLogisticRegression.load(tmp_path / name / "model.npz") for name in ("one", "two"))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.class_weight == "balanced"
    assert not one.intercept_.any()
    if penalty == "l1":
        assert 0 < np.count_nonzero(one.coef_) < one.coef_.size
        assert "nonzero" in done.stdout


def test_a_tolerance_that_is_not_reached_is_told(strads: Strads, folder: Path, tmp_path: Path) -> None:
    done = strads("train", "mlr", "--data", folder / "train.svm", "--max-iter", 1, "--tol", 1e-9,
                  "--out", tmp_path / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "did not reach --tol 1e-09" in " ".join(done.stdout.split())
    assert not read_run(tmp_path / "run")["converged"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--data", "one.svm"), "one.svm: only one label, 1: give samples of two classes or more"),
        (("--data", "a.svm", "--test", "other.svm"), "other.svm: the label 7 is not in the training data"),
        (("--data", "a.svm", "--C", 0), "--C"),
        (("--data", "a.svm", "--penalty", "l3"), "--penalty"),
        (("--data", "missing.svm"), "missing.svm"),
        (("--data", "a.svm", "--test-labels", "y.txt"), "y.txt: give the samples that these labels are of as --test"),
    ],
)
def test_bad_input(strads: Strads, tmp_path: Path, options: tuple[object, ...], problem: str) -> None:
    (tmp_path / "a.svm").write_text("1 1:0.5 3:2\n2 2:1\n3 1:1 2:2\n")
    (tmp_path / "one.svm").write_text("1 1:0.5\n1 2:1\n")
    (tmp_path / "other.svm").write_text("7 1:0.5\n")
    done = strads("train", "mlr", "--out", tmp_path / "out", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_column_of_weights(strads: Strads, folder: Path, tmp_path: Path) -> None:
    options = ("--target", "kind", "--weights", "x11", "--out", tmp_path / "run")
    done = strads("train", "mlr", "--data", folder / "train.csv", *options)
    assert done.returncode != 0
    assert "train.csv:" in done.stderr
    assert "is negative: give 0 or more" in done.stderr.replace("\n", " ")
    for name in ("train", "test"):
        header, *lines = (folder / f"{name}.csv").read_text().splitlines()
        rows = [f"{line},{number % 3}" for number, line in enumerate(lines)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"{header},often", *rows]) + "\n")
    options = ("--target", "kind", "--weights", "often", "--test", tmp_path / "test.csv", "--out", tmp_path / "run")
    done = strads("train", "mlr", "--data", tmp_path / "train.csv", *options)
    assert done.returncode == 0, done.stderr
    X, y = samples()
    model = MultinomialLogisticRegression.load(tmp_path / "run" / "model.npz")
    expected = MultinomialLogisticRegression().fit(X[:160], LABELS[y[:160]], np.arange(160) % 3)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.feature_names_in_.tolist() == [f"x{column}" for column in range(12)]
    record = read_run(tmp_path / "run")
    assert record["accuracy"] == model.score(X[160:], LABELS[y[160:]])
    done = strads("train", "mlr", "--data", folder / "train.svm", "--weights", "often", "--out", tmp_path / "other")
    assert done.returncode != 0
    assert "no column of numbers 'often'" in done.stderr.replace("\n", " ")
