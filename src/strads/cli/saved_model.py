"""A saved model that a command is given: a model file, or the directory of a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strads import models
from strads.cli.run_directory import MODEL
from strads.errors import InputError
from strads.models.model_files import model_kind

RECOMMENDERS = ("MatrixFactorization", "BayesianPersonalizedRanking")
LINEAR = ("Lasso", "ElasticNet", "LogisticRegression", "MultinomialLogisticRegression", "LinearSVC", "PoissonRegressor")
OF_SEVERAL_OUTPUTS = ("MultiTaskLasso", "MultiTaskElasticNet")
TOPICS = ("LatentDirichletAllocation",)


def kind_of_model(path: Path, needed: Sequence[str]) -> tuple[Path, str]:
    """Return the model file and the class of its model.

    Raises
    ------
    InputError
        If there is none, or one of a class that is not needed.
    """
    file = path / MODEL if path.is_dir() else path
    kind = model_kind(file)
    if kind not in needed:
        raise InputError(f"{file}: holds a {kind}: this command needs a model of {', '.join(needed)}")
    return file, kind


def load_model(path: Path, needed: Sequence[str]) -> Any:
    """Return the model in a file, or in the directory of a run; errors as of `kind_of_model`."""
    file, kind = kind_of_model(path, needed)
    return getattr(models, kind).load(file)
