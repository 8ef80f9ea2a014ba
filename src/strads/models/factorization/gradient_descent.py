"""Matrix factorization by stochastic gradient descent, as a serializable parallel loop over the ratings."""

import math
from dataclasses import dataclass

from strads.dds import accumulator, dvector
from strads.loops import async_for
from strads.models._iterative import Epoch, Solver
from strads.models.factorization.factor_tables import FactorTables
from strads.models.factorization.held_out import HeldOut
from strads.models.kernels.matrix_factorization import adagrad_step, constant_step

STEPS = {"adagrad": adagrad_step, "constant": constant_step}


@dataclass(frozen=True)
class StepSize:
    """η of an epoch: constant, or decreasing linearly to 0 after the last of `epochs`."""

    learning_rate: float  # η of the first epoch
    falls: bool  # whether it decreases
    epochs: int

    def of(self, epoch: int) -> float:
        """Return η of an epoch; epochs are numbered from 1."""
        return self.learning_rate * (1.0 - (epoch - 1) / self.epochs) if self.falls else self.learning_rate


class StochasticGradientSolver(Solver):
    """Processes one rating at a time.

    Parameters
    ----------
    ratings : dvector of records user, item, score
    held_out : the same, or None
        Ratings on which the error is measured.
    tables : FactorTables
        Modified in place, wherever they are.
    step : key of STEPS
    regularization : float
        λ, applied once per rating.
    threads : int or None
        Number of threads on a single process; None: those of `strads.init`.
    seed : int
        Seed of the order of ratings.
    """

    checkpointed = ("_tables",)

    def __init__(
        self,
        ratings: dvector,
        held_out: dvector | None,
        tables: FactorTables,
        *,
        step: str,
        step_size: StepSize,
        regularization: float,
        biases: bool,
        threads: int | None,
        seed: int,
    ):
        self._tables = tables
        self._ratings = ratings
        self._held_out = None if held_out is None else HeldOut(held_out.to_numpy(), tables)
        self._step, self._step_size = STEPS[step], step_size
        self._regularization, self._biases = regularization, biases
        self._threads, self._seed = threads, seed

    def run_epoch(self, number: int) -> Epoch:
        """Pass over the ratings once; the objective is the mean squared error, measured before each step."""
        loss = accumulator(0.0)
        statistics = async_for(
            range(len(self._ratings)),
            self._step,
            self._ratings,
            self._tables.users,
            self._tables.items,
            self._tables.mean,
            self._tables.rank,
            1.0 / self._tables.rank,
            self._step_size.of(number),
            self._regularization,
            1.0 if self._biases else 0.0,
            loss,
            strategy="rotation",  # the same plan for any number of threads, even if other strategies apply
            threads=self._threads,
            seed=self._seed,
        )
        mean = loss.value / len(self._ratings)
        return Epoch(number * len(self._ratings), mean, {"rmse": math.sqrt(mean)}, statistics.nodes)

    def evaluate(self, number: int) -> dict[str, float]:
        """Return the root mean squared error of the held-out ratings, if there are any."""
        if self._held_out is None:
            return {}
        return {"validation_rmse": self._held_out.rmse(self._tables, self._threads)}

    def learnt(self) -> FactorTables:
        """Return the tables, wherever they are."""
        return self._tables
