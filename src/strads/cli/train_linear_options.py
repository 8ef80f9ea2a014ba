"""Options of commands that learn from samples: of all of them, and of `strads train lasso` and `logistic`."""

import csv
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from strads.cli.train_options import data_option, mixing, model_option, not_negative, positive, share

RATIO = 0.1
STEPS = 50  # of a path that cross-validation chooses from


class Schedule(StrEnum):
    """Which coefficients are updated together, and when."""

    working_set = "working_set"
    dynamic_regression = "dynamic_regression"
    resting = "resting"
    kkt_violation = "kkt_violation"
    random = "random"
    cyclic = "cyclic"


def _names(value: str | None) -> str | None:
    if value is not None and not all(column_names(value)):
        raise typer.BadParameter(f"{value!r}: give names of columns, such as id,date")
    return value


def column_names(value: str | None) -> tuple[str, ...]:
    """Return the names of columns in the value of an option; those with commas are in double quotes, as in a CSV."""
    return (
        () if value is None else tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), [""]))
    )


SamplesOption = Annotated[
    Path,
    data_option(
        help="Samples: LIBSVM, MatrixMarket, npz (X and y, or scipy.sparse), or CSV with a header; text may be gzip."
    ),
]
LabelsOption = Annotated[
    Path | None, data_option(help="What is to be predicted, one a line or .npy, where the file of samples lacks it.")
]
TargetOption = Annotated[
    str | None, data_option(metavar="COLUMN", help="What is to be predicted: a column of the CSV.")
]
DropOption = Annotated[
    str | None, data_option(metavar="COLUMN,…", callback=_names, help="Columns of the CSV to leave out.")
]
CategoricalOption = Annotated[
    str | None,
    data_option(
        metavar="COLUMN,…", callback=_names, help="Columns of the CSV that hold categories: each becomes a feature."
    ),
]
NamesOption = Annotated[Path | None, data_option(help="Names of the features, one a line.")]
TestOption = Annotated[Path | None, data_option(help="Further samples, to measure on; a path chooses by them.")]
TestLabelsOption = Annotated[
    Path | None, data_option(help="What is to be predicted of the further samples, if that is in a file of its own.")
]
HoldoutOption = Annotated[
    float, data_option(callback=share, help="Share of the samples to measure on, in place of further ones.")
]
CvOption = Annotated[
    int | None,
    model_option(
        "--cv", min=2, metavar="FOLDS", help=f"Choose among the strengths of --path, or {STEPS}, by cross-validation."
    ),
]
RatioOption = Annotated[
    float | None,
    model_option(
        "--alpha-ratio",
        callback=positive,
        help=f"The penalty's strength, as a share of that from which on all coefficients are 0; by default {RATIO}.",
    ),
]
PathOption = Annotated[
    int | None,
    model_option("--path", min=2, metavar="STEPS", help="Try this many strengths, from that share of 1 down to 0.001."),
]
MixingOption = Annotated[float, model_option(callback=mixing, help="Share of the ℓ1 norm; below 1: elastic net.")]
StandardizeOption = Annotated[
    bool, model_option("--standardize", help="Penalize as if all columns had a standard deviation of 1.")
]
InterceptOption = Annotated[bool, model_option("--intercept/--no-intercept", help="Fit an intercept.")]
ScheduleOption = Annotated[
    Schedule,
    model_option(help="Which coefficients are updated together; all but working_set run by the Dynamic Engine."),
]
ConcurrencyOption = Annotated[
    int, model_option(min=1, help="How many coefficients are updated together; not of working_set.")
]
ToleranceOption = Annotated[
    float,
    model_option(
        "--tol", callback=not_negative, help="Stop at this duality gap, as a share of the objective without features."
    ),
]
IterationsOption = Annotated[int, model_option("--max-iter", min=1, help="Iterations, at most.")]


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """How samples are read, and which of them are measured on."""

    labels: LabelsOption = None
    target: TargetOption = None
    drop: DropOption = None
    categorical: CategoricalOption = None
    names: NamesOption = None
    test: TestOption = None
    test_labels: TestLabelsOption = None
    holdout: HoldoutOption = 0.0

    def about_samples(self) -> dict[str, Any]:
        """The options, for the run's record."""
        return {
            "labels": None if self.labels is None else str(self.labels),
            "names": None if self.names is None else str(self.names),
            "target": self.target,
            "drop": list(column_names(self.drop)),
            "categorical": list(column_names(self.categorical)),
            "test": None if self.test is None else str(self.test),
            "test_labels": None if self.test_labels is None else str(self.test_labels),
            "holdout": self.holdout,
        }


@dataclass(frozen=True, kw_only=True)
class LinearOptions(SampleOptions):
    """The samples, and how the model is fitted to them."""

    alpha_ratio: RatioOption = None
    path: PathOption = None
    cv: CvOption = None
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
