"""`strads train mf`: matrix factorization of the ratings in a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from strads.cli.interactions_run import InteractionsRun
from strads.cli.train_options import data_option, model_option, not_negative, positive
from strads.cli.train_run import Record
from strads.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class MfParameters:
    """Parameters of the estimator."""

    n_components: Annotated[int, model_option("--rank", min=1, help="Factors of each user and item.")] = 32
    max_iter: Annotated[int, model_option("--epochs", min=1, help="Passes over the ratings.")] = 20
    solver: Annotated[
        Literal["sgd", "ccd"], model_option(help="Stochastic gradient descent, or coordinate descent: no steps.")
    ] = "sgd"
    step: Annotated[Literal["adagrad", "constant"], model_option(help="Steps that shrink by row, or stay.")] = "adagrad"
    learning_rate: Annotated[float, model_option(callback=positive, help="Step size; 0.01 for constant.")] = 0.1
    learning_rate_schedule: Annotated[
        Literal["linear", "constant"], model_option(help="Steps fall towards 0 over the epochs, or stay.")
    ] = "linear"
    regularization: Annotated[float, model_option(callback=not_negative, help="λ of the squared norms.")] = 0.1
    biases: Annotated[bool, model_option("--biases/--no-biases", help="Fit mean and biases.")] = True
    early_stopping: Annotated[
        bool,
        model_option(
            "--early-stopping/--no-early-stopping",
            help="Stop when the held-out RMSE gets no better, and keep the best epoch.",
        ),
    ] = False


@dataclass(kw_only=True)
class MfRun(InteractionsRun):
    """Matrix factorization of ratings by parallel stochastic gradient descent, or coordinate descent.

    The file has the columns user, item and score; ids are whole numbers or texts.

    MovieLens works as it is: [bold]strads train mf --data u.data.gz --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train mf …[/bold], with the same result.
    """

    data: Annotated[Path, data_option(help="Ratings: CSV, TSV or other delimited text (gzip too), or Parquet.")]
    parameters: MfParameters  # options that are parameters of the estimator

    estimator: ClassVar[str] = "MatrixFactorization"  # its class in `strads.models`
    noun: ClassVar[str] = "ratings"  # what the interactions are called

    def __post_init__(self) -> None:
        if self.parameters.early_stopping and self.holdout == 0:
            raise ArgumentError("--early-stopping needs held-out ratings: give a --holdout above 0")

    @property
    def ends_iterations(self) -> bool:  # type: ignore[override]
        """Coordinate descent copies the factors back only between epochs."""
        return self.parameters.solver == "ccd"

    def kept_record(self, history: list[Record]) -> Mapping[str, Any]:
        """The record of the last epoch or, with early stopping, of the best one."""
        if history and self.parameters.early_stopping:
            return min(history, key=lambda record: record["validation_rmse"])
        return super().kept_record(history)

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Both errors, and the epoch that early stopping has chosen."""
        rows = [("training RMSE", f"{last['rmse']:.4f}")]
        if "validation_rmse" in last:
            best = f", epoch {last['iteration']:.0f}" if self.parameters.early_stopping else ""
            rows.insert(0, ("held-out RMSE", f"{last['validation_rmse']:.4f}{best}"))
        return rows
