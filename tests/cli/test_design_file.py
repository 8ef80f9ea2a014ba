"""Samples in files: what only a look at the arrays tells."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from strads.cli.design_file import DesignOptions, Samples, read_samples
from strads.cli.targets import as_numbers, class_labels
from strads.errors import InputError


def test_columns_that_the_training_data_lack_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    (tmp_path / "test.svm").write_text("1 0:7 2:1 9:4\n1 1:3\n")
    train = read_samples(tmp_path / "train.svm", DesignOptions())
    test = read_samples(tmp_path / "test.svm", DesignOptions(), like=train.features)
    assert list(train.names) == [1, 2, 3]
    assert test.X.toarray().tolist() == [[0.0, 1.0, 0.0], [3.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("text", "categorical", "message"),
    [
        ("col,col=red,y\nb,1,1\nred,2,2\n", "col", "'red' of column 'col' becomes .*, which also is a column"),
        ("a,a=b,y\nb=c,c,1\n", "a,a=b", "'c' of column 'a=b' becomes .*, which also could be 'b=c' of column 'a'"),
        ("a=b,a,y\nc,3,1\n", "a=b", "'c' of column 'a=b' becomes .*, which also could be 'b=c' of column 'a'"),
    ],
)
def test_names_that_could_be_of_two_features(tmp_path: Path, text: str, categorical: str, message: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"data\.csv:1: {message}: rename one of the columns"):
        read_samples(path, DesignOptions(target="y", categorical=categorical))


def test_libsvm_is_recognised_after_samples_without_features(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("# two of three\n-1\n\n1 2:0.5\n")
    samples = read_samples(tmp_path / "train.txt", DesignOptions())
    assert (samples.kind, samples.X.shape, samples.y.tolist()) == ("LIBSVM", (2, 2), [-1.0, 1.0])
    (tmp_path / "numbers.txt").write_text("1\n2\n")
    with pytest.raises(InputError, match="is not LIBSVM"):
        read_samples(tmp_path / "numbers.txt", DesignOptions())


def test_a_shape_of_floats_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    scipy.sparse.save_npz(path, scipy.sparse.eye_array(4, format="csr"))
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"shape": np.array([4.0, 4.0])})
    with pytest.raises(InputError, match="the shape and positions are to be integers"):
        read_samples(path, DesignOptions(labels=tmp_path / "y.npy"))


def test_labels_with_nul_are_refused(tmp_path: Path) -> None:
    (tmp_path / "y.txt").write_text("1\n1\0\n")
    np.savez(tmp_path / "x.npz", X=np.eye(2))
    with pytest.raises(InputError, match=r"y\.txt:2: labels cannot have a NUL character"):
        read_samples(tmp_path / "x.npz", DesignOptions(labels=tmp_path / "y.txt"))


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_indices_that_point_outside_of_the_matrix(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.npz"
    scipy.sparse.save_npz(path, scipy.sparse.eye_array(4, format=kind))
    with np.load(path) as file:
        arrays = dict(file)
    arrays["row" if kind == "coo" else "indices"].flat[1] = 1_000_000
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"x\.npz: holds no sparse matrix .* or a damaged one"):
        read_samples(path, DesignOptions(labels=tmp_path / "y.npy"))


def test_blanks_around_labels_and_categories_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "adult.csv"
    path.write_text('age, work, income\n39, State-gov,  <=50K\n50,"State-gov ",<=50K \n38, Private\t, >50K\n')
    samples = read_samples(path, DesignOptions(target="income", categorical="work"))
    assert samples.y.tolist() == ["<=50K", "<=50K", ">50K"]
    assert list(samples.names) == ["age", "work=Private", "work=State-gov"]


def of_labels(folder: Path, *labels: str) -> Samples:
    """Samples of a CSV with these labels."""
    (folder / "a.csv").write_text("x,y\n" + "".join(f"1,{label}\n" for label in labels))
    return read_samples(folder / "a.csv", DesignOptions(target="y"))


def test_numbers_are_texts_if_known_labels_are(tmp_path: Path) -> None:
    known = class_labels(tmp_path / "a.csv", of_labels(tmp_path, "1", "x", "2.5"), None)
    found = class_labels(tmp_path / "a.csv", of_labels(tmp_path, "1", "2.5", "1"), known)
    assert found.tolist() == ["1", "2.5", "1"]


def test_python_spellings_are_no_numbers(tmp_path: Path) -> None:
    assert class_labels(tmp_path / "a.csv", of_labels(tmp_path, "1_0", "10"), None).tolist() == ["1_0", "10"]
    with pytest.raises(InputError, match=r"a\.csv:3: '1_0' is to be predicted: a finite number is needed"):
        as_numbers(of_labels(tmp_path, "10", "1_0"))


@pytest.mark.parametrize("label", ["1e300", "9007199254740993", "-1e15"])
def test_labels_that_would_be_rounded_are_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(InputError, match=rf"a\.csv:3: '{label}' is to be a label: whole numbers of up to 15 digits"):
        class_labels(tmp_path / "a.csv", of_labels(tmp_path, "2", label), None)


def test_samples_that_are_taken_keep_their_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((9, 2)), y=np.array([0, 1, 0, 1, 0, 1, 0, 1, 1.5]))
    samples = read_samples(tmp_path / "a.npz", DesignOptions())
    with pytest.raises(InputError, match=r"a\.npz: sample 9: '1\.5' is to be a label"):
        class_labels(tmp_path / "a.npz", samples.take(np.array([1, 4, 8])), None)
