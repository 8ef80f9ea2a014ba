"""`strads train bpr`: Bayesian personalized ranking of the interactions in a file."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from strads.cli.interactions_run import InteractionsRun
from strads.cli.train_options import data_option, model_option, not_negative, positive
from strads.cli.train_run import Record
from strads.errors import InputError
from strads.models import RankingMetrics, evaluate_ranking
from strads.models.interactions.interactions import Interactions

_BEST = 10  # items of the lists that are measured


@dataclass(frozen=True, kw_only=True)
class BprParameters:
    """Parameters of the estimator."""

    factors: Annotated[int, model_option(min=1, help="Factors of each user and item.")] = 100
    iterations: Annotated[int, model_option(min=1, help="Passes over the likes.")] = 100
    learning_rate: Annotated[float, model_option(callback=positive, help="Step size.")] = 0.01
    regularization: Annotated[float, model_option(callback=not_negative, help="λ of the squared norms.")] = 0.01
    verify_negative_samples: Annotated[
        bool, model_option(help="Never use an item that the user likes as the other item.")
    ] = True


@dataclass(kw_only=True)
class BprRun(InteractionsRun):
    """Bayesian personalized ranking: learns from what users chose which other items they will like.

    The file has the columns user, item and, optionally, score; ids are whole numbers or texts.

    MovieLens works as it is: [bold]strads train bpr --data u.data.gz --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train bpr …[/bold], with the same result.
    """

    data: Annotated[Path, data_option(help="Interactions: CSV, TSV or other delimited text (gzip too), or Parquet.")]
    parameters: BprParameters  # options that are parameters of the estimator
    at_least: Annotated[  # lowest score of a like; None: any score above 0
        float | None, data_option(help="Lowest score that counts as a like; by default any above 0.")
    ] = None

    estimator: ClassVar[str] = "BayesianPersonalizedRanking"  # its class in `strads.models`
    noun: ClassVar[str] = "likes"  # what the interactions are called

    _ranking: RankingMetrics | None = field(init=False, default=None)

    @property
    def is_scored(self) -> bool:
        """Whether the file needs scores."""
        return self.at_least is not None

    def used(self, given: Interactions) -> Interactions:
        """Return the likes among interactions: scores of at least `at_least`, or above 0."""
        scores = given.scores
        if scores is None:
            return given
        if self.at_least is None and np.any(scores < 0):
            row = int(np.argmax(scores < 0))
            raise InputError(
                f"{self.data}: user {given.users.id_of(row)} has item {given.items.id_of(row)} with the score "
                f"{scores[row]}: negative scores are not likes; give the lowest score of a like with --at-least"
            )
        liked = scores > 0 if self.at_least is None else scores >= self.at_least
        if not liked.any():
            least = "above 0" if self.at_least is None else f"{self.at_least} or more"
            raise InputError(f"{self.data}: no score is {least}: there is nothing to learn from")
        return replace(given[liked], scores=None)

    def measure(self) -> None:
        """Evaluate each user's list of best items on the held-out likes."""
        if self._held_out is not None:
            with suppress(InputError):  # of likes none of which can be measured, since users had them in the rest
                self._ranking = evaluate_ranking(self.model, self._held_out, _BEST)

    def arguments(self) -> Record:
        """How the file is read, and what counts as a like."""
        return super().arguments() | {"at_least": self.at_least}

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
