"""`strads train logistic`: sparse classification of the samples in a file."""

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


def logistic(
    data: linear.SamplesOption,
    out: OutOption,
    labels: linear.LabelsOption = None,
    target: linear.TargetOption = None,
    drop: linear.DropOption = None,
    names: linear.NamesOption = None,
    test: linear.TestOption = None,
    test_labels: linear.TestLabelsOption = None,
    c: Annotated[
        float | None,
        typer.Option(
            "--C",
            callback=positive,
            help="Weight of the loss against the penalty, itself.",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = None,
    alpha_ratio: linear.RatioOption = None,
    path: linear.PathOption = None,
    l1_ratio: linear.MixingOption = 1.0,
    balanced: Annotated[
        bool,
        typer.Option(
            "--balanced", help="Let both classes count the same, whatever their sizes.", rich_help_panel=MODEL
        ),
    ] = False,
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
    """Logistic regression of two classes with few nonzero coefficients.

    coefficients.tsv then has the features that count, the largest first; positive ones speak for the second class.

    The best of 50 penalties: [bold]strads train logistic --data train.svm --path 50 --test test.svm --out run[/bold]

    A column of a CSV: [bold]strads train logistic --data mail.csv --target spam --standardize --out run[/bold]
    """
    from strads.cli.linear_run import DesignOptions, LogisticRun, Penalty

    linear.one_of(C=c, alpha_ratio=alpha_ratio, path=path)
    ratio = linear.RATIO if c is None and path is None and alpha_ratio is None else alpha_ratio
    run = LogisticRun(
        data=data,
        out=out,
        options=DesignOptions(labels, names, target, linear.columns(drop)),
        test=test,
        test_labels=test_labels,
        penalty=Penalty(c, ratio, path),
        overwrite=overwrite,
        where={"backend": backend, "nodes": nodes, "threads": threads, "address": address, "timeout": timeout},
        parameters={
            "penalty": "l1" if l1_ratio == 1 else "elasticnet",
            "l1_ratio": l1_ratio,
            "class_weight": "balanced" if balanced else None,
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
