"""`strads train logistic`: sparse classification of the samples in a file."""

from typing import TYPE_CHECKING, Annotated

from strads.cli.train_linear_options import LinearOptions, SamplesOption
from strads.cli.train_options import Common, model_option, positive

if TYPE_CHECKING:
    from strads.cli.logistic_run import LogisticRun


def logistic(
    *,
    data: SamplesOption,
    c: Annotated[
        float | None, model_option("--C", callback=positive, help="Weight of the loss against the penalty, itself.")
    ] = None,
    balanced: Annotated[
        bool, model_option("--balanced", help="Let both classes count the same, whatever their sizes.")
    ] = False,
    options: LinearOptions,
    common: Common,
) -> "LogisticRun":
    """Logistic regression of two classes with few nonzero coefficients.

    coefficients.tsv then has the intercept and the features that count, the largest first. Positive ones speak for the
    class that is named.

    The best of 50 penalties: [bold]strads train logistic --data train.svm --path 50 --test test.svm --out run[/bold]

    A column of a CSV: [bold]strads train logistic --data mail.csv --target spam --standardize --out run[/bold]
    """
    from strads.cli.logistic_run import LogisticRun
    from strads.cli.penalty import Penalty

    parameters = options.parameters() | {
        "class_weight": "balanced" if balanced else None,
    }
    penalty = Penalty.of(C=c, alpha_ratio=options.alpha_ratio, path=options.path, cv=options.cv)
    return LogisticRun(data=data, common=common, options=options, penalty=penalty, parameters=parameters)
