"""`strads train`: one command per model, from a data file to a directory with the trained model."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import typer

from strads.cli.options import expanded
from strads.cli.terminal import standard_output
from strads.cli.train_bpr import bpr
from strads.cli.train_lasso import lasso
from strads.cli.train_lda import lda
from strads.cli.train_logistic import logistic
from strads.cli.train_mf import mf
from strads.cli.train_mlr import mlr
from strads.cli.train_transe import transe
from strads.cli.train_word2vec import word2vec

if TYPE_CHECKING:
    from strads.cli.train_run import TrainRun


def training(describe: "Callable[..., TrainRun]") -> Callable[..., None]:
    """Return the command that performs the run which a function describes by its options."""

    @wraps(describe)
    def train(**given: Any) -> None:
        run = describe(**given)
        with run.common.start() as runtime:
            code = run.execute(standard_output(quiet=run.common.quiet), runtime)
        raise typer.Exit(code)

    return expanded(train)


app = typer.Typer(help="Train a model from a data file.")
for _model in (mf, lda, lasso, logistic, mlr, bpr, word2vec, transe):
    app.command()(training(_model))


@app.callback(invoke_without_command=True)
def help_without_command(context: typer.Context) -> None:
    """Train a model from a data file."""
    if context.invoked_subcommand is None:
        print(context.get_help())
