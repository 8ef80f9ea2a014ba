"""Cases by their seed: a damaged file, a damaged command line, or a damaged model file."""

import contextlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
import scipy.sparse

from . import damage
from .careful import MalformedError
from .subjects import Subject, subjects

FILES, ARGUMENTS, MODELS = "files", "arguments", "models"


@dataclass(frozen=True)
class Case:
    """Something to run in a folder of its own.

    Attributes
    ----------
    kind
        Of the three.
    name
        Subject, or class of the model.
    command
        Arguments of `strads`; of a model none.
    files
        Contents by name; the first is the damaged one.
    subject
        What it was made of, for a file.
    """

    kind: str
    name: str
    command: tuple[str, ...]
    files: dict[str, bytes]
    subject: Subject | None = None


@cache
def all_subjects() -> list[Subject]:
    return subjects()


def make(seed: int) -> Case:
    """Return the case of a seed; of four, two damage files."""
    rng = Random(seed)
    kind = (FILES, FILES, ARGUMENTS, MODELS)[seed % 4]
    if kind == MODELS:
        name, content = rng.choice(sorted(models().items()))
        how = rng.choice((damage.arrays, damage.arrays, damage.arrays, damage.member, damage.binary))
        return Case(kind, name, (), {"model.npz": how(content, rng)})
    subject = rng.choice(all_subjects())
    if kind == ARGUMENTS:
        return Case(kind, subject.name, _arguments(subject, rng), subject.files)
    content = rng.choice(subject.damages)(subject.files[subject.damaged], rng)
    files = {subject.damaged: content} | {name: each for name, each in subject.files.items() if name != subject.damaged}
    return Case(kind, subject.name, ("train", *subject.command, "--out", "out"), files, subject)


def _arguments(subject: Subject, rng: Random) -> tuple[str, ...]:
    """The command with options of other values, which are all wrong or small."""
    command = ["train", *subject.command, "--out", "out"]
    for _ in range(rng.choice((1, 1, 2, 4))):
        name, choices, takes_value = rng.choice(options()[subject.command[0]])
        if not takes_value:
            command.append(name)
            continue
        value = rng.choice([*damage.TOKENS, *choices, *choices, *os.listdir("/"), "r.csv", ".", "out", "x" * 5000])
        if name in _ITERATIONS and value.lstrip("+").isdigit() and int(value) < 2**31:
            value = "2"  # valid, and would take too long
        command += [name, value] if rng.random() < 0.9 else [f"{name}={value}"]
    if rng.random() < 0.1:
        del command[rng.randrange(2, len(command))]
    return tuple(argument.replace("\0", "") for argument in command)


_ITERATIONS = {
    "--epochs",
    "--iterations",
    "--max-iter",
    "--rank",
    "--factors",
    "--dimensions",
    "--vector-size",
    "--path",
}
_ITERATIONS |= {"--topics", "--nodes", "--threads", "--negative", "--n-negatives", "--concurrency"}


@cache
def options() -> dict[str, list[tuple[str, list[str], bool]]]:
    """Options of each command: name, possible values that are known, and whether it takes one."""
    import typer

    from strads.cli import app

    train = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    found = {}
    for name, command in train.commands.items():
        kept = [each for each in command.loaded().params if each.name not in ("help", "debug", "backend", "address")]
        found[name] = [
            (
                option,
                [value for value in get_args(each.bare_type()) if isinstance(value, str)] or ["0.1", "2"],
                not each.is_flag,
            )
            for each in kept
            for option in each.opts
        ]
    return found


@cache
def models() -> dict[str, bytes]:
    """Small fitted models, as files."""
    import tempfile
    import warnings

    from strads.models import (
        BayesianPersonalizedRanking,
        ElasticNet,
        LatentDirichletAllocation,
        LinearSVC,
        LogisticRegression,
        MatrixFactorization,
        MultinomialLogisticRegression,
        TransE,
        Word2Vec,
    )

    fitted = {
        MatrixFactorization(2, max_iter=2): (scipy.sparse.csr_array([[1, 2, 0], [3, 0, 4.0]]),),
        BayesianPersonalizedRanking(2, iterations=2): (scipy.sparse.csr_array([[1, 1, 0], [0, 1, 1]]),),
        LatentDirichletAllocation(2, max_iter=2): (np.array([[1, 2, 0], [3, 0, 4]]),),
        Word2Vec(vector_size=3, epochs=1, min_count=1): ([["a", "b", "c"], ["b", "a", "d"]],),
        TransE(3, max_iter=2): (TRIPLES,),
    }
    X, y = np.array([[1.0, 0, 2], [0, 1, 1], [3, 1, 0], [1, 2, 2]]), np.array([0, 1, 0, 1])
    for model in (ElasticNet(0.1), LogisticRegression(), LinearSVC(), MultinomialLogisticRegression()):
        fitted[model] = (X, y)
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.npz"
        for model, data in fitted.items():
            model.fit(*data)
            model.save(path)
            found[type(model).__name__] = path.read_bytes()
    return found


TRIPLES = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a")]


def use(name: str, path: Path) -> None:
    """Load a model and do with it what can be done; only errors of strads and ValueErrors are allowed."""
    import strads.models

    model = getattr(strads.models, name).load(path)
    calls: dict[str, list[tuple[Any, ...]]] = {
        "predict": [(np.ones((2, model.n_features_in_)),)]
        if hasattr(model, "coef_")
        else [(np.array([[0, 1], [1, 0]]),)],
        "predict_proba": [(np.ones((2, getattr(model, "n_features_in_", 3))),)],
        "recommend": [(0,)],
        "similar_items": [(0,)],
        "transform": [(np.ones((2, getattr(model, "n_features_in_", 3)), int),)],
        "perplexity": [(np.ones((2, getattr(model, "n_features_in_", 3)), int),)],
        "top_words": [(3,)],
        "most_similar": [("a",)],
        "evaluate": [(TRIPLES, TRIPLES)],
        "digest": [()],
    }
    if name in ("TransE", "Word2Vec"):
        del calls["predict"], calls["transform"]
    for method, each in calls.items():
        for arguments in each:
            if hasattr(model, method):
                with contextlib.suppress(
                    strads.StradsError, ValueError, KeyError if method == "most_similar" else ValueError
                ):
                    getattr(model, method)(*arguments)
    partial = {
        "MatrixFactorization": np.array([[0, 1, 2.0], [2, 2, 1.0]]),
        "BayesianPersonalizedRanking": np.array([[0, 1]]),
    }
    if name in partial:
        with contextlib.suppress(strads.StradsError, ValueError):
            model.partial_fit(partial[name])


def compare(case: Case, folder: Path) -> None:
    """Raise AssertionError if strads reads the damaged file otherwise than the second reader, which may refuse it."""
    import strads

    assert case.subject is not None
    if case.subject.compare is None:
        return
    try:
        case.subject.compare(folder / case.subject.damaged, case.files[case.subject.damaged])
    except MalformedError as error:
        raise AssertionError(f"the file is read, though {error}") from error
    except strads.StradsError:
        return
