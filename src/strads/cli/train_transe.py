"""`strads train transe`: vectors of the entities and relations of a knowledge graph."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from strads.cli.train_options import Common, data_option, model_option, not_negative, positive

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
        Path, data_option(help="Triples: head, relation, tail, separated by tabs; or OpenKE's train2id.txt; gzip too.")
    ],
    test: Annotated[Path | None, data_option(help="Triples to measure on.")] = None,
    known: Annotated[
        list[Path] | None,
        data_option(
            help="Further true triples, such as those for validation, for the filtered ranks; may be repeated."
        ),
    ] = None,
    entities: Annotated[Path | None, data_option(help="Names of entity ids (entity2id.txt).")] = None,
    relations: Annotated[Path | None, data_option(help="Names of relation ids (relation2id.txt).")] = None,
    dimensions: Annotated[int, model_option(min=1, help="Length of the vectors.")] = 50,
    epochs: Annotated[int, model_option(min=1, help="Passes over the triples.")] = 100,
    norm: Annotated[Norm, model_option(help="Norm of the distance.")] = Norm.two,
    loss: Annotated[Loss, model_option(help="Margin ranking, or logistic loss.")] = Loss.margin,
    margin: Annotated[float, model_option(callback=positive, help="γ; 10 is good for --norm 1.")] = 4.0,
    n_negatives: Annotated[int, model_option(min=1, help="Others that each triple is compared with.")] = 16,
    negatives: Annotated[Negatives, model_option(help="Which end of a triple is replaced.")] = Negatives.uniform,
    adversarial_temperature: Annotated[
        float, model_option(callback=not_negative, help="How much the nearest others count.")
    ] = 10.0,
    normalization: Annotated[
        Normalization, model_option(help="Scale entities to norm 1, or to at most 1.")
    ] = Normalization.none,
    learning_rate: Annotated[float, model_option(callback=positive, help="Step size at the start.")] = 0.2,
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
