"""`strads predict` and `evaluate` with saved linear models, from a shell's point of view; columns of categories."""

import csv
import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from strads.cli.table_output import Output
from strads.cli.targets import nameless
from strads.models import (
    Lasso,
    LogisticRegression,
    MultinomialLogisticRegression,
    MultiTaskLasso,
    PoissonRegressor,
    l1_min_c,
)

# Here models predict from plain arrays; commands compare the names first.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

Strads = Callable[..., subprocess.CompletedProcess[str]]
COLORS = ["red", "a=b", "", "Zoë"]
TRAIN = {"lasso": "price", "logistic": "sold", "mlr": "kind"}
CLASSES = {"lasso": Lasso, "logistic": LogisticRegression, "mlr": MultinomialLogisticRegression}
MEASURES = {"lasso": ["r2", "rmse"], "logistic": ["auc", "accuracy"], "mlr": ["accuracy", "log_loss"]}


@pytest.fixture(scope="module")
def folder(strads: Strads, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.csv, test.csv with other columns and another order of them, new.csv without targets; and three runs."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("samples")
    area, rooms, color = rng.normal(size=400), rng.integers(1, 5, 400), rng.integers(0, len(COLORS), 400)
    price = 3 * area - rooms + np.array([0.0, 5.0, -5.0, 1.0])[color] + 0.1 * rng.normal(size=400)
    kind = np.array(["hut", "house", "hall"])[np.clip(rooms - 1, 0, 2)]
    columns = {
        "area": area, "rooms": rooms, "wall=color": np.array(COLORS)[color],
        "price": price, "sold": np.where(price > 0, "yes", "no"), "kind": kind,
    }  # fmt: skip
    for name, rows, names in (
        ("train", slice(0, 300), list(columns)),
        ("test", slice(300, 400), ["sold", "wall=color", "price", "rooms", "kind", "area"]),
        ("new", slice(300, 400), ["wall=color", "rooms", "area"]),
    ):
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(zip(*(columns[each][rows].tolist() for each in names), strict=True))
    for model, target in TRAIN.items():
        drop = ",".join(each for each in TRAIN.values() if each != target)
        options = ("--target", target, "--drop", drop, "--categorical", "wall=color", "--out", folder / model)
        done = strads("train", model, "--data", folder / "train.csv", "--test", folder / "test.csv", *options)
        assert done.returncode == 0, done.stderr
    return folder


def table(text: str) -> dict[str, list[str]]:
    header, *rows = csv.reader(io.StringIO(text), delimiter="\t")
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def indicators(folder: Path, name: str) -> np.ndarray:
    """The features that the models have, computed in another way."""
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    colors = [[row["wall=color"] == color for color in sorted(COLORS)] for row in rows]
    return np.array([[float(row["area"]), float(row["rooms"]), *each] for row, each in zip(rows, colors, strict=True)])


def test_categories_are_features(folder: Path) -> None:
    model = Lasso.load(folder / "lasso" / "model.npz")
    assert model.feature_names_in_.tolist() == ["area", "rooms", *(f"wall=color={color}" for color in sorted(COLORS))]
    assert model.score(indicators(folder, "test"), [float(x) for x in column(folder, "test", "price")]) > 0.9
    coefficients = (folder / "lasso" / "coefficients.tsv").read_text().splitlines()
    assert coefficients[1].startswith("(intercept)\t")
    assert any(line.startswith("wall=color=a=b\t") for line in coefficients)


def column(folder: Path, file: str, name: str) -> list[str]:
    with open(folder / f"{file}.csv", newline="", encoding="utf-8") as lines:
        return [row[name] for row in csv.DictReader(lines)]


@pytest.mark.parametrize("file", ["new", "test"])
def test_predict_numbers(strads: Strads, folder: Path, file: str) -> None:
    done = strads("predict", folder / "lasso", "--data", folder / f"{file}.csv")
    assert (done.returncode, done.stderr) == (0, "")
    found = table(done.stdout)
    assert list(found) == ["sample", "prediction"]
    assert found["sample"] == [str(number) for number in range(1, 101)]
    model = Lasso.load(folder / "lasso" / "model.npz")
    assert np.allclose(np.array(found["prediction"], float), model.predict(indicators(folder, "new")), rtol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "mlr"])
def test_predict_classes(strads: Strads, folder: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "found.parquet"
    done = strads("predict", folder / name / "model.npz", "--data", folder / "new.csv", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"100 predictions: {out}" in done.stdout
    found = pyarrow.parquet.read_table(out).to_pydict()
    model = CLASSES[name].load(folder / name / "model.npz")
    X = indicators(folder, "new")
    assert found["prediction"] == model.predict(X).tolist()
    assert list(found)[2:] == [f"probability_{label}" for label in model.classes_]
    assert np.allclose(np.stack([found[key] for key in list(found)[2:]], 1), model.predict_proba(X))


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_names_of_classes_are_quoted_where_they_have_to_be(tmp_path: Path, suffix: str, delimiter: str) -> None:
    columns = {"prediction": ['a, "b"', "c\td"], 'probability_a, "b"': [0.75, 0.5], "probability_c\td": [0.25, 0.5]}
    Output(out=tmp_path / f"p{suffix}").write(columns, "predictions")
    with open(tmp_path / f"p{suffix}", newline="") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    assert header == list(columns)
    assert [row[0] for row in rows] == columns["prediction"]
    assert all(len(row) == 3 for row in rows)


@pytest.mark.parametrize("name", TRAIN)
def test_evaluate(strads: Strads, folder: Path, name: str) -> None:
    done = strads("evaluate", folder / name, "--data", folder / "test.csv", "--target", TRAIN[name])
    assert (done.returncode, done.stderr) == (0, "")
    found = dict(zip(*table(done.stdout).values(), strict=True))
    assert list(found) == MEASURES[name]
    y = np.array(column(folder, "test", TRAIN[name]))
    model = CLASSES[name].load(folder / name / "model.npz")
    score = model.score(indicators(folder, "test"), y.astype(float) if name == "lasso" else y)
    assert float(found["r2" if name == "lasso" else "accuracy"]) == pytest.approx(score)


def test_a_model_without_names_takes_columns_in_their_order(strads: Strads, folder: Path, tmp_path: Path) -> None:
    X, file = indicators(folder, "test")[:, :2], tmp_path / "new.csv"
    model = Lasso(0.1).fit(X, X[:, 0])
    model.save(tmp_path / "model.npz")
    rows = "".join(f"{area},{rooms}\n" for area, rooms in X.tolist())
    file.write_text("area,rooms\n" + rows)
    done = strads("predict", tmp_path / "model.npz", "--data", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.allclose(np.array(table(done.stdout)["prediction"], float), model.predict(X), rtol=1e-6)
    file.write_text("area,rooms,floor\n1,2,3\n")
    done = strads("predict", tmp_path / "model.npz", "--data", file)
    assert done.returncode == 2
    assert "3 columns, but the training data 2: they must be the same; the model knows no names" in done.stderr


def test_logistic_regression_of_three_classes(strads: Strads, folder: Path, tmp_path: Path) -> None:
    options = ("--target", "kind", "--drop", "price,sold", "--categorical", "wall=color", "--balanced")
    given = ("--data", folder / "train.csv", "--test", folder / "test.csv", *options, "--out", tmp_path / "run")
    done = strads("train", "logistic", *given)
    assert (done.returncode, done.stderr) == (0, "")
    assert "held-out accuracy" in done.stdout
    assert "rooms, for hut" in done.stdout
    model = LogisticRegression.load(tmp_path / "run" / "model.npz")
    assert model.coef_.shape == (3, 6)
    assert 0 < np.count_nonzero(model.coef_) < 18
    X, y = indicators(folder, "train"), column(folder, "train", "kind")
    critical = l1_min_c(X, y, class_weight="balanced")
    assert critical * 10 == pytest.approx(model.C)
    for factor, is_zero in ((0.99, True), (1.01, False)):
        coef = LogisticRegression(C=critical * factor, class_weight="balanced", tol=1e-8).fit(X, y).coef_
        assert (coef == 0).all() == is_zero
    found = table(strads("predict", tmp_path / "run", "--data", folder / "new.csv").stdout)
    assert np.mean(np.array(found["prediction"]) == column(folder, "test", "kind")) > 0.8


def test_models_that_are_fitted_in_python_only(strads: Strads, folder: Path, tmp_path: Path) -> None:
    X, file = indicators(folder, "test")[:, :2], tmp_path / "new.csv"
    file.write_text("area,rooms,count\n" + "".join(f"{area},{rooms},{int(rooms)}\n" for area, rooms in X.tolist()))
    names = np.array(["area", "rooms"], object)
    counts, several = PoissonRegressor(0.01).fit(X, X[:, 1]), MultiTaskLasso(0.01).fit(X, X @ np.eye(2, 3))
    for model in (counts, several):
        model.feature_names_in_ = names
        model.save(tmp_path / f"{type(model).__name__}.npz")
    done = strads("predict", tmp_path / "MultiTaskLasso.npz", "--data", file)
    assert (done.returncode, done.stderr) == (0, "")
    found = table(done.stdout)
    assert list(found) == ["sample", "prediction_1", "prediction_2", "prediction_3"]
    found = np.array([found[name] for name in list(found)[1:]], float).T
    done = strads("evaluate", tmp_path / "PoissonRegressor.npz", "--data", file, "--target", "count")
    assert (done.returncode, done.stderr) == (0, "")
    rmse = float(dict(zip(*table(done.stdout).values(), strict=True))["rmse"])
    with nameless():
        assert np.allclose(found, several.predict(X), rtol=1e-6)
        assert rmse == pytest.approx(np.sqrt(np.mean((counts.predict(X) - X[:, 1]) ** 2)))


def test_a_category_that_training_has_not_seen(strads: Strads, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("area,rooms,wall=color\n1.0,2,blue\n1.0,2,red\n")
    done = strads("predict", folder / "lasso", "--data", file)
    assert done.returncode == 0
    assert done.stderr == f"{file}: column 'wall=color': 'blue' is not in the training data\n"
    model = Lasso.load(folder / "lasso" / "model.npz")
    expected = model.predict([[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0, 0.0, 1.0]])
    assert sorted(COLORS)[-1] == "red" or expected[0] != expected[1]
    assert float(table(done.stdout)["prediction"][0]) == pytest.approx(expected[0], rel=1e-6)


@pytest.mark.parametrize("first", [0, 1])
def test_libsvm_files_keep_their_numbers(strads: Strads, tmp_path: Path, first: int) -> None:
    """A file without entries in the first column does not say whether columns begin at 0 or 1."""
    X = np.round(np.random.default_rng(1).normal(size=(80, 6)), 3)
    dump_svmlight_file(X, X @ [3.0, -2.0, 1.0, 0.0, 0.0, 0.0], str(tmp_path / "train.svm"), zero_based=first == 0)
    done = strads("train", "lasso", "--data", tmp_path / "train.svm", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    X[:, 0] = 0.0
    dump_svmlight_file(scipy.sparse.csr_matrix(X), np.zeros(80), str(tmp_path / "new.svm"), zero_based=first == 0)
    done = strads("predict", tmp_path / "run", "--data", tmp_path / "new.svm")
    assert (done.returncode, done.stderr) == (0, "")
    model = Lasso.load(tmp_path / "run" / "model.npz")
    expected = X @ model.coef_ + model.intercept_
    assert np.allclose(np.array(table(done.stdout)["prediction"], float), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "e", "f"], ["10", "20", "30", "40", "50", "60"]])
@pytest.mark.parametrize("weights", [None, 2])
@pytest.mark.parametrize("first", [0, 1])
def test_columns_of_libsvm_files_stay_with_their_features(
    strads: Strads, tmp_path: Path, names: list[str] | None, weights: int | None, first: int
) -> None:
    X = np.random.default_rng(1).integers(1, 5, (80, 6)).astype(float)
    y = (X[:, 1] + X[:, 3] > X[:, 5] + 2).astype(int)
    dump_svmlight_file(X, y, str(tmp_path / "data.svm"), zero_based=first == 0)
    options = ["--data", tmp_path / "data.svm", "--out", tmp_path / "run"]
    if names is not None:
        (tmp_path / "names.txt").write_text("\n".join(names) + "\n")
        options += ["--names", tmp_path / "names.txt"]
    if weights is not None:
        options += ["--weights", weights + first if names is None else names[weights]]
    done = strads("train", "mlr", *options)
    assert done.returncode == 0, done.stderr
    done = strads("predict", tmp_path / "run", "--data", tmp_path / "data.svm")
    assert (done.returncode, done.stderr) == (0, "")
    model = MultinomialLogisticRegression.load(tmp_path / "run" / "model.npz")
    features = np.delete(X, [] if weights is None else [weights], axis=1)
    expected = model.predict_proba(features)[:, 1]
    assert np.allclose(np.array(table(done.stdout)["probability_1"], float), expected, rtol=1e-5)
    if names is not None:
        coefficients = (tmp_path / "run" / "coefficients.tsv").read_text()
        assert f"\t{names[3]}\t" in coefficients


def test_many_categories_are_sparse(strads: Strads, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    words = rng.integers(0, 500, 2000)
    effect = np.where(np.arange(500) < 5, 10.0, 0.0)
    pairs = zip(words, rng.normal(size=2000), strict=True)
    lines = [f"w{word},{number:.3f},{effect[word] + number:.3f}" for word, number in pairs]
    (tmp_path / "data.csv").write_text("\n".join(["word,x,y", *lines]) + "\n")
    options = ("--target", "y", "--categorical", "word", "--alpha", 0.001, "--holdout", 0.2, "--out", tmp_path / "run")
    done = strads("train", "lasso", "--data", tmp_path / "data.csv", *options)
    assert done.returncode == 0, done.stderr
    features = 1 + len(np.unique(words))
    assert f"1,600 samples of {features} features (delimited text, 3,200 entries); 400 to test on" in done.stdout
    assert "held-out R²" in done.stdout
    model = Lasso.load(tmp_path / "run" / "model.npz")
    large = {str(name) for name, value in zip(model.feature_names_in_, model.coef_, strict=True) if value > 3.0}
    assert large <= {f"word=w{word}" for word in range(5)}
    assert len(large) >= 4


PRICE = ("--target", "price")
TRAINING = ("train", "lasso", "--data", "train.csv", "--out", "x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "lasso", "--data", "no.csv"), "no.csv: "),
        (("predict", "lasso", "--data", "less.csv"), "there is no column 'rooms', which the training data have"),
        (
            ("predict", "lasso", "--data", "new.csv", "--unknown", "mean"),
            "--unknown does not apply to a Lasso: leave it out",
        ),
        (("predict", "lasso", "--data", "new.csv", "--no-clip"), "--clip does not apply to a Lasso"),
        (("evaluate", "lasso", "--data", "test.csv"), "name the column to predict with --target"),
        (("evaluate", "logistic", "--data", "test.csv", "--target", "kind"), "is not in the training data"),
        (("evaluate", "lasso", "--data", "test.csv", "--target", "sold"), "a finite number is needed"),
        (("evaluate", "lasso", "--data", "test.csv", *PRICE, "--at-least", 3), "--at-least does not apply to a"),
        (("recommend", "lasso"), "holds a Lasso: this command needs a model of MatrixFactorization, Bayesian"),
        ((*TRAINING, *PRICE), "--categorical wall=color"),
        ((*TRAINING, *PRICE, "--categorical", "no"), "no column 'no'"),
        ((*TRAINING, "--holdout", 0.1, "--test", "test.csv"), "--test and --holdout"),
        ((*TRAINING, *PRICE, "--holdout", 0.001, "--drop", "sold,kind,wall=color"), "of 300 samples are 0"),
        ((*TRAINING, "--cv", 3, "--alpha", 1.0), "leave out --alpha"),
        ((*TRAINING, *PRICE, "--drop", "sold,kind,wall=color", "--cv", 301), "--cv 301: 300 samples of a kind"),
        ((*TRAINING, *PRICE, "--categorical", "wall=color,price"), "cannot be --categorical as well"),
        ((*TRAINING, *PRICE, "--drop", '"no, never",sold'), "no column 'no, never' for --drop"),
        (("predict", "lasso", "--data", "none.csv"), "there is nothing to predict"),
    ],
)
def test_bad_input(strads: Strads, folder: Path, arguments: tuple[object, ...], message: str) -> None:
    (folder / "less.csv").write_text("area,wall=color\n1.0,red\n")
    (folder / "none.csv").write_text("area,rooms,wall=color\n")
    done = strads(*arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (folder / "x").exists()
