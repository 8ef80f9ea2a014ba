"""`strads predict`, `evaluate`, `recommend`, `similar`: what a saved model is used for."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from strads.cli.interactions_options import Reading
from strads.cli.saved_model import LINEAR, RECOMMENDERS, kind_of_model, load_model
from strads.cli.table_output import check_output, write_table
from strads.cli.terminal import standard_output
from strads.cli.train_linear_options import LabelsOption, TargetOption
from strads.cli.train_options import DebugOption, run_option
from strads.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from strads.models.interactions.interactions import Interactions

_BATCH = 1 << 14  # users whose lists are made at a time

ModelArgument = Annotated[Path, typer.Argument(help="Directory of a run, or a model file.")]
OutOption = Annotated[
    Path | None, run_option(help="File to write: .tsv, .csv or .parquet; by default TSV on standard output.")
]
OverwriteOption = Annotated[bool, run_option("--overwrite", help="Replace the file.")]
CountOption = Annotated[int, typer.Option("-k", "--count", min=1, help="Length of each list.")]
_COUNT = 10


class Unknown(StrEnum):
    """What to do for users and items that the model does not know."""

    skip = "skip"
    error = "error"
    mean = "mean"


def predict(
    *,
    model: ModelArgument,
    data: Annotated[
        Path,
        typer.Option(help="Pairs of user and item (delimited text or Parquet), or samples as in training."),
    ],
    reading: Reading,
    unknown: Annotated[
        Unknown, typer.Option(help="Leave out pairs of unknown users and items, end, or predict by what is known.")
    ] = Unknown.skip,
    clip: Annotated[bool, typer.Option("--clip/--no-clip", help="Keep within the scores of the training data.")] = True,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    debug: DebugOption = False,
) -> None:
    """Predict the scores of pairs of user and item, or what is to be predicted of samples.

    With a model of [bold]strads train mf[/bold]: writes the columns user, item and prediction. Of [bold]lasso[/bold],
    [bold]logistic[/bold] and [bold]mlr[/bold]: sample, prediction, and the probability of each class; the samples need
    no column with what is to be predicted.
    """
    check_output(out, overwrite=overwrite)
    _, kind = kind_of_model(model, (*RECOMMENDERS, *LINEAR))
    if kind == "BayesianPersonalizedRanking":
        raise ArgumentError(f"{model}: a {kind} ranks, and predicts no scores: use strads recommend")
    if kind in LINEAR:
        _refuse(kind, reading=reading != Reading(), unknown=unknown is not Unknown.skip, clip=not clip)
        from strads.cli.use_samples import predictions

        table, note = predictions(load_model(model, LINEAR), data)
        _tell(note)
        write_table(table, out)
        _say_where(out, len(table["sample"]), "predictions")
        return
    from strads.cli.saved_recommender import read_pairs

    loaded = load_model(model, RECOMMENDERS)
    pairs = read_pairs(data, reading.form, loaded)
    if unknown is Unknown.skip:
        pairs = _known_pairs(loaded, pairs)
    found = loaded.predict(pairs, unknown="mean" if unknown is Unknown.mean else "error", clip=clip)
    write_table({"user": _ids(pairs.users), "item": _ids(pairs.items), "prediction": found}, out)
    _say_where(out, len(found), "predictions")


def recommend(
    *,
    model: ModelArgument,
    user: Annotated[list[str] | None, typer.Option(help="Id of a user; may be given several times.")] = None,
    users: Annotated[Path | None, typer.Option(help="File with a user id on each line; by default all users.")] = None,
    count: CountOption = _COUNT,
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Also items that the user had in the training data.")
    ] = False,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    debug: DebugOption = False,
) -> None:
    """Recommend items to users with a model of [bold]strads train mf[/bold] or [bold]strads train bpr[/bold].

    Writes the columns user, rank, item and score, the best first.
    """
    check_output(out, overwrite=overwrite)
    loaded = load_model(model, RECOMMENDERS)
    chosen = _chosen(loaded, "user", user, users)
    is_mf = hasattr(loaded, "predict")
    options = {"exclude_rated" if is_mf else "filter_already_liked_items": not include_known}
    parts = []
    for first in range(0, len(chosen), _BATCH):
        some = chosen[first : first + _BATCH]
        items, scores = loaded.recommend(some, **{"n" if is_mf else "N": count}, **options)
        parts.append(_lists(some, items, scores))
    columns = _joined(parts)
    write_table(dict(zip(("user", "rank", "item", "score"), columns, strict=True)), out)
    _say_where(out, len(columns[0]), f"recommendations for {len(chosen):,} users")


def similar(
    *,
    model: ModelArgument,
    item: Annotated[list[str] | None, typer.Option(help="Id of an item; may be given several times.")] = None,
    items: Annotated[Path | None, typer.Option(help="File with an item id on each line; by default all items.")] = None,
    count: CountOption = _COUNT,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    debug: DebugOption = False,
) -> None:
    """Find the items that are most alike for the users, by the cosine of their factors.

    Writes the columns item, rank, similar and cosine, the most similar first.
    """
    check_output(out, overwrite=overwrite)
    loaded = load_model(model, RECOMMENDERS)
    chosen = _chosen(loaded, "item", item, items)
    parts = []
    for first in range(0, len(chosen), _BATCH):
        some = chosen[first : first + _BATCH]
        found, cosines = loaded.similar_items(some, N=count + 1)
        itself = found == some[:, None]
        cosines = np.where(itself, np.float32(-np.inf), cosines)
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
        parts.append(_lists(some, np.take_along_axis(found, order, 1), np.take_along_axis(cosines, order, 1)))
    columns = _joined(parts)
    write_table(dict(zip(("item", "rank", "similar", "cosine"), columns, strict=True)), out)
    _say_where(out, len(columns[0]), f"neighbours of {len(chosen):,} items")


def evaluate(
    *,
    model: ModelArgument,
    data: Annotated[
        Path, typer.Option(help="Held-out pairs (delimited text, gzip too, or Parquet), or samples as in training.")
    ],
    reading: Reading,
    labels: LabelsOption = None,
    target: TargetOption = None,
    at_least: Annotated[
        float | None, typer.Option(help="Score from which on an item is relevant; by default all are.")
    ] = None,
    count: CountOption = _COUNT,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure a model on held-out data.

    Of users and items: precision, recall, NDCG and MAP of the best k, AUC, and the RMSE of scores. What users had in
    the training data is not recommended, and does not count. Of samples: R² and RMSE of numbers, accuracy and AUC of
    two classes, accuracy and log loss of more.
    """
    check_output(out, overwrite=overwrite)
    _, kind = kind_of_model(model, (*RECOMMENDERS, *LINEAR))
    if kind in LINEAR:
        _refuse(kind, reading=reading != Reading(), at_least=at_least is not None, count=count != _COUNT)
        from strads.cli.design_file import DesignOptions
        from strads.cli.use_samples import quality

        figures, note = quality(load_model(model, LINEAR), data, DesignOptions(labels, target=target))
        _tell(note)
    else:
        _refuse(kind, labels=labels is not None, target=target is not None)
        figures = _ranking(load_model(model, RECOMMENDERS), data, reading, at_least, count)
    write_table({"measure": list(figures), "value": [float(value) for value in figures.values()]}, out)
    _say_where(out, len(figures), "measures")


def _ranking(model: Any, data: Path, reading: Reading, at_least: float | None, count: int) -> dict[str, float]:
    """Return the figures of a model of users and items."""
    from strads.cli.saved_recommender import read_pairs
    from strads.models import evaluate_ranking

    pairs = read_pairs(data, reading.form, model, scored=at_least is not None)
    relevant = pairs
    if at_least is not None and pairs.scores is not None:
        relevant = pairs[pairs.scores >= at_least]
        if not len(relevant):
            raise InputError(f"{data}: no score is {at_least} or more: there is nothing relevant")
    figures: dict[str, float] = asdict(evaluate_ranking(model, relevant, count))
    if pairs.scores is not None and hasattr(model, "rmse"):
        figures["rmse"] = model.rmse(pairs)
    return figures


def _refuse(kind: str, **given: bool) -> None:
    """Reject options that mean nothing to a kind of model."""
    wrong = next((name for name, is_given in given.items() if is_given), None)
    if wrong is not None:
        option = "options on the columns of pairs" if wrong == "reading" else f"--{wrong.replace('_', '-')}"
        raise ArgumentError(f"a {kind} does not know {option}: leave it out")


def _tell(note: str) -> None:
    if note:
        _notes().print(note, soft_wrap=True, markup=False)


def _known_pairs(model: Any, pairs: "Interactions") -> "Interactions":
    known = model.has_users(pairs.users) & model.has_items(pairs.items)
    if not known.all():
        lost = int((~known).sum())
        first = int(np.argmax(~known))
        _notes().print(
            f"{lost:,} of {len(pairs):,} pairs are left out, whose user or item was not in the training data; the "
            f"first is {pairs.pair(first)} (--unknown mean predicts them)",
            soft_wrap=True,
            markup=False,
        )
    return pairs[known]


def _chosen(model: Any, kind: str, named: list[str] | None, file: Path | None) -> NDArray[Any]:
    """Return the ids that options name, or all; unknown ones are reported and left out."""
    from strads.cli.saved_recommender import ids_of, only_known, read_ids

    known, has = (model.user_ids_, model.has_users) if kind == "user" else (model.item_ids_, model.has_items)
    if named and file is not None:
        raise ArgumentError(f"--{kind} and --{kind}s exclude each other: give one of them")
    if not named and file is None:
        return known
    given = ids_of(list(dict.fromkeys(named)), known, kind) if named else read_ids(file or Path(), known, kind)
    is_known = has(given)
    if not is_known.any():
        some = f"the first is {given[0]}" if len(given) else "none is given"
        raise InputError(f"none of the {len(given):,} {kind}s was in the training data: {some}")
    return only_known(given, is_known, kind, _notes())


def _lists(owners: NDArray[Any], ids: NDArray[Any], scores: NDArray[np.float32]) -> list[NDArray[Any]]:
    """Return lists as columns: owner, rank, id and score, without places that are empty."""
    filled = scores > -np.inf
    ranks = np.broadcast_to(np.arange(1, ids.shape[1] + 1), ids.shape)
    return [np.repeat(owners, filled.sum(1)), ranks[filled], ids[filled], scores[filled]]


def _joined(parts: list[list[NDArray[Any]]]) -> list[NDArray[Any]]:
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def _ids(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.codes if column.distinct is None else column.distinct[column.codes]
    return found


def _notes() -> Console:
    return Console(stderr=True, highlight=False)


def _say_where(out: Path | None, count: int, what: str) -> None:
    if out is not None:
        standard_output().print(f"{count:,} {what}: {out}", soft_wrap=True, markup=False)
