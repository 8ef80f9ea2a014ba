"""`strads train lasso` and `strads train logistic` from a shell's point of view."""

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
import scipy.io
import scipy.sparse
from outputs import read_metrics, read_run
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import KFold

from strads.models import ElasticNet, ElasticNetCV, Lasso, LogisticRegression, alpha_max

# Here models predict from plain arrays; commands compare the names first.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

Strads = Callable[..., subprocess.CompletedProcess[str]]
N, P = 300, 60


def read_coefficients(out: Path) -> dict[str, float]:
    header, first, *lines = (out / "coefficients.tsv").read_text().splitlines()
    assert header.endswith("feature\tcoefficient")
    assert first.split("\t")[-2] == "(intercept)"
    return {name: float(value) for *_, name, value in (line.split("\t") for line in lines)}


def dense() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N, P)) < 0.5, rng.normal(size=(N, P)), 0.0).round(4)
    return X, (X[:, :4] @ [4.0, -3.0, 2.0, 1.0] + 0.2 * rng.normal(size=N) + 1.0).round(4)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same samples in every kind of file; the last 100 rows apart in test.*."""
    folder = tmp_path_factory.mktemp("samples")
    X, y = dense()
    for name, rows in (("train", slice(0, 200)), ("test", slice(200, N))):
        dump_svmlight_file(X[rows], y[rows], str(folder / f"{name}.svm"), zero_based=False)
        dump_svmlight_file(X[rows], np.where(y[rows] > 1, 1, -1), str(folder / f"{name}-labels.svm"), zero_based=False)
        (folder / f"{name}.svm.gz").write_bytes(gzip.compress((folder / f"{name}.svm").read_bytes()))
        scipy.io.mmwrite(folder / f"{name}.mtx", scipy.sparse.csc_array(X[rows]))
        (folder / f"{name}.txt").write_text("".join(f"{value}\n" for value in y[rows]))
        np.save(folder / f"{name}.npy", y[rows])
        scipy.sparse.save_npz(folder / f"{name}-sparse.npz", scipy.sparse.csr_matrix(X[rows]))
        np.savez(folder / f"{name}.npz", X=X[rows], y=y[rows])
        kinds = np.where(y[rows] > 1, "high", "low")
        lines = [
            ";".join([f"s{row}", *map(str, values), str(target), kind])
            for row, (values, target, kind) in enumerate(zip(X[rows], y[rows], kinds, strict=True))
        ]
        header = ";".join(["id", *(f"x{column}" for column in range(P)), "price", "kind"])
        (folder / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    (folder / "names.txt").write_text("".join(f"gene{column}\n" for column in range(P)))
    return folder


@pytest.fixture(scope="module")
def run(strads_process: Strads, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("runs") / "new" / "lasso"
    done = strads_process(
        *("train", "lasso", "--data", samples / "train.svm", "--test", samples / "test.svm", "--out", out),
        *("--names", samples / "names.txt", "--alpha", 0.02),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out, done.stdout


def test_directory_holds_model_metrics_coefficients_and_record(run: tuple[Path, str]) -> None:
    out, text = run
    assert sorted(path.name for path in out.iterdir()) == ["coefficients.tsv", "metrics.jsonl", "model.npz", "run.json"]
    X, y = dense()
    expected = Lasso(0.02).fit(scipy.sparse.csc_array(X[:200]), y[:200])
    model = Lasso.load(out / "model.npz")
    assert np.allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.history_ == read_metrics(out)
    coefficients = read_coefficients(out)
    assert list(coefficients)[:3] == ["gene0", "gene1", "gene2"]
    assert coefficients["gene1"] == model.coef_[1]
    assert len(coefficients) == np.count_nonzero(model.coef_)
    first = (out / "coefficients.tsv").read_text().splitlines()[1]
    assert first == f"(intercept)\t{float(model.intercept_)!r}"
    record = read_run(out)
    assert record["status"] == "finished"
    assert record["data"] | {"file": 0, "bytes": 0} == {
        **{"file": 0, "bytes": 0, "kind": "LIBSVM", "samples": 200, "features": P},
        **{"entries": np.count_nonzero(X[:200]), "test_samples": 100},
    }
    assert record["r2"] == pytest.approx(model.score(X[200:], y[200:]))
    assert record["relative_gap"] <= 1e-6
    assert record["converged"]
    assert f"{record['r2']:.4f}" in text
    assert "gene0" in text
    assert f'strads.models.Lasso.load("{out}/model.npz")' in text


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("train.svm.gz", ()),
        ("train.mtx", ("--labels", "train.txt")),
        ("train.mtx", ("--labels", "train.npy")),
        ("train-sparse.npz", ("--labels", "train.txt")),
        ("train.npz", ()),
        ("train.csv", ("--target", "price", "--drop", "id,kind")),
    ],
)
def test_every_kind_of_file_gives_the_same_model(
    strads: Strads, samples: Path, run: tuple[Path, str], tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    done = strads("train", "lasso", "--data", name, "--out", out, "--alpha", 0.02, *options, cwd=samples)
    assert done.returncode == 0, done.stderr
    model, expected = (Lasso.load(path / "model.npz") for path in (out, run[0]))
    assert np.allclose(model.coef_, expected.coef_, atol=1e-5)
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-5)


def test_labels_of_the_test_data_are_in_a_file_of_their_own(
    strads: Strads, samples: Path, run: tuple[Path, str], tmp_path: Path
) -> None:
    options = ("--labels", "train.txt", "--test", "test.mtx", "--test-labels", "test.npy", "--alpha", 0.02)
    done = strads("train", "lasso", "--data", "train.mtx", *options, "--out", tmp_path, cwd=samples)
    assert done.returncode == 0, done.stderr
    assert read_run(tmp_path)["r2"] == pytest.approx(read_run(run[0])["r2"], abs=1e-5)


def test_a_path_keeps_the_best_step(strads: Strads, samples: Path, tmp_path: Path) -> None:
    options = ("--path", 10, "--test", "test.svm", "--out", tmp_path, "--overwrite", "--standardize")
    done = strads("train", "lasso", "--data", "train.svm", *options, cwd=samples)
    assert done.returncode == 0, done.stderr
    metrics = read_metrics(tmp_path)
    assert [record["iteration"] for record in metrics] == list(range(1, 11))
    alphas = [record["alpha"] for record in metrics]
    assert alphas == pytest.approx(np.geomspace(alphas[0], 1e-3 * alphas[0], 10))
    assert metrics[0]["active"] == 0
    best = max(metrics, key=lambda record: record["r2"])
    record = read_run(tmp_path)
    assert (record["r2"], record["alpha"], record["model_step"]) == (best["r2"], best["alpha"], best["iteration"])
    model = Lasso.load(tmp_path / "model.npz")
    assert model.alpha == best["alpha"]
    assert np.count_nonzero(model.coef_) == best["active"] == len(read_coefficients(tmp_path))
    assert f"step {best['iteration']}, alpha" in done.stdout


@pytest.mark.parametrize("l1_ratio", [1.0, 0.8])
def test_cross_validation_chooses_the_penalty(strads: Strads, samples: Path, tmp_path: Path, l1_ratio: float) -> None:
    options = ("--cv", 4, "--path", 9, "--test", "test.svm", "--seed", 3, "--out", tmp_path, "--l1-ratio", l1_ratio)
    done = strads("train", "lasso", "--data", "train.svm", *options, cwd=samples)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fold ") == 4
    X, y = dense()
    parts = KFold(4, shuffle=True, random_state=3)
    alphas = np.geomspace(1.0, 1e-3, 9) * alpha_max(X[:200], y[:200], l1_ratio=l1_ratio)
    chooser = ElasticNetCV(l1_ratio=l1_ratio, alphas=alphas, cv=parts).fit(scipy.sparse.csc_array(X[:200]), y[:200])
    model = (Lasso if l1_ratio == 1.0 else ElasticNet).load(tmp_path / "model.npz")
    assert model.alpha == pytest.approx(chooser.alpha_)
    assert np.allclose(model.coef_, chooser.coef_, atol=1e-6)
    assert "chosen" in done.stdout
    assert "best of 9 by 4 folds, RMSE 0." in done.stdout
    assert read_run(tmp_path)["arguments"]["cv"] == 4
    assert read_run(tmp_path)["r2"] > 0.9


def test_cross_validation_of_classes(strads: Strads, samples: Path, tmp_path: Path) -> None:
    done = strads(
        "train", "logistic", "--data", "train-labels.svm", "--cv", 3, "--path", 4, "--out", tmp_path, cwd=samples
    )
    assert done.returncode == 0, done.stderr
    assert "best of 4 by 3 folds, accuracy 0.9" in done.stdout


def test_samples_held_out(strads: Strads, samples: Path, tmp_path: Path) -> None:
    for number, seed in enumerate((1, 1, 2)):
        options = ("--holdout", 0.25, "--alpha", 0.02, "--seed", seed, "--out", tmp_path / str(number))
        done = strads("train", "lasso", "--data", "train.npz", *options, cwd=samples)
        assert done.returncode == 0, done.stderr
        assert "150 samples of 60 features" in done.stdout
        assert "; 50 to test on" in done.stdout
    first, second, third = (read_run(tmp_path / str(number)) for number in range(3))
    assert first["r2"] == second["r2"] != third["r2"]
    assert first["r2"] > 0.9


def test_classes_by_name(strads: Strads, samples: Path, tmp_path: Path) -> None:
    options = ("--target", "kind", "--drop", "id,price", "--test", "test.csv", "--balanced", "--l1-ratio", 0.9)
    done = strads("train", "logistic", "--data", "train.csv", *options, "--out", tmp_path, cwd=samples)
    assert done.returncode == 0, done.stderr
    record = read_run(tmp_path)
    assert record["auc"] > 0.9
    assert record["accuracy"] > 0.8
    model = LogisticRegression.load(tmp_path / "model.npz")
    assert model.classes_.tolist() == ["high", "low"]
    assert (model.penalty, model.l1_ratio, model.class_weight) == ("elasticnet", 0.9, "balanced")
    coefficients = read_coefficients(tmp_path)
    assert coefficients["x0"] < 0 < coefficients["x1"]
    header, first = (tmp_path / "coefficients.tsv").read_text().splitlines()[:2]
    assert header == "class\tfeature\tcoefficient"
    assert first == f"low\t(intercept)\t{float(model.intercept_[0])!r}"


@pytest.mark.parametrize("options", [("--C", 2.0), ("--path", 4)])
def test_classes_by_number(strads: Strads, samples: Path, tmp_path: Path, options: tuple[Any, ...]) -> None:
    files = ("--data", "train-labels.svm", "--test", "test-labels.svm")
    done = strads("train", "logistic", *files, "--out", tmp_path, *options, cwd=samples)
    assert done.returncode == 0, done.stderr
    assert LogisticRegression.load(tmp_path / "model.npz").classes_.tolist() == [-1, 1]
    assert read_run(tmp_path)["auc"] > 0.9


def test_what_is_not_reached_is_said(strads: Strads, samples: Path, tmp_path: Path) -> None:
    options = ("--alpha-ratio", 0.01, "--max-iter", 1, "--tol", 1e-12)
    done = strads("train", "lasso", "--data", samples / "train.svm", "--out", tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "did not reach --tol 1e-12 within --max-iter 1" in done.stdout
    assert not read_run(tmp_path)["converged"]


_ENDLESS = ("--schedule", "random", "--concurrency", "1")  # unlike working sets, it does not see that it is stuck


@pytest.mark.slow
def test_an_interrupt_keeps_what_there_is(environment: dict[str, str], samples: Path, tmp_path: Path) -> None:
    options = ["--data", str(samples / "train.svm"), "--out", str(tmp_path / "run"), "--alpha-ratio", "1e-4"]
    options += ["--tol", "0", "--max-iter", "10000000", *_ENDLESS]
    command = [sys.executable, "-m", "strads", "train", "lasso", *options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("iteration 3 "):
                break
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130
    assert "interrupted (SIGINT) after" in rest
    record = read_run(tmp_path / "run")
    assert (record["status"], record["converged"]) == ("interrupted", False)
    model = Lasso.load(tmp_path / "run" / "model.npz")
    assert model.coef_.any()
    assert model.history_ == read_metrics(tmp_path / "run")
