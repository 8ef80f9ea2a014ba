"""`strads train`: one command per model, from a data file to a directory with the trained model."""

import typer

from strads.cli.deferred import add_deferred

app = typer.Typer(help="Train a model from a data file.")
for _model, _run in (
    ("mf", "MfRun"),
    ("lda", "LdaRun"),
    ("lasso", "LassoRun"),
    ("logistic", "LogisticRun"),
    ("mlr", "MlrRun"),
    ("bpr", "BprRun"),
    ("word2vec", "Word2VecRun"),
    ("transe", "TransERun"),
):
    add_deferred(app, _model, f"{_model}_run", _run)


@app.callback(invoke_without_command=True)
def help_without_command(context: typer.Context) -> None:
    """Train a model from a data file."""
    if context.invoked_subcommand is None:
        print(context.get_help())
