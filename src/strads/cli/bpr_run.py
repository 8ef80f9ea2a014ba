"""One training of Bayesian personalized ranking: the likes, the held-out likes, and the report on the result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from strads import dvector
from strads.cli.mf_run import split
from strads.cli.ratings_file import Ratings, read_ratings
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError

if TYPE_CHECKING:
    from strads.models import BayesianPersonalizedRanking


@dataclass(kw_only=True)
class BprRun(TrainRun):
    """A run of `strads train bpr`."""

    columns: tuple[str, ...] | None
    delimiter: str | None
    at_least: float | None
    holdout: float

    command: ClassVar[str] = "bpr"
    estimator: ClassVar[str] = "BayesianPersonalizedRanking"
    unit: ClassVar[str] = "likes"
    measures: ClassVar[Mapping[str, str]] = {"correct": "correct", "validation_auc": "held-out AUC"}

    model: "BayesianPersonalizedRanking" = field(init=False)
    _ratings: Ratings = field(init=False)
    _rest: dvector = field(init=False)
    _held_out: dvector | None = field(init=False)

    @property
    def ends_iterations(self) -> bool:
        """The factors are copied back only between epochs."""
        return True

    def read(self) -> None:
        """Read the interactions, keep the likes, and set some aside."""
        self._ratings = read_ratings(self.data, self.columns, self.delimiter)
        likes = self._ratings.records
        scores = likes["score"]
        if self.at_least is not None:
            likes = likes[scores >= self.at_least].copy()
            likes["score"] = 1.0
        elif np.any(scores < 0):
            row = int(np.argmax(scores < 0))
            raise InputError(
                f"{self.data}: user {likes['user'][row]} has item {likes['item'][row]} with the score {scores[row]}: "
                "scores below 0 are no likes; say with --at-least from which score on one is"
            )
        if len(likes) == 0:
            raise InputError(f"{self.data}: no score is {self.at_least} or more: there is nothing to learn from")
        self._rest, self._held_out = split(likes, self.holdout, self.parameters["random_state"])

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the likes that were not held out."""
        self.model.fit(self._rest, validation=self._held_out, on_iteration=on_record)

    def announcement(self) -> list[str]:
        """The number of likes."""
        held = f"; {len(self._held_out):,} held out" if self._held_out is not None else ""
        items, users = self._ratings.distinct("item"), self._ratings.distinct("user")
        return [f"{self._count:,} likes among {items:,} items and {users:,} users{held}"]

    @property
    def _count(self) -> int:
        return len(self._rest) + (0 if self._held_out is None else len(self._held_out))

    def arguments(self) -> Record:
        """How the file is read."""
        names = ("columns", "delimiter", "at_least", "holdout")
        return {name: getattr(self, name) for name in names}

    def about_data(self) -> Record:
        """Columns, and numbers of everything."""
        return {
            "columns": self._ratings.columns,
            "likes": self._count,
            "held_out": 0 if self._held_out is None else len(self._held_out),
            "users": self._ratings.distinct("user"),
            "items": self._ratings.distinct("item"),
        }

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The measures of the last epoch."""
        return {name: last.get(name) for name in ("objective", "correct", "validation_auc")}

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The AUC, and the share of triples in the right order."""
        rows = [("right order", f"{100 * last['correct']:.1f}% of the triples in the last epoch")]
        if "validation_auc" in last:
            rows.insert(0, ("held-out AUC", f"{last['validation_auc']:.4f}"))
        return rows
