"""One training of Bayesian personalized ranking: the likes, the held-out likes, and the report on the result."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from strads.cli.interactions_file import FileContent, read_interactions
from strads.cli.interactions_options import Reading, SplitBy
from strads.cli.mf_run import split_by
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.models.interactions.interactions import Interactions
from strads.models.ranking.metrics import RankingMetrics, evaluate_ranking

if TYPE_CHECKING:
    from strads.models import BayesianPersonalizedRanking

_BEST = 10  # items of the lists that are measured


@dataclass(kw_only=True)
class BprRun(TrainRun):
    """A run of `strads train bpr`."""

    reading: Reading
    at_least: float | None
    holdout: float
    split: SplitBy

    command: ClassVar[str] = "bpr"
    estimator: ClassVar[str] = "BayesianPersonalizedRanking"

    model: "BayesianPersonalizedRanking" = field(init=False)
    _content: FileContent = field(init=False)
    _rest: Interactions = field(init=False)
    _held_out: Interactions | None = field(init=False)
    _ranking: RankingMetrics | None = field(init=False, default=None)

    @property
    def ends_iterations(self) -> bool:
        """The factors are copied back only between epochs."""
        return True

    def read(self) -> None:
        """Read the interactions, keep the likes, and set some aside."""
        timed = self.split is not SplitBy.random
        scored = self.at_least is not None
        self._content = read_interactions(self.data, self.reading.form, scored=scored, timed=timed)
        likes = self._liked(self._content.interactions)
        self._rest, self._held_out = split_by(likes, self.holdout, self.parameters["random_state"], self.split)

    def _liked(self, given: Interactions) -> Interactions:
        """Return the likes among interactions: scores of at least `at_least`, or above 0."""
        scores = given.scores
        if scores is None:
            return given
        if self.at_least is None and np.any(scores < 0):
            row = int(np.argmax(scores < 0))
            raise InputError(
                f"{self.data}: user {given.users.id_of(row)} has item {given.items.id_of(row)} with the score "
                f"{scores[row]}: scores below 0 are no likes; say with --at-least from which score on one is"
            )
        liked = scores > 0 if self.at_least is None else scores >= self.at_least
        if not liked.any():
            least = "above 0" if self.at_least is None else f"{self.at_least} or more"
            raise InputError(f"{self.data}: no score is {least}: there is nothing to learn from")
        return replace(given[liked], scores=None)

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the likes that were not held out."""
        self.model.fit(self._rest, validation=self._held_out, on_iteration=on_record)

    def measure(self) -> None:
        """How the held-out likes rank among the best."""
        if self._held_out is not None:
            with suppress(InputError):  # of likes none of which can be measured, since users had them in the rest
                self._ranking = evaluate_ranking(self.model, self._held_out, _BEST)

    def announcement(self) -> list[str]:
        """The number of likes."""
        held = f"; {len(self._held_out):,} held out" if self._held_out is not None else ""
        items, users = self._content.distinct("item"), self._content.distinct("user")
        return [
            f"{self._count:,} likes among {items:,} items and {users:,} users{held}",
            *self._content.about_columns(),
        ]

    @property
    def _count(self) -> int:
        return len(self._rest) + (0 if self._held_out is None else len(self._held_out))

    def arguments(self) -> Record:
        """How the file is read."""
        held = {"holdout": self.holdout, "split": self.split.value}
        return {**self.reading.chosen, "at_least": self.at_least, **held}

    def about_data(self) -> Record:
        """Columns, and numbers of everything."""
        return {
            "columns": self._content.columns,
            "likes": self._count,
            "held_out": 0 if self._held_out is None else len(self._held_out),
            "users": self._content.distinct("user"),
            "items": self._content.distinct("item"),
        }

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The measures of the last epoch."""
        found: Record = {name: last.get(name) for name in ("objective", "correct", "validation_auc")}
        return found | ({} if self._ranking is None else {"ranking": asdict(self._ranking)})

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The AUC, and the share of triples in the right order."""
        rows = [("right order", f"{100 * last['correct']:.1f}% of the triples in the last epoch")]
        if "validation_auc" in last:
            rows.insert(0, ("held-out AUC", f"{last['validation_auc']:.4f}"))
        if self._ranking is not None:
            found = self._ranking
            shown = f"precision {found.precision:.4f}, recall {found.recall:.4f}, NDCG {found.ndcg:.4f}"
            rows.insert(1, (f"the best {found.k}", f"{shown}, MAP {found.map:.4f}"))
        return rows
