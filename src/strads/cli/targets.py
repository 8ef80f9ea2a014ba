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
from strads.dds.csv_dialect import is_number
from strads.errors import InputError

_TOO_LARGE = 1e15  # for a label: from 2⁵³ on different ones would be the same float
SCORE_NAMES = {"r2": "R²", "rmse": "RMSE", "auc": "AUC", "accuracy": "accuracy", "log_loss": "log loss"}


def as_numbers(samples: Samples) -> NDArray[np.float64]:
    """Return targets as finite numbers.

    Raises
    ------
    InputError
        For another one; names its file and line.
    """
    numbers = _numbers(samples.y)
    if numbers is None:
        bad = next(row for row, text in enumerate(samples.y) if not is_number(str(text)))
        raise InputError(
            f"{samples.where(bad)}: {str(samples.y[bad])!r:.60} is to be predicted: a finite number is needed; for "
            "classes there is strads train logistic"
        )
    return numbers


def class_labels(path: Path, samples: Samples, known: NDArray[Any] | None) -> NDArray[Any]:
    """Return labels of two classes or more or, if the `known` ones are given, only of these.

    They are integers if all are numbers, else as they are in the file, or as the known ones are.

    Raises
    ------
    InputError
        For others, and for numbers that are not whole; names the file, and the line of such a number.
    """
    y, numbers = samples.y, _numbers(samples.y)
    are_texts = known is not None and known.dtype.kind == "U"
    if numbers is not None and not (are_texts and y.dtype.kind == "U"):
        is_whole = (numbers == np.rint(numbers)) & (np.abs(numbers) < _TOO_LARGE)
        if not is_whole.all():
            bad = int(np.argmin(is_whole))
            raise InputError(
                f"{samples.where(bad)}: {str(samples.y[bad])!r:.60} is to be a label: whole numbers of up to 15 digits "
                "or texts are needed; for numbers there is strads train lasso"
            )
        y = numbers.astype(np.int64)
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


def _numbers(y: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        if y.dtype.kind in "US" and not all(map(is_number, y.astype(str).tolist())):  # NumPy takes 1_0 for 10
            return None
        return np.asarray(y, dtype=np.float64)
    except ValueError:
        return None
