"""Labels of classifiers: of any type that can be sorted and saved; others are refused by name."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from strads import ArgumentError, InputError
from strads.models import LinearSVC, LogisticRegression, MultinomialLogisticRegression

X = np.random.default_rng(0).normal(size=(30, 3))
DAYS = ["2020-01-01", "2021-01-01", "2022-01-01"]
CLASSIFIERS = [MultinomialLogisticRegression, LogisticRegression, LinearSVC]


def repeated(*labels, dtype=object):
    return np.array([labels[k % len(labels)] for k in range(30)], dtype)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (repeated(*DAYS[:2], dtype="M8[D]"), np.array(DAYS[:2], "M8[D]")),
        (repeated(3, 1, dtype="m8[s]"), np.array([1, 3], "m8[s]")),
        (pd.Series(pd.to_datetime(DAYS[:2] * 15)), np.array(DAYS[:2], "M8[ns]")),
        (repeated(3, 1), np.array([1, 3])),
        (repeated(np.int64(3), 2**63), np.array([3, 2**63], np.uint64)),
        (repeated(True, False), np.array([False, True])),
        (pd.Series([3, 1] * 15, dtype="Int64"), np.array([1, 3])),
        (pd.Series([True, False] * 15, dtype="boolean"), np.array([False, True])),
        (pd.Series(["b", "a"] * 15, dtype="string"), np.array(["a", "b"])),
        ([1, 2.0] * 15, np.array([1.0, 2.0])),
    ],
)
def test_labels_are_saved_as_they_are(tmp_path, classifier, y, classes):
    model = classifier().fit(X, y)
    model.save(tmp_path / "model.npz")
    loaded = classifier.load(tmp_path / "model.npz")
    for each in (model, loaded):
        np.testing.assert_array_equal(each.classes_, classes)
        assert each.classes_.dtype.kind == classes.dtype.kind or each.classes_.dtype == object
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (repeated("a", 1), ArgumentError, "entry 0 is a string, 'a', and entry 1 a number, 1"),
        (["a", 1] * 15, ArgumentError, "entry 0 is a string, 'a', and entry 1 a number, 1"),
        (repeated(True, 2), ArgumentError, "entry 0 is a boolean, True, and entry 1 a number, 2"),
        (repeated("a", "b", pd.NA), InputError, "entry 2 is missing"),
        (repeated("a", None), InputError, "entry 1 is missing"),
        (repeated("a", float("nan")), InputError, "entry 1 is missing"),
        (repeated("2020", "NaT", dtype="M8[D]"), InputError, "entry 1 is missing"),
        (pd.Series(["a", pd.NA] * 15, dtype="string"), InputError, "entry 1 is missing"),
        (pd.Series([1, pd.NA] * 15, dtype="boolean"), InputError, "entry 1 is missing"),
        (repeated(Decimal(1), Decimal(2)), ArgumentError, r"labels of type Decimal.*y\.astype"),
        (repeated(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)), ArgumentError, "labels of type date"),
        (repeated(2**70, 1), ArgumentError, "beyond 64-bit integers"),
        (repeated("a", "a\0"), InputError, "NUL"),
    ],
)
def test_labels_that_cannot_be(y, error, message):
    for classifier in CLASSIFIERS:
        with pytest.raises(error, match=message):
            classifier().fit(X, y)


def test_factors_of_dates_are_refused():
    y = repeated(*DAYS, dtype="M8[D]")
    with pytest.raises(ArgumentError, match="sample_weight"):
        MultinomialLogisticRegression(class_weight={y[0]: 2.0}).fit(X, y)
