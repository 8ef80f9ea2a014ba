"""`strads train`: one command per model, from a data file to a directory with the trained model."""

import typer

from strads.cli.train_bpr import bpr
from strads.cli.train_lasso import lasso
from strads.cli.train_lda import lda
from strads.cli.train_logistic import logistic
from strads.cli.train_mf import mf
from strads.cli.train_mlr import mlr
from strads.cli.train_transe import transe
from strads.cli.train_word2vec import word2vec

app = typer.Typer(help="Train a model from a data file.")
app.command()(mf)
app.command()(lda)
app.command()(lasso)
app.command()(logistic)
app.command()(word2vec)
app.command()(bpr)
app.command()(transe)
app.command()(mlr)


@app.callback(invoke_without_command=True)
def help_without_command(context: typer.Context) -> None:
    """Train a model from a data file."""
    if context.invoked_subcommand is None:
        print(context.get_help())
