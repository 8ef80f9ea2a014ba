"""`strads predict`, `evaluate`, `recommend`, `similar`: what a saved model is used for."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from strads.cli.interactions_options import FileFormat
from strads.cli.samples_options import DesignOptions, LabelsOption, TargetOption
from strads.cli.saved_model import LINEAR, OF_SEVERAL_OUTPUTS, RECOMMENDERS, TOPICS, kind_of_model, load_model
from strads.cli.saved_recommender import Pairs, ids_of, only_known, read_ids, read_pairs
from strads.cli.saved_topics import quality_of_topics, read_known_documents
from strads.cli.table_output import Output
from strads.cli.use_samples import predictions, quality
from strads.errors import ArgumentError, InputError
from strads.models import evaluate_ranking
from strads.models.interactions.interactions import Interactions

_BATCH = 1 << 14  # users whose lists are made at a time

ModelArgument = Annotated[Path, typer.Argument(help="Directory of a run, or a model file.")]
CountOption = Annotated[int, typer.Option("-k", "--count", min=1, help="Length of each list.")]
VocabularyOption = Annotated[Path | None, typer.Option(help="Words of a bag of words, one per line.")]
_COUNT = 10  # default number of items recommended, or of similar words shown


def predict(
    *,
    model: ModelArgument,
    data: Annotated[
        Path,
        typer.Option(help="Pairs of user and item (delimited text or Parquet), or samples as in training."),
    ],
    reading: FileFormat,
    unknown: Annotated[
        Literal["skip", "error", "mean"],
        typer.Option(
            help="Leave out pairs with an unknown user or item, stop with an error, or predict from what is known."
        ),
    ] = "skip",
    clip: Annotated[bool, typer.Option("--clip/--no-clip", help="Keep within the scores of the training data.")] = True,
    output: Output,
) -> None:
    """Predict the scores of pairs of user and item, or what is to be predicted of samples.

    With a model of [bold]strads train mf[/bold]: writes the columns user, item and prediction. Of [bold]lasso[/bold],
    [bold]logistic[/bold] and [bold]mlr[/bold]: sample, prediction, and the probability of each class; the samples need
    no column with what is to be predicted.
    """
    _, kind = kind_of_model(model, (*RECOMMENDERS, *LINEAR, *OF_SEVERAL_OUTPUTS, *TOPICS))
    if kind in TOPICS:
        raise ArgumentError(f"{model}: a {kind} has topics: strads topics --data writes those of documents")
    if kind == "BayesianPersonalizedRanking":
        raise ArgumentError(f"{model}: a {kind} ranks items and does not predict scores: use strads recommend")
    if kind not in RECOMMENDERS:
        _refuse(kind, reading=reading != FileFormat(), unknown=unknown != "skip", clip=not clip)
        table, note = predictions(load_model(model, (kind,)), data)
        _tell(note)
        output.write(table, "predictions")
        return
    loaded = load_model(model, RECOMMENDERS)
    read = read_pairs(data, reading, loaded, scored=None)
    pairs = read.known if unknown == "mean" else _known_pairs(loaded, read, skip=unknown == "skip")
    found = loaded.predict(pairs, unknown="mean", clip=clip)
    shown = read.given if unknown == "mean" else pairs
    output.write({"user": _ids(shown.users), "item": _ids(shown.items), "prediction": found}, "predictions")


def recommend(
    *,
    model: ModelArgument,
    user: Annotated[list[str] | None, typer.Option(help="Id of a user; may be given several times.")] = None,
    users: Annotated[Path | None, typer.Option(help="File with a user id on each line; by default all users.")] = None,
    count: CountOption = _COUNT,
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Also items that the user had in the training data.")
    ] = False,
    output: Output,
) -> None:
    """Recommend items to users with a model of [bold]strads train mf[/bold] or [bold]strads train bpr[/bold].

    Writes the columns user, rank, item and score, the best first.
    """
    loaded = load_model(model, RECOMMENDERS)
    chosen = _chosen(loaded, "user", user, users)
    without_known = "exclude_rated" if hasattr(loaded, "predict") else "filter_already_liked_items"
    options: dict[str, Any] = {without_known: not include_known}
    columns = _lists(chosen, lambda some: loaded.recommend(some, N=count, **options))
    table = dict(zip(("user", "rank", "item", "score"), columns, strict=True))
    output.write(table, f"recommendations for {len(chosen):,} users")


def similar(
    *,
    model: ModelArgument,
    item: Annotated[list[str] | None, typer.Option(help="Id of an item; may be given several times.")] = None,
    items: Annotated[Path | None, typer.Option(help="File with an item id on each line; by default all items.")] = None,
    count: CountOption = _COUNT,
    output: Output,
) -> None:
    """Find the most similar items, by the cosine of their factors.

    Writes the columns item, rank, similar and cosine, the most similar first.
    """
    loaded = load_model(model, RECOMMENDERS)
    chosen = _chosen(loaded, "item", item, items)

    def others(some: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float32]]:
        found, cosines = loaded.similar_items(some, N=count + 1)
        cosines = np.where(found == some[:, None], np.float32(-np.inf), cosines)  # an item is most like itself
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(found, order, 1), np.take_along_axis(cosines, order, 1)

    table = dict(zip(("item", "rank", "similar", "cosine"), _lists(chosen, others), strict=True))
    output.write(table, f"neighbours of {len(chosen):,} items")


def evaluate(
    *,
    model: ModelArgument,
    data: Annotated[
        Path, typer.Option(help="Held-out pairs (delimited text, gzip too, or Parquet), or samples as in training.")
    ],
    reading: FileFormat,
    labels: LabelsOption = None,
    target: TargetOption = None,
    vocab: VocabularyOption = None,
    at_least: Annotated[
        float | None, typer.Option(help="Lowest score that counts as relevant; by default all do.")
    ] = None,
    count: CountOption = _COUNT,
    output: Output,
) -> None:
    """Measure a model on held-out data.

    Of users and items: precision, recall, NDCG and MAP of the best k, AUC, and the RMSE of scores. What users had in
    the training data is not recommended, and counts in none of them. Of samples: R² and RMSE of numbers, accuracy and
    AUC of two classes, accuracy and log loss of more. Of documents: perplexity, and the mean coherence of topics by
    their best k words.
    """
    _, kind = kind_of_model(model, (*RECOMMENDERS, *LINEAR, *TOPICS))
    no_samples = {"labels": labels is not None, "target": target is not None}
    if kind in TOPICS:
        _refuse(kind, reading=reading != FileFormat(), at_least=at_least is not None, **no_samples)
        topics = load_model(model, TOPICS)
        figures = quality_of_topics(topics, read_known_documents(topics, data, vocab), count)
    elif kind in LINEAR:
        _refuse(
            kind,
            vocab=vocab is not None,
            reading=reading != FileFormat(),
            at_least=at_least is not None,
            count=count != _COUNT,
        )
        figures, note = quality(load_model(model, LINEAR), data, DesignOptions(labels=labels, target=target))
        _tell(note)
    else:
        _refuse(kind, vocab=vocab is not None, **no_samples)
        figures = _ranking(load_model(model, RECOMMENDERS), data, reading, at_least, count)
    output.write({"measure": list(figures), "value": [float(value) for value in figures.values()]}, "measures")


def _ranking(model: Any, data: Path, form: FileFormat, at_least: float | None, count: int) -> dict[str, float]:
    """Return the figures of a model of users and items."""
    pairs = read_pairs(data, form, model, scored=at_least is not None).known
    relevant = pairs
    if at_least is not None and pairs.scores is not None:
        relevant = pairs[pairs.scores >= at_least]
        if not len(relevant):
            raise InputError(f"{data}: no score is {at_least} or more: there is nothing relevant")
    figures: dict[str, float] = asdict(evaluate_ranking(model, relevant, count))
    if pairs.scores is not None and hasattr(model, "rmse"):
        figures["rmse"] = model.rmse(pairs[~model.known_likes().has(*model.rows_of_pairs(pairs))])
    return figures


def _refuse(kind: str, **given: bool) -> None:
    """Reject options that mean nothing to a kind of model."""
    wrong = next((name for name, is_given in given.items() if is_given), None)
    if wrong is not None:
        if wrong == "reading":
            raise ArgumentError(f"options on the columns of pairs do not apply to a {kind}: leave them out")
        raise ArgumentError(f"--{wrong.replace('_', '-')} does not apply to a {kind}: leave it out")


def _tell(note: str) -> None:
    if note:
        _notes().print(note, soft_wrap=True, markup=False)


def _known_pairs(model: Any, pairs: Pairs, *, skip: bool) -> Interactions:
    """Return the pairs whose user and item the model knows, and say that the others are left out, or refuse them."""
    has_user = model.has_users(pairs.known.users)
    known = has_user & model.has_items(pairs.known.items)
    if not known.all():
        lost = int((~known).sum())
        first = int(np.argmax(~known))
        if not skip:
            kind, ids = ("item", pairs.given.items) if has_user[first] else ("user", pairs.given.users)
            raise InputError(
                f"{pairs.where(first)}: {kind} id {ids.id_of(first)!r} was not in the training data: --unknown skip "
                "leaves such pairs out, --unknown mean predicts them"
            )
        _notes().print(
            f"{lost:,} of {len(known):,} pairs are left out, whose user or item was not in the training data; the "
            f"first is {pairs.given.pair(first)} ({pairs.where(first)}; --unknown mean predicts them)",
            soft_wrap=True,
            markup=False,
        )
    return pairs.known[known]


def _chosen(model: Any, kind: str, named: list[str] | None, file: Path | None) -> NDArray[Any]:
    """Return the ids that options name, or all; unknown ones are reported and left out."""
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


def _lists(
    owners: NDArray[Any], lists_of: Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[np.float32]]]
) -> list[NDArray[Any]]:
    """Return the lists of ids and scores of some users or items as columns: owner, rank, id and score.

    Places that are empty have the score -inf and are left out.
    """
    parts = []
    for first in range(0, len(owners), _BATCH):
        some = owners[first : first + _BATCH]
        ids, scores = lists_of(some)
        filled = scores > -np.inf
        ranks = np.broadcast_to(np.arange(1, ids.shape[1] + 1), ids.shape)
        parts.append((np.repeat(some, filled.sum(1)), ranks[filled], ids[filled], scores[filled]))
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def _ids(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.codes if column.distinct is None else column.distinct[column.codes]
    return found


def _notes() -> Console:
    return Console(stderr=True, highlight=False)
