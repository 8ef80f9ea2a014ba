"""`strads train transe`: vectors of the entities and relations of a knowledge graph."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strads.cli.train_options import (
    DATA,
    MODEL,
    Common,
    not_negative,
    positive,
)

if TYPE_CHECKING:
    from strads.cli.transe_run import TransERun


class Loss(StrEnum):
    """What is minimized."""

    margin = "margin"
    logistic = "logistic"


class Negatives(StrEnum):
    """Which end of a triple is replaced."""

    uniform = "uniform"
    bernoulli = "bernoulli"


class Normalization(StrEnum):
    """What is done to the norms of entities."""

    none = "none"
    sphere = "sphere"
    ball = "ball"


class Norm(StrEnum):
    """Norm of the distance."""

    one = "1"
    two = "2"


def transe(
    *,
    data: Annotated[
        Path,
        typer.Option(
            help="Triples: head, relation, tail, separated by tabs; or OpenKE's train2id.txt; gzip too.",
            rich_help_panel=DATA,
        ),
    ],
    test: Annotated[
        Path | None, typer.Option(help="Triples to measure on.", show_default=False, rich_help_panel=DATA)
    ] = None,
    known: Annotated[
        list[Path] | None,
        typer.Option(
            help="Further true triples, such as those for validation, for the filtered ranks; may be repeated.",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None,
    entities: Annotated[
        Path | None,
        typer.Option(help="Names of entity ids (entity2id.txt).", show_default=False, rich_help_panel=DATA),
    ] = None,
    relations: Annotated[
        Path | None,
        typer.Option(help="Names of relation ids (relation2id.txt).", show_default=False, rich_help_panel=DATA),
    ] = None,
    dimensions: Annotated[int, typer.Option(min=1, help="Length of the vectors.", rich_help_panel=MODEL)] = 50,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the triples.", rich_help_panel=MODEL)] = 100,
    norm: Annotated[Norm, typer.Option(help="Norm of the distance.", rich_help_panel=MODEL)] = Norm.two,
    loss: Annotated[Loss, typer.Option(help="Margin ranking, or logistic loss.", rich_help_panel=MODEL)] = Loss.margin,
    margin: Annotated[
        float, typer.Option(callback=positive, help="γ; 10 is good for --norm 1.", rich_help_panel=MODEL)
    ] = 4.0,
    n_negatives: Annotated[
        int, typer.Option(min=1, help="Others that each triple is compared with.", rich_help_panel=MODEL)
    ] = 16,
    negatives: Annotated[
        Negatives, typer.Option(help="Which end of a triple is replaced.", rich_help_panel=MODEL)
    ] = Negatives.uniform,
    adversarial_temperature: Annotated[
        float,
        typer.Option(callback=not_negative, help="How much the nearest others count.", rich_help_panel=MODEL),
    ] = 10.0,
    normalization: Annotated[
        Normalization, typer.Option(help="Scale entities to norm 1, or to at most 1.", rich_help_panel=MODEL)
    ] = Normalization.none,
    learning_rate: Annotated[
        float, typer.Option(callback=positive, help="Step size at the start.", rich_help_panel=MODEL)
    ] = 0.2,
    common: Common,
) -> "TransERun":
    """Vectors of entities and relations of a knowledge graph, by TransE (translations).

    FB15k-237: [bold]strads train transe --data train2id.txt --known valid2id.txt --test test2id.txt --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train transe …[/bold], with the same result.
    """
    from strads.cli.transe_run import TransERun

    return TransERun(
        data=data,
        common=common,
        test=test,
        known=tuple(known or ()),
        entities=entities,
        relations=relations,
        parameters={
            "n_components": dimensions,
            "norm": int(norm.value),
            "loss": loss.value,
            "margin": margin,
            "n_negatives": n_negatives,
            "negatives": negatives.value,
            "adversarial_temperature": adversarial_temperature,
            "normalization": normalization.value,
            "max_iter": epochs,
            "learning_rate": learning_rate,
            "random_state": common.seed,
        },
    )
