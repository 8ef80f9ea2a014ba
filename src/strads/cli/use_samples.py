"""Predictions for samples in a file by a saved linear model, and how good they are."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cli.design_file import DesignOptions, Features, Samples, read_samples
from strads.cli.targets import as_numbers, class_labels, nameless, scores


def predictions(model: Any, path: Path) -> tuple[dict[str, NDArray[Any]], str]:
    """Return a table of predictions, and a note on what could not be taken into account.

    Its columns are the number of the sample, from 1; the prediction, or prediction_1 and so on; and for classes that
    have one the probability of each.

    Raises
    ------
    InputError
        For a file that cannot be read, or without a feature of the model.
    """
    samples = read_samples(path, DesignOptions(), _features_of(model), labelled=False)
    with nameless():
        found = model.predict(samples.X)
        table = {"sample": np.arange(1, samples.X.shape[0] + 1)}
        if found.ndim == 1:
            table["prediction"] = found
        else:  # several numbers for each sample
            table |= {f"prediction_{k + 1}": found[:, k] for k in range(found.shape[1])}
        if hasattr(model, "predict_proba"):
            found = model.predict_proba(samples.X)
            table |= {f"probability_{label}": found[:, k] for k, label in enumerate(model.classes_.tolist())}
    return table, samples.note


def quality(model: Any, path: Path, options: DesignOptions) -> tuple[dict[str, float], str]:
    """Return the scores of a model on samples with known targets, and a note as `predictions` does.

    Raises
    ------
    InputError
        For a file that cannot be read, or without a feature of the model; for targets that it cannot predict.
    """
    samples = read_samples(path, options, _features_of(model))
    return scores(model, samples.X, _targets(model, path, samples)), samples.note


def _targets(model: Any, path: Path, samples: Samples) -> NDArray[Any]:
    if not hasattr(model, "classes_"):
        return as_numbers(samples)
    return class_labels(path, samples, model.classes_)


def _features_of(model: Any) -> Features:
    """Return the features of a model; without names they are numbered from 1."""
    names = getattr(model, "feature_names_in_", None)
    return Features(range(1, model.n_features_in_ + 1) if names is None else [str(name) for name in names])
