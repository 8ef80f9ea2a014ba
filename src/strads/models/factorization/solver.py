"""Interface of the solvers that fit a matrix factorization epoch by epoch."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from strads.engine.statistics import NodeStatistics
from strads.models.factorization.factor_tables import FactorTables


@dataclass(frozen=True)
class Epoch:
    """Figures of one epoch.

    Attributes
    ----------
    objective
        The solver's objective.
    squared_error
        Sum of squared errors over the ratings.
    nodes
        Statistics of each node.
    """

    objective: float
    squared_error: float
    nodes: tuple[NodeStatistics, ...]


class Solver(ABC):
    """Fits factors to the ratings passed to its constructor.

    Attributes
    ----------
    tables
        The factors, as of the last `update_tables`.
    """

    tables: FactorTables

    @abstractmethod
    def run_epoch(self, number: int) -> Epoch:
        """Visit all ratings; epochs count from 1."""

    @abstractmethod
    def held_out_rmse(self) -> float | None:
        """Current root mean squared error of the held-out ratings, if there are any."""

    def update_tables(self) -> None:  # noqa: B027 – not every solver keeps the factors elsewhere
        """Bring the tables up to date."""

    def close(self) -> None:  # noqa: B027 – nor has every solver something to drop
        """Release all memory except the tables."""
