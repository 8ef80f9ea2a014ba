"""`strads train mlr`: multinomial logistic regression of the samples in a file."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from strads.cli import train_linear_options as linear
from strads.cli.train_options import Common, model_option, positive

if TYPE_CHECKING:
    from strads.cli.mlr_run import MlrRun


class PenaltyName(StrEnum):
    """The penalty of the coefficients."""

    l2 = "l2"
    l1 = "l1"
    none = "none"


def mlr(
    *,
    data: linear.SamplesOption,
    options: linear.SampleOptions,
    penalty: Annotated[PenaltyName, model_option(help="l1 makes most coefficients 0.")] = PenaltyName.l2,
    c: Annotated[float, model_option("--C", callback=positive, help="Weight of the loss against the penalty.")] = 1.0,
    balanced: Annotated[
        bool, model_option("--balanced", help="Let all classes count the same, whatever their sizes.")
    ] = False,
    intercept: linear.InterceptOption = True,
    tol: linear.ToleranceOption = 1e-4,
    max_iter: linear.IterationsOption = 1000,
    common: Common,
) -> "MlrRun":
    """Multinomial logistic regression of two classes or more.

    coefficients.tsv then has the intercept and the nonzero coefficients of each class, the largest first.

    [bold]strads train mlr --data train.svm --test test.svm --out run[/bold]

    Few coefficients, of a CSV: [bold]strads train mlr --data mail.csv --target kind --penalty l1 --out run[/bold]
    """
    from strads.cli.mlr_run import MlrRun

    return MlrRun(
        data=data,
        common=common,
        options=options,
        parameters={
            "penalty": None if penalty is PenaltyName.none else penalty.value,
            "C": c,
            "class_weight": "balanced" if balanced else None,
            "fit_intercept": intercept,
            "tol": tol,
            "max_iter": max_iter,
            "random_state": common.seed,
        },
    )
