"""Files that replace others: whole or not at all, with the permissions that the umask gives."""

import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from strads.cli.run_directory import RunDirectory
from strads.errors import InputError
from strads.models import (
    Lasso,
    LatentDirichletAllocation,
    LinearSVC,
    LogisticRegression,
    MatrixFactorization,
    MultinomialLogisticRegression,
    MultiTaskLasso,
    Word2Vec,
)
from strads.models.array_files import read_npy, read_npz
from strads.models.model_files import load_model, replacing, save_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")


@pytest.fixture(params=[0o077, 0o027, 0o022, 0o002, 0o000], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_model_file_has_the_permissions_of_new_files(umask, tmp_path):
    path = tmp_path / "model.npz"
    for number in range(2):  # a new one, and one that is replaced
        save_model(path, "Kind", {"number": number}, {"values": np.arange(3)})
        assert permissions(path) == 0o666 & ~umask
        assert load_model(path, "Kind")[0] == {"number": number}
        path.chmod(0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


def test_a_run_directory_has_the_permissions_of_new_files(umask, tmp_path):
    folder = tmp_path / "of" / "a run"
    with RunDirectory(folder, overwrite=False, texts=["topics.txt"]) as run:
        run.begin({})
        run.append({"epoch": 1})
        run.write("topics.txt", "a b c")
        save_model(run.model, "Kind", {}, {})
        run.finish("finished", {})
    found = {path.name: permissions(path) for path in folder.iterdir()}
    assert found == dict.fromkeys(("run.json", "metrics.jsonl", "topics.txt", "model.npz"), 0o666 & ~umask)
    assert permissions(folder) == 0o777 & ~umask


def test_what_fails_leaves_the_earlier_file_and_nothing_else(tmp_path):
    path = tmp_path / "text"
    path.write_text("earlier")

    def be_interrupted() -> None:
        with replacing(path, encoding="utf-8") as file:
            file.write("later")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        be_interrupted()
    assert path.read_text() == "earlier"
    assert [entry.name for entry in tmp_path.iterdir()] == ["text"]


def test_unfinished_files_cannot_be_foreseen(tmp_path, monkeypatch):
    """Nobody else can have put a link there: what is at that name is never overwritten."""
    monkeypatch.setattr("strads.models.model_files.secrets.token_hex", lambda count: "foreseen")
    other, planted = tmp_path / "other", tmp_path / ".text-foreseen"
    other.write_text("other")
    planted.symlink_to(other)
    with pytest.raises(FileExistsError), replacing(tmp_path / "text") as file:
        file.write(b"text")
    assert other.read_text() == "other"
    assert planted.is_symlink()


def rewrite(path: Path, **changes: np.ndarray) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **(arrays | changes))


COUNTS = np.array([[1, 2, 0], [3, 0, 4]])


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("alpha", np.array([0.5, np.nan]), "alpha: its values are nan"),
        ("alpha", np.array([[0.5, 0.5]]), "alpha: it has the shape (1, 2)"),
        ("alpha", np.array(["a", "b"]), "alpha: it is of dtype <U1"),
        ("topics", np.array([0, 1, 0, 2], np.int32), "topics: its values are 0 … 2"),
        ("topics", np.array([0, 1, 0, -1], np.int32), "topics: its values are -1 … 1"),
        ("counts", np.array([1, 2, 3], np.int32), "counts: it has the shape (3,), where others have 4 counts"),
        ("counts", np.array([0, 2, 3, 1], np.int32), "counts: its values are 0 … 3"),
        ("offsets", np.array([0, 3, 2, 4], np.int32), "offsets: its values do not increase from 0 to 4"),
        ("offsets", np.array([0, 4], np.int32), "offsets: it is of 1 rows, where others have 3 n_words"),
        ("vocabulary", np.zeros(3), "vocabulary: it is of dtype float64"),
    ],
)
def test_what_a_model_does_not_declare_is_refused(tmp_path, name, values, problem):
    path = tmp_path / "model.npz"
    LatentDirichletAllocation(2, max_iter=1).fit(COUNTS).save(path)
    sound = {"topics": np.array([0, 1, 0, 1], np.int32), "counts": np.ones(4, np.int32)}
    rewrite(path, **(sound | {"offsets": np.array([0, 2, 3, 4], np.int32), name: values}))
    with pytest.raises(InputError, match="is incomplete or damaged") as caught:
        LatentDirichletAllocation.load(path)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "model", [LatentDirichletAllocation(2, max_iter=1), Word2Vec(4, min_count=1, epochs=1)], ids=repr
)
def test_words_nested_deeper_than_pythons_stack_are_refused(tmp_path, model):
    path = tmp_path / "model.npz"
    model.fit(["a cat", "a dog"]).save(path)
    rewrite(path, vocabulary=np.frombuffer(b"[" * 100_000, np.uint8))
    with pytest.raises(InputError, match="is incomplete or damaged"):
        type(model).load(path)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
@pytest.mark.parametrize("number", [np.float32, np.float64, np.int64, np.int8, int])
def test_parameters_may_hold_numbers_of_any_type(tmp_path, kind, number):
    path = tmp_path / "model.npz"
    model = LatentDirichletAllocation(2, max_iter=1, doc_topic_prior=kind([number(1), number(2)])).fit(COUNTS)
    model.save(path)
    found = LatentDirichletAllocation.load(path)
    assert found.doc_topic_prior == [1, 2]
    assert found.digest() == model.digest()
    found.partial_fit(COUNTS)


def test_a_parameter_may_be_a_fraction(tmp_path):
    path = tmp_path / "model.npz"
    Lasso(Fraction(1, 4)).fit(np.eye(4), [0, 1, 0, 1]).save(path)
    assert Lasso.load(path).alpha == 0.25


def test_parameters_of_a_file_are_checked_as_fit_checks_them(tmp_path):
    path = tmp_path / "model.npz"
    LogisticRegression().fit(np.eye(4), [0, 1, 0, 1]).save(path)
    with np.load(path) as file:
        header = str(file["header"])
    rewrite(path, header=np.array(header.replace('"max_iter": ', '"max_iter": -')))
    with pytest.raises(InputError, match="max_iter=-"):
        LogisticRegression.load(path)


def test_numbers_of_a_file_have_64_bits(tmp_path):
    path, damaged = tmp_path / "model.npz", tmp_path / "damaged.npz"
    rng = np.random.default_rng(0)
    MatrixFactorization(2, max_iter=1).fit(tuple(rng.integers(0, 9, (2, 50))), rng.random(50)).save(path)
    with np.load(path) as file:
        text = str(file["header"])
    header = json.loads(text)["parameters"]
    assert header["calls"] == 1
    shutil.copy(path, damaged)
    for name, there in [("calls", "1"), ("n_jobs", "null"), ("max_iter", "1"), ("rank", "2"), ("seed", "0")]:
        changed = text.replace(f'"{name}": {there}', f'"{name}": {2**70}')
        assert changed != text
        rewrite(damaged, header=np.array(changed))
        with pytest.raises(InputError, match=rf"{name}.* {2**70}|{name}={2**70}"):
            MatrixFactorization.load(damaged)


@pytest.mark.parametrize("kind", [Lasso, LogisticRegression, MultiTaskLasso])
def test_coefficients_are_as_many_as_the_features(tmp_path, kind):
    path = tmp_path / "model.npz"
    y = [[0, 1], [1, 0]] * 2 if kind is MultiTaskLasso else [0, 1, 0, 1]
    model = kind().fit(np.eye(4), y)
    model.save(path)
    rewrite(path, coef=model.coef_[..., :3])
    with pytest.raises(InputError, match=r"coef: it has the shape .*3.*, where others have 4 features"):
        kind.load(path)


def test_names_are_as_many_as_the_features(tmp_path):
    path = tmp_path / "model.npz"
    Lasso().fit(np.eye(4), [0, 1, 0, 1]).save(path)
    rewrite(path, feature_names_in=np.array(["a", "b", "c"]))
    with pytest.raises(InputError, match=r"feature_names_in: it has the shape \(3,\), where others have 4 features"):
        Lasso.load(path)


def test_topics_without_their_words_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    LatentDirichletAllocation(2, max_iter=1).fit(["a cat", "a dog"]).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file if name != "vocabulary"}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="the vocabulary is missing"):
        LatentDirichletAllocation.load(path)


@pytest.mark.parametrize("kind", [LinearSVC, LogisticRegression, MultinomialLogisticRegression])
def test_classifiers_of_two_classes_have_as_many_rows_as_fit_gives_them(tmp_path, kind):
    path = tmp_path / "model.npz"
    model = kind().fit(np.eye(4), [0, 1, 0, 1])
    rows = 3 - len(model.coef_)
    model.save(path)
    rewrite(path, coef=np.ones((rows, 4)), intercept=np.ones(rows))
    with pytest.raises(InputError, match=rf"coefficients of shape \({rows}, 4\) of 2 classes"):
        kind.load(path)


def test_arrays_have_what_their_headers_announce(tmp_path):
    path = tmp_path / "a.npy"
    for values in (np.arange(6.0).reshape(2, 3), np.ones((2, 3), order="F"), np.array("text"), np.zeros((0, 3))):
        np.save(path, values)
        found = read_npy(path)
        assert (found.dtype, found.shape, found.tolist()) == (values.dtype, values.shape, values.tolist())
    np.save(path, np.zeros((2, 3)))
    path.write_bytes(path.read_bytes().replace(b"(2, 3)", b"(9, 3)"))
    with pytest.raises(InputError, match=r"a\.npy: .*48 bytes do not hold an array of shape \(9, 3\)"):
        read_npy(path)


def test_any_damage_of_an_archive_is_an_input_error(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.random.default_rng(0).normal(size=100), b=np.array(["x"]))
    sound = path.read_bytes()
    for place in range(0, len(sound), 3):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        with suppress(InputError):
            read_npz(path)
