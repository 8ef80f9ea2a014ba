"""`strads train lasso`: sparse linear regression of the samples in a file."""

from typing import Annotated

import typer

from strads.cli import train_linear_options as linear
from strads.cli.cluster_options import (
    TIMEOUT,
    AddressOption,
    BackendOption,
    NodesOption,
    ThreadsOption,
    TimeoutOption,
    start,
)
from strads.cli.terminal import standard_output
from strads.cli.train_options import MODEL, DebugOption, OutOption, OverwriteOption, SeedOption, positive


def lasso(
    data: linear.SamplesOption,
    out: OutOption,
    labels: linear.LabelsOption = None,
    target: linear.TargetOption = None,
    drop: linear.DropOption = None,
    names: linear.NamesOption = None,
    test: linear.TestOption = None,
    test_labels: linear.TestLabelsOption = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            callback=positive, help="The penalty's strength itself.", show_default=False, rich_help_panel=MODEL
        ),
    ] = None,
    alpha_ratio: linear.RatioOption = None,
    path: linear.PathOption = None,
    l1_ratio: linear.MixingOption = 1.0,
    standardize: linear.StandardizeOption = False,
    intercept: linear.InterceptOption = True,
    schedule: linear.ScheduleOption = linear.Schedule.working_set,
    concurrency: linear.ConcurrencyOption = None,
    tol: linear.ToleranceOption = 1e-6,
    max_iter: linear.IterationsOption = 1000,
    backend: BackendOption = None,
    nodes: NodesOption = None,
    threads: ThreadsOption = None,
    address: AddressOption = None,
    timeout: TimeoutOption = TIMEOUT,
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
    debug: DebugOption = False,
) -> None:
    """Linear regression with few nonzero coefficients (Lasso, elastic net).

    coefficients.tsv then has the features that count, the largest first.

    The best of 50 penalties: [bold]strads train lasso --data train.svm --path 50 --test test.svm --out run[/bold]

    A column of a CSV: [bold]strads train lasso --data houses.csv --target price --standardize --out run[/bold]
    """
    from strads.cli.linear_run import DesignOptions, LassoRun, Penalty

    linear.one_of(alpha=alpha, alpha_ratio=alpha_ratio, path=path)
    ratio = linear.RATIO if alpha is None and path is None and alpha_ratio is None else alpha_ratio
    run = LassoRun(
        data=data,
        out=out,
        options=DesignOptions(labels, names, target, linear.columns(drop)),
        test=test,
        test_labels=test_labels,
        penalty=Penalty(alpha, ratio, path),
        overwrite=overwrite,
        where={"backend": backend, "nodes": nodes, "threads": threads, "address": address, "timeout": timeout},
        parameters={
            "l1_ratio": l1_ratio,
            "standardize": standardize,
            "fit_intercept": intercept,
            "schedule": schedule.value,
            "concurrency": concurrency,
            "tol": tol,
            "max_iter": max_iter,
            "random_state": seed,
        },
    )
    with start(backend, nodes, threads, address, timeout) as runtime:
        code = run.execute(standard_output(), runtime)
    raise typer.Exit(code)
