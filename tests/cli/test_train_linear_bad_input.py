"""Wrong input and options of linear models end in one readable line, exit code 2, and nothing on disk."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from outputs import refusal

Strads = Callable[..., subprocess.CompletedProcess[str]]
GOOD = "1 1:0.5 3:2\n-1 2:1\n1 1:1 2:2\n"
MATRIX = "%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 0.5\n"


def refused(strads: Strads, folder: Path, model: str, *arguments: object) -> str:
    """What standard error says."""
    out = folder / "out"
    return refusal(strads("train", model, "--out", out, *arguments, cwd=folder), out)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.svm", "1 1:2\n1 1:x\n", "a.svm:2: '1:x': give number:value"),
        ("a.svm", "1 1:2\n\nx 1:2\n", "a.svm:3: the label 'x' is not a finite number"),
        ("a.svm", "1 1:2\n# nothing\n1 1:nan\n", "a.svm:3: '1:nan'"),
        ("a.svm", "1 1:2\n1 3:1 2:1\n", "a.svm:2: column 2 comes after column 3"),
        ("a.svm", "1 1:2\n1 2\n", "a.svm:2: '2': give number:value"),
        ("a.mtx", MATRIX + "2 x 1\n", "a.mtx:4: column 'column' (field 2): expected an integer (int64), found 'x'"),
        ("a.mtx", MATRIX + "9 1 1\n", "a.mtx:4: row 9 is outside 1 … 3, which line 2 says"),
        (
            "a.mtx",
            MATRIX + "2 1 nan\n",
            "a.mtx:4: column 'value' (field 3): expected a finite number",
        ),
        (
            "a.mtx",
            MATRIX.replace("3 2", "4 2") + "2 1 1\n",
            "4 samples, but y.txt has the shape (3,)",
        ),
        ("a.csv", "", "the file is empty"),
        ("a.csv", "a,y\n1,2\n3\n", "a.csv:3: 1 fields, but the header has 2 names"),
        ("a.csv", "a,y\n1,2\n\nx,4\n", "a.csv:4: column 'a' is 'x'"),
        ("a.csv", "a,y\n1,2\n,4\n", "a.csv:3: column 'a' is ''"),
        ("a.csv", "a,y\n1,2\ninf,4\n", "a.csv:3: column 'a' is 'inf'"),
        ("a.csv", "a,y\n1,2\n3,\n", "a.csv:3: column 'y', which is to be predicted, is empty"),
        ("a.csv", "a,y\n1,2\n3,many\n", "a.csv:3: 'many' is to be predicted: a finite number is needed"),
        ("a.csv", "a,y\n1,2\n3,nan\n", "a.csv:3: nan is to be predicted"),
        ("a.csv", 'a,"y\n1,2\n', "a.csv:1: a quote is not closed"),
        ("a.csv", 'a,y\n1,2\n1, "2"\n', "a.csv:3: a quote after a blank does not enclose a field"),
        ("a.csv", 'a,y\n1,"2\n3,4"\n', "a.csv:2: a quote is not closed"),
        ("a.csv", "a,y\r1,2\r3,4\r", "a.csv: the lines end in CR alone"),
        ("a.csv", "a,y\n1,2\n3," + 2000 * "4" + "\n", "a.csv:3: 'y' has 2,000 characters, too many for a label"),
        ("a.svm", "1 1:2\n1 2000000000:1\n", "a.svm:2: 2,000,000,001 columns are far beyond what 2 entries can fill"),
        ("a.svm", "1 1:2\n1 4294967296:1\n", "a.svm:2: column 4294967296 is too large: 2,147,483,647 is the last"),
        ("a.csv", ",a,y\n0,1,2\n1,3,4\n", "a.csv:1: column 1 has no name: give it one, or remove the column"),
        ("a.csv", "a,y\n1,2\n3,\0\n", "a.csv:3: 'y' has a NUL character, which labels cannot have"),
        ("a.svm", "1 1_0:2\n", "a.svm:1: '1_0:2': give number:value"),
        ("a.mtx", MATRIX.replace("3 2 2", "3 2 x"), "a.mtx:2: expected the numbers of rows, columns and entries"),
        ("a.mtx", MATRIX.replace("3 2 2", "3 2 900000000"), "a.mtx:2: 900,000,000 entries are announced, but 1 follow"),
        ("a.mtx", MATRIX.replace("3 2 2", "3 900000000 1"), "a.mtx:2: 900,000,000 columns are far beyond"),
        ("a.mtx", MATRIX.replace("real", "reel"), "a.mtx:1: expected real, double, integer"),
        ("a.mtx", MATRIX + "1 1 2\n1 2 3\n", "a.mtx:5: there are more entries than the 2 that line 2 announces"),
        ("a.mtx", MATRIX, "a.mtx:2: 2 entries are announced, but 1 follow"),
        ("a.csv", "y,x\n1,2\n#,3\n", "a.csv:3: '#' is to be predicted: a finite number is needed"),
        ("a.csv", "a,b\n1,2\n", "a.csv:1: there is no column 'y'"),
        ("a.csv", "a,a,y\n1,2,3\n", "two columns are called 'a'"),
        ("a.csv", "y,z\n", "there is nothing to learn from"),
        ("a.csv", "1,2\n3,4\n", "a.csv:1: numbers stand where a header"),
        ("a.csv", "nothing of the kind\n", "a.csv:1: is not LIBSVM"),
    ],
)
def test_malformed_files(strads: Strads, tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "y.txt").write_text("1\n2\n3\n")
    options = {".csv": ("--target", "y"), ".mtx": ("--labels", "y.txt")}.get(name[1:], ())
    assert problem in refused(strads, tmp_path, "lasso", "--data", name, *options)


def test_fractions_are_no_labels(strads: Strads, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,y\n1,2\n3,4.5\n5,2\n")
    found = refused(strads, tmp_path, "logistic", "--data", "a.csv", "--target", "y")
    assert "a.csv:3: '4.5' is to be a label" in found


def test_malformed_arrays(strads: Strads, tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", X=np.array([[object()]]), y=np.zeros(1))
    assert "arrays of Python objects are not read" in refused(strads, tmp_path, "lasso", "--data", "objects.npz")
    np.savez(tmp_path / "other.npz", A=np.zeros((2, 2)))
    assert "holds A: give the arrays X and y" in refused(strads, tmp_path, "lasso", "--data", "other.npz")
    np.savez(tmp_path / "flat.npz", X=np.zeros(2), y=np.zeros(2))
    assert "X has 1 dimensions" in refused(strads, tmp_path, "lasso", "--data", "flat.npz")
    np.savez(tmp_path / "nan.npz", X=np.array([[1.0, 2.0], [3.0, np.nan]]), y=np.zeros(2))
    assert "nan.npz: row 2, column 2: nan" in refused(strads, tmp_path, "lasso", "--data", "nan.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04....")
    assert "broken.npz: cannot be read as npz" in refused(strads, tmp_path, "lasso", "--data", "broken.npz")


@pytest.mark.parametrize(
    ("model", "options", "problem"),
    [
        ("lasso", ("--alpha", 0), "--alpha"),
        ("lasso", ("--alpha", 1, "--path", 5), "--alpha and --path both say how strong"),
        ("lasso", ("--l1-ratio", 1.5), "--l1-ratio"),
        ("lasso", ("--path", 1), "--path"),
        ("lasso", ("--tol", -1), "--tol"),
        ("lasso", ("--schedule", "fast"), "--schedule"),
        ("lasso", ("--concurrency", 4), "--concurrency does not apply to the schedule working_set: leave it out"),
        ("logistic", ("--concurrency", 8, "--schedule", "working_set"), "--concurrency does not apply to the schedule"),
        ("lasso", ("--target", "y"), "leave out --target"),
        ("lasso", ("--names", "names.txt"), "names.txt: has 2 names, but there are 3 columns"),
        ("lasso", ("--test", "nowhere.svm"), "nowhere.svm: no such file"),
        ("lasso", ("--labels", "names.txt"), "good.svm: LIBSVM files have the label first: leave out names.txt"),
        ("lasso", ("--test", "good.mtx"), "good.mtx: MatrixMarket files hold X alone: give a file with what is"),
        ("lasso", ("--test-labels", "names.txt"), "names.txt: give the samples that these labels are of as --test"),
        ("logistic", ("--C", -1), "--C"),
        ("logistic", ("--C", 1, "--alpha-ratio", 0.5), "--C and --alpha-ratio"),
        ("logistic", ("--test", "other.svm"), "the label 7 is not in the training data"),
        ("logistic", ("--data", "other.svm", "--path", 5), "other.svm: 3 labels (-1, 1, 7): --path is for two classes"),
        ("logistic", ("--data", "other.svm", "--cv", 2), "--cv is for two classes"),
        ("logistic", ("--data", "other.svm", "--standardize"), "--standardize is for two classes"),
        ("logistic", ("--data", "one.svm"), "one.svm: only one label, 1: give samples of two classes or more"),
        ("lasso", ("--data", "one.svm"), "no column is correlated with"),
    ],
)
def test_wrong_options(strads: Strads, tmp_path: Path, model: str, options: tuple[object, ...], problem: str) -> None:
    (tmp_path / "good.svm").write_text(GOOD)
    (tmp_path / "good.mtx").write_text(MATRIX + "2 1 1\n")
    (tmp_path / "other.svm").write_text("7 1:1\n1 2:1\n-1 1:1\n")
    (tmp_path / "one.svm").write_text("1 1:1\n1 2:1\n")
    (tmp_path / "names.txt").write_text("a\nb\n")
    given = options if "--data" in options else ("--data", "good.svm", *options)
    assert problem in refused(strads, tmp_path, model, *given)
