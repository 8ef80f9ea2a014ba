"""Options common to `strads train lasso` and `strads train logistic`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from strads.cli.train_options import DATA, MODEL, mixing, not_negative, positive

RATIO = 0.1


class Schedule(StrEnum):
    """Which coefficients are updated together, and when."""

    working_set = "working_set"
    dynamic_regression = "dynamic_regression"
    resting = "resting"
    kkt_violation = "kkt_violation"
    random = "random"
    cyclic = "cyclic"


def _names(value: str | None) -> str | None:
    if value is not None and not all(name.strip() for name in value.split(",")):
        raise typer.BadParameter(f"{value!r}: give names of columns, such as id,date")
    return value


def column_names(value: str | None) -> tuple[str, ...]:
    """Return the names of columns in the value of an option."""
    return () if value is None else tuple(name.strip() for name in value.split(","))


SamplesOption = Annotated[
    Path,
    typer.Option(
        help="Samples: LIBSVM, MatrixMarket, npz (X and y, or scipy.sparse), or CSV with a header; text may be gzip.",
        rich_help_panel=DATA,
    ),
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(
        help="What is to be predicted, one a line or .npy, where the file of samples lacks it.",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="What is to be predicted: a column of the CSV.",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
DropOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,…",
        callback=_names,
        help="Columns of the CSV to leave out.",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
NamesOption = Annotated[
    Path | None,
    typer.Option(help="Names of the features, one a line.", show_default=False, rich_help_panel=DATA),
]
TestOption = Annotated[
    Path | None,
    typer.Option(
        help="Further samples, to measure on; a path chooses by them.", show_default=False, rich_help_panel=DATA
    ),
]
TestLabelsOption = Annotated[
    Path | None,
    typer.Option(
        help="What is to be predicted of the further samples, if that is in a file of its own.",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
RatioOption = Annotated[
    float | None,
    typer.Option(
        "--alpha-ratio",
        callback=positive,
        help=f"The penalty's strength, as a share of that from which on all coefficients are 0; by default {RATIO}.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
PathOption = Annotated[
    int | None,
    typer.Option(
        "--path",
        min=2,
        metavar="STEPS",
        help="Try so many strengths, from that share of 1 down to 0.001.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
MixingOption = Annotated[
    float,
    typer.Option(callback=mixing, help="Share of the ℓ1 norm; below 1: elastic net.", rich_help_panel=MODEL),
]
StandardizeOption = Annotated[
    bool,
    typer.Option(
        "--standardize", help="Penalize as if all columns had a standard deviation of 1.", rich_help_panel=MODEL
    ),
]
InterceptOption = Annotated[
    bool, typer.Option("--intercept/--no-intercept", help="Fit an intercept.", rich_help_panel=MODEL)
]
ScheduleOption = Annotated[
    Schedule,
    typer.Option(
        help="Which coefficients are updated together; all but working_set run by the Dynamic Engine.",
        rich_help_panel=MODEL,
    ),
]
ConcurrencyOption = Annotated[
    int,
    typer.Option(min=1, help="How many coefficients are updated together; not of working_set.", rich_help_panel=MODEL),
]
ToleranceOption = Annotated[
    float,
    typer.Option(
        "--tol",
        callback=not_negative,
        help="Stop at this duality gap, as a share of the objective without features.",
        rich_help_panel=MODEL,
    ),
]
IterationsOption = Annotated[int, typer.Option("--max-iter", min=1, help="Iterations, at most.", rich_help_panel=MODEL)]


@dataclass(frozen=True, kw_only=True)
class LinearOptions:
    """The samples, and how the model is fitted to them."""

    labels: LabelsOption = None
    target: TargetOption = None
    drop: DropOption = None
    names: NamesOption = None
    test: TestOption = None
    test_labels: TestLabelsOption = None
    alpha_ratio: RatioOption = None
    path: PathOption = None
    l1_ratio: MixingOption = 1.0
    standardize: StandardizeOption = False
    intercept: InterceptOption = True
    schedule: ScheduleOption = Schedule.working_set
    concurrency: ConcurrencyOption = 8
    tol: ToleranceOption = 1e-6
    max_iter: IterationsOption = 1000

    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimators, except the strength of the penalty and the solver."""
        ridge = {} if self.l1_ratio == 1 else {"l1_ratio": self.l1_ratio}
        return ridge | {
            "standardize": self.standardize,
            "fit_intercept": self.intercept,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }
