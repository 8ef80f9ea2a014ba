"""`strads train lasso`: sparse linear regression of the samples in a file."""

from typing import TYPE_CHECKING, Annotated

import typer

from strads.cli.train_linear_options import LinearOptions, SamplesOption
from strads.cli.train_options import MODEL, Common, positive

if TYPE_CHECKING:
    from strads.cli.linear_run import LassoRun


def lasso(
    *,
    data: SamplesOption,
    alpha: Annotated[
        float | None,
        typer.Option(
            callback=positive, help="The penalty's strength itself.", show_default=False, rich_help_panel=MODEL
        ),
    ] = None,
    options: LinearOptions,
    common: Common,
) -> "LassoRun":
    """Linear regression with few nonzero coefficients (Lasso, elastic net).

    coefficients.tsv then has the features that count, the largest first.

    The best of 50 penalties: [bold]strads train lasso --data train.svm --path 50 --test test.svm --out run[/bold]

    A column of a CSV: [bold]strads train lasso --data houses.csv --target price --standardize --out run[/bold]
    """
    from strads.cli.linear_run import LassoRun, Penalty

    penalty = Penalty.of(alpha=alpha, alpha_ratio=options.alpha_ratio, path=options.path)
    return LassoRun(data=data, common=common, options=options, penalty=penalty, parameters=options.parameters())
