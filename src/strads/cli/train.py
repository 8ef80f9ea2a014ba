"""`strads train`: one command per model, from a data file to a directory with the trained model."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from strads.cli.bpr_run import BprRun
from strads.cli.lasso_run import LassoRun
from strads.cli.lda_run import LdaRun
from strads.cli.logistic_run import LogisticRun
from strads.cli.mf_run import MfRun
from strads.cli.mlr_run import MlrRun
from strads.cli.options import expanded
from strads.cli.terminal import standard_output
from strads.cli.train_run import TrainRun
from strads.cli.transe_run import TransERun
from strads.cli.word2vec_run import Word2VecRun


def training(kind: type[TrainRun]) -> Callable[..., None]:
    """Return the command that makes a run of its options, and performs it."""

    @wraps(kind, updated=())
    def train(**given: Any) -> None:
        run = kind(**given)
        with run.common.start() as runtime:
            code = run.execute(standard_output(quiet=run.common.quiet), runtime)
        raise typer.Exit(code)

    return expanded(train)


app = typer.Typer(help="Train a model from a data file.")
for _kind in (MfRun, LdaRun, LassoRun, LogisticRun, MlrRun, BprRun, Word2VecRun, TransERun):
    app.command(_kind.command)(training(_kind))


@app.callback(invoke_without_command=True)
def help_without_command(context: typer.Context) -> None:
    """Train a model from a data file."""
    if context.invoked_subcommand is None:
        print(context.get_help())
