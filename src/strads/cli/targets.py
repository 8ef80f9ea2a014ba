"""What is to be predicted of samples: numbers or labels; and how well a model predicts it."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score, roc_auc_score, root_mean_squared_error

from strads.cli.design_file import Samples
from strads.errors import InputError

SCORE_NAMES = {"r2": "R²", "rmse": "RMSE", "auc": "AUC", "accuracy": "accuracy", "log_loss": "log loss"}


def as_numbers(path: Path, samples: Samples) -> NDArray[np.float64]:
    """Return targets as finite numbers.

    Raises
    ------
    InputError
        For another one; names its file and line.
    """
    numbers = _numbers(samples.y)
    if numbers is None or not np.isfinite(numbers).all():
        bad = next(row for row, text in enumerate(samples.y) if not _is_finite(text))
        raise InputError(
            f"{_where(path, samples, bad)}: {str(samples.y[bad])!r:.60} is to be predicted: a finite number is "
            "needed; for classes there is strads train logistic"
        )
    return numbers


def _as_labels(samples: Samples) -> NDArray[Any]:
    """Return labels as integers if all are, else as they are in the file."""
    numbers = _numbers(samples.y)
    if numbers is None:
        return samples.y
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if whole else numbers


def class_labels(path: Path, samples: Samples, known: NDArray[Any] | None) -> NDArray[Any]:
    """Return labels of two classes or more or, if the `known` ones are given, only of these.

    Raises
    ------
    InputError
        For others, and for numbers that are not whole; names the file, and the line of such a number.
    """
    y = _as_labels(samples)
    if y.dtype.kind == "f":
        bad = int(np.argmax(~(y == np.rint(y))))
        raise InputError(
            f"{_where(path, samples, bad)}: {str(samples.y[bad])!r:.60} is to be a label: whole numbers or texts are "
            "needed; for numbers there is strads train lasso"
        )
    labels = set(y.tolist())
    if known is None and len(labels) < 2:
        raise InputError(f"{path}: only one label, {y[0]!s}: give samples of two classes or more")
    if known is not None and (unknown := labels - set(known.tolist())):
        raise InputError(f"{path}: the label {min(unknown, key=str)!r} is not in the training data")
    return y


def scores(model: Any, X: Any, y: NDArray[Any]) -> dict[str, float]:
    """Return how well a model predicts: r2 and rmse of numbers, auc and accuracy of two classes, else also log_loss."""
    with nameless():
        if not hasattr(model, "classes_"):
            predicted = model.predict(X)
            r2 = float(r2_score(y, predicted)) if len(y) > 1 else math.nan
            return {"r2": r2, "rmse": float(root_mean_squared_error(y, predicted))}
        if len(model.classes_) == 2 and np.ndim(margins := model.decision_function(X)) == 1:
            second = y == model.classes_[1]
            auc = float(roc_auc_score(second, margins)) if 0 < second.sum() < len(y) else math.nan
            return {"auc": auc, "accuracy": float(np.mean((margins > 0) == second))}
        logarithms = model.predict_log_proba(X)
    places = np.searchsorted(model.classes_, y)
    return {
        "accuracy": float(np.mean(logarithms.argmax(1) == places)),
        "log_loss": -float(np.mean(logarithms[np.arange(len(places)), places])),
    }


@contextmanager
def nameless() -> Iterator[None]:
    """Context in which models take matrices without names of columns, which have been compared already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def _where(path: Path, samples: Samples, row: int) -> str:
    return f"{path}: sample {row + 1}" if samples.where is None else samples.where(row)


def _numbers(y: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
