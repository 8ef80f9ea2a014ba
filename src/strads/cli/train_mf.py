"""`strads train mf`: matrix factorization of the ratings in a file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from strads.cli.interactions_options import Reading, SplitBy, SplitOption
from strads.cli.train_options import Common, data_option, model_option, not_negative, positive, share
from strads.errors import ArgumentError

if TYPE_CHECKING:
    from strads.cli.mf_run import MfRun


class Solver(StrEnum):
    """How the factors are fitted."""

    sgd = "sgd"
    ccd = "ccd"


class Step(StrEnum):
    """How the size of a gradient step is chosen."""

    adagrad = "adagrad"
    constant = "constant"


class LearningRateSchedule(StrEnum):
    """How steps change from epoch to epoch."""

    linear = "linear"
    constant = "constant"


def mf(
    *,
    data: Annotated[Path, data_option(help="Ratings: CSV, TSV or other delimited text (gzip too), or Parquet.")],
    reading: Reading,
    holdout: Annotated[
        float, data_option(callback=share, help="Share of the ratings, chosen at random, to measure on.")
    ] = 0.1,
    split: SplitOption = SplitBy.random,
    rank: Annotated[int, model_option(min=1, help="Factors of each user and item.")] = 32,
    epochs: Annotated[int, model_option(min=1, help="Passes over the ratings.")] = 20,
    solver: Annotated[
        Solver, model_option(help="Stochastic gradient descent, or coordinate descent: no steps.")
    ] = Solver.sgd,
    step: Annotated[Step, model_option(help="Steps that shrink by row, or stay.")] = Step.adagrad,
    learning_rate: Annotated[float, model_option(callback=positive, help="Step size; 0.01 for constant.")] = 0.1,
    learning_rate_schedule: Annotated[
        LearningRateSchedule, model_option(help="Steps fall towards 0 over the epochs, or stay.")
    ] = LearningRateSchedule.linear,
    regularization: Annotated[float, model_option(callback=not_negative, help="λ of the squared norms.")] = 0.1,
    biases: Annotated[bool, model_option("--biases/--no-biases", help="Fit mean and biases.")] = True,
    early_stopping: Annotated[
        bool,
        model_option(
            "--early-stopping/--no-early-stopping",
            help="Stop when the held-out RMSE gets no better, and keep the best epoch.",
        ),
    ] = False,
    common: Common,
) -> "MfRun":
    """Matrix factorization of ratings by parallel stochastic gradient descent, or coordinate descent.

    The file has the columns user, item and score; ids are whole numbers or texts.

    MovieLens works as it is: [bold]strads train mf --data u.data.gz --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train mf …[/bold], with the same result.
    """
    from strads.cli.mf_run import MfRun

    if early_stopping and holdout == 0:
        raise ArgumentError("--early-stopping needs held-out ratings: give a --holdout above 0")
    return MfRun(
        data=data,
        common=common,
        reading=reading,
        holdout=holdout,
        split=split,
        parameters={
            "n_components": rank,
            "max_iter": epochs,
            "solver": solver.value,
            "step": step.value,
            "learning_rate": learning_rate,
            "learning_rate_schedule": learning_rate_schedule.value,
            "regularization": regularization,
            "biases": biases,
            "early_stopping": early_stopping,
            "random_state": common.seed,
        },
    )
