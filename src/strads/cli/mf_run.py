"""One training of matrix factorization: the ratings, the held-out ratings, and the report on the result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from strads.cli.interactions_file import FileContent, read_interactions
from strads.cli.interactions_options import Reading, SplitBy
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.models.held_out import held_out
from strads.models.interactions.interactions import Interactions
from strads.models.ranking.metrics import last_share, leave_one_out

if TYPE_CHECKING:
    from strads.models import MatrixFactorization

Rows = TypeVar("Rows", Interactions, NDArray[np.void])


@dataclass(kw_only=True)
class MfRun(TrainRun):
    """A run of `strads train mf`."""

    reading: Reading
    holdout: float
    split: SplitBy

    command: ClassVar[str] = "mf"
    estimator: ClassVar[str] = "MatrixFactorization"

    model: "MatrixFactorization" = field(init=False)
    _content: FileContent = field(init=False)
    _rest: Interactions = field(init=False)
    _held_out: Interactions | None = field(init=False)

    @property
    def ends_iterations(self) -> bool:
        """Coordinate descent copies the factors back only between epochs."""
        return bool(self.parameters["solver"] == "ccd")

    def read(self) -> None:
        """Read the ratings, and set some aside."""
        timed = self.split is not SplitBy.random
        self._content = read_interactions(self.data, self.reading.form, scored=True, timed=timed)
        seed = self.parameters["random_state"]
        self._rest, self._held_out = split_by(self._content.interactions, self.holdout, seed, self.split)

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the ratings that were not held out."""
        self.model.fit(self._rest, validation=self._held_out, on_iteration=on_record)

    def announcement(self) -> list[str]:
        """The number of ratings, and the columns of user, item and score in the file."""
        content = self._content
        held = f"; {len(self._held_out):,} held out" if self._held_out is not None else ""
        ratings = f"{len(content.interactions):,} ratings of {content.distinct('item'):,} items"
        return [f"{ratings} by {content.distinct('user'):,} users{held}", *content.about_columns()]

    def arguments(self) -> Record:
        """How the file is read."""
        return {**self.reading.chosen, "holdout": self.holdout, "split": self.split.value}

    def about_data(self) -> Record:
        """Columns, and numbers of everything."""
        content = self._content
        return {
            "columns": content.columns,
            "ratings": len(content.interactions),
            "held_out": 0 if self._held_out is None else len(self._held_out),
            "users": content.distinct("user"),
            "items": content.distinct("item"),
        }

    def kept_record(self, history: list[Record]) -> Mapping[str, Any]:
        """The record of the last epoch or, with early stopping, of the best one."""
        if history and self.model.early_stopping:
            return min(history, key=lambda record: record["validation_rmse"])
        return super().kept_record(history)

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Both errors, and the epoch that early stopping has chosen."""
        rows = [("training RMSE", f"{last['rmse']:.4f}")]
        if "validation_rmse" in last:
            best = f", epoch {last['iteration']:.0f}" if self.model.early_stopping else ""
            rows.insert(0, ("held-out RMSE", f"{last['validation_rmse']:.4f}{best}"))
        return rows


def split(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows | None]:
    """Split ratings into training ratings and a random held-out share, None for a share of 0.

    Raises
    ------
    InputError
        If there are too few ratings to hold one out.
    """
    if share == 0:
        return rows, None
    if len(rows) < 2:
        raise InputError("a single rating leaves none to hold out: give more ratings, or --holdout 0")
    held = held_out(len(rows), share, seed)
    return rows[~held], rows[held]


def split_by(rows: Interactions, share: float, seed: int, by: SplitBy) -> tuple[Interactions, Interactions | None]:
    """Split interactions at random, by time, or into the last of each user and the rest; see `SplitBy`.

    Raises
    ------
    InputError
        If there are too few to hold one out.
    """
    if by is SplitBy.random or share == 0:
        return split(rows, share, seed)
    assert rows.times is not None
    held = leave_one_out(rows.users, rows.times) if by is SplitBy.last else last_share(rows.times, share)
    if held.all() or not held.any():
        raise InputError(f"--split {by.value} leaves nothing to hold out or to train on: give more, or --holdout 0")
    return rows[~held], rows[held]
