"""`strads train bpr`: Bayesian personalized ranking of the interactions in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from strads.cli.interactions_options import Reading, SplitBy, SplitOption
from strads.cli.train_options import Common, data_option, model_option, not_negative, positive, share

if TYPE_CHECKING:
    from strads.cli.bpr_run import BprRun


def bpr(
    *,
    data: Annotated[Path, data_option(help="Interactions: CSV, TSV or other delimited text (gzip too), or Parquet.")],
    reading: Reading,
    at_least: Annotated[
        float | None, data_option(help="Score from which on an item is liked; by default all above 0.")
    ] = None,
    holdout: Annotated[
        float, data_option(callback=share, help="Share of the likes, chosen at random, to measure on.")
    ] = 0.1,
    split: SplitOption = SplitBy.random,
    factors: Annotated[int, model_option(min=1, help="Factors of each user and item.")] = 100,
    iterations: Annotated[int, model_option(min=1, help="Passes over the likes.")] = 100,
    learning_rate: Annotated[float, model_option(callback=positive, help="Step size.")] = 0.01,
    regularization: Annotated[float, model_option(callback=not_negative, help="λ of the squared norms.")] = 0.01,
    verify: Annotated[
        bool,
        model_option("--verify-negative-samples/--no-verify-negative-samples", help="Never rank a like below another."),
    ] = True,
    common: Common,
) -> "BprRun":
    """Bayesian personalized ranking: learns from what users chose which other items they will like.

    The file has the columns user, item and, if you like, score; ids are whole numbers or texts.

    MovieLens works as it is: [bold]strads train bpr --data u.data.gz --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train bpr …[/bold], with the same result.
    """
    from strads.cli.bpr_run import BprRun

    return BprRun(
        data=data,
        common=common,
        reading=reading,
        at_least=at_least,
        holdout=holdout,
        split=split,
        parameters={
            "factors": factors,
            "iterations": iterations,
            "learning_rate": learning_rate,
            "regularization": regularization,
            "verify_negative_samples": verify,
            "random_state": common.seed,
        },
    )
