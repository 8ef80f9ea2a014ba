"""One training of matrix factorization: the ratings, the held-out ratings, and the report on the result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strads import dvector
from strads.cli.ratings_file import Ratings, read_ratings
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.models.held_out import held_out

if TYPE_CHECKING:
    from strads.models import MatrixFactorization

MEASURES = {"rmse": "RMSE", "validation_rmse": "held-out"}


@dataclass(kw_only=True)
class MfRun(TrainRun):
    """A run of `strads train mf`."""

    columns: tuple[str, ...] | None
    delimiter: str | None
    holdout: float

    command: ClassVar[str] = "mf"
    estimator: ClassVar[str] = "MatrixFactorization"
    unit: ClassVar[str] = "ratings"
    measures: ClassVar[Mapping[str, str]] = MEASURES

    model: "MatrixFactorization" = field(init=False)
    _ratings: Ratings = field(init=False)
    _rest: dvector = field(init=False)
    _held_out: dvector | None = field(init=False)

    @property
    def ends_iterations(self) -> bool:
        """Coordinate descent copies the factors back only between epochs."""
        return bool(self.parameters["solver"] == "ccd")

    def read(self) -> None:
        """Read the ratings, and set some aside."""
        self._ratings = read_ratings(self.data, self.columns, self.delimiter)
        self._rest, self._held_out = split(self._ratings.records, self.holdout, self.parameters["random_state"])

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the ratings that were not held out."""
        self.model.fit(self._rest, validation=self._held_out, on_iteration=on_record)

    def announcement(self) -> list[str]:
        """The number of ratings, and the columns of user, item and score in the file."""
        ratings = self._ratings
        held = f"; {len(self._held_out):,} held out" if self._held_out is not None else ""
        lines = [
            f"{len(ratings.records):,} ratings of {ratings.distinct('item'):,} items "
            f"by {ratings.distinct('user'):,} users{held}"
        ]
        if ratings.columns not in (("1", "2", "3"), ("user", "item", "score")):
            user, item, score = ratings.columns
            lines.append(f"columns: {user} is the user, {item} the item, {score} the score")
        return lines

    def arguments(self) -> Record:
        """How the file is read."""
        return {"columns": self.columns, "delimiter": self.delimiter, "holdout": self.holdout}

    def about_data(self) -> Record:
        """Columns, and numbers of everything."""
        ratings, records = self._ratings, self._ratings.records
        return {
            "columns": ratings.columns,
            "ratings": len(records),
            "held_out": 0 if self._held_out is None else len(self._held_out),
            "users": ratings.distinct("user"),
            "items": ratings.distinct("item"),
            "largest_user_id": int(records["user"].max()),
            "largest_item_id": int(records["item"].max()),
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


def split(records: NDArray[np.void], share: float, seed: int) -> tuple[dvector, dvector | None]:
    """Split ratings into training ratings and a random held-out share, None for a share of 0.

    Raises
    ------
    InputError
        If there are too few ratings to hold one out.
    """
    if share == 0:
        return dvector(records), None
    if len(records) < 2:
        raise InputError("a single rating leaves none to hold out: give more ratings, or --holdout 0")
    held = held_out(len(records), share, seed)
    return dvector(records[~held], copy=False), dvector(records[held], copy=False)
