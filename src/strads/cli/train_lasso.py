"""`strads train lasso`: sparse linear regression of the samples in a file."""

from typing import TYPE_CHECKING, Annotated

from strads.cli.train_linear_options import LinearOptions, SamplesOption
from strads.cli.train_options import Common, model_option, positive

if TYPE_CHECKING:
    from strads.cli.lasso_run import LassoRun


def lasso(
    *,
    data: SamplesOption,
    alpha: Annotated[float | None, model_option(callback=positive, help="The penalty's strength itself.")] = None,
    options: LinearOptions,
    common: Common,
) -> "LassoRun":
    """Linear regression with few nonzero coefficients (Lasso, elastic net).

    coefficients.tsv then has the intercept and the features that count, the largest first.

    The best of 50 penalties: [bold]strads train lasso --data train.svm --path 50 --test test.svm --out run[/bold]

    A column of a CSV: [bold]strads train lasso --data houses.csv --target price --standardize --out run[/bold]
    """
    from strads.cli.lasso_run import LassoRun
    from strads.cli.penalty import Penalty

    penalty = Penalty.of(alpha=alpha, alpha_ratio=options.alpha_ratio, path=options.path, cv=options.cv)
    return LassoRun(data=data, common=common, options=options, penalty=penalty, parameters=options.parameters())
