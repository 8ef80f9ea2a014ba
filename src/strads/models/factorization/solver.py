"""What fits the factors of a matrix factorization, epoch by epoch."""

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
        What the solver tells of its objective.
    squared_error
        Sum over the ratings.
    nodes
        What each node did.
    """

    objective: float
    squared_error: float
    nodes: tuple[NodeStatistics, ...]


class Solver(ABC):
    """Fits factors to the ratings that it was made with.

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
        """Root mean squared error now of the ratings that are held out, if there are any."""

    def update_tables(self) -> None:  # noqa: B027 – not every solver keeps the factors elsewhere
        """Bring the tables up to date."""

    def close(self) -> None:  # noqa: B027 – nor has every solver something to drop
        """Let go of all memory but the tables."""
