"""`strads train transe`: vectors of the entities and relations of a knowledge graph."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from strads.cli.train_options import data_option, model_option, not_negative, positive
from strads.cli.train_run import Record, TrainRun
from strads.dds.files import check_announced
from strads.errors import InputError
from strads.models import LinkPrediction, TransE, read_labels, read_triples


@dataclass(frozen=True, kw_only=True)
class TransEParameters:
    """Parameters of the estimator."""

    n_components: Annotated[int, model_option("--dimensions", min=1, help="Length of the vectors.")] = 50
    max_iter: Annotated[int, model_option("--epochs", min=1, help="Passes over the triples.")] = 100
    norm: Annotated[int, model_option(min=1, max=2, help="Norm of the distance.")] = 2
    loss: Annotated[Literal["margin", "logistic"], model_option(help="Margin ranking, or logistic loss.")] = "margin"
    margin: Annotated[float, model_option(callback=positive, help="γ; 10 is good for --norm 1.")] = 4.0
    n_negatives: Annotated[int, model_option(min=1, help="Negative triples that each triple is compared with.")] = 16
    negatives: Annotated[Literal["uniform", "bernoulli"], model_option(help="Which end of a triple is replaced.")] = (
        "uniform"
    )
    adversarial_temperature: Annotated[
        float, model_option(callback=not_negative, help="How much more the nearest negatives count.")
    ] = 10.0
    normalization: Annotated[
        Literal["none", "sphere", "ball"], model_option(help="Scale entities to norm 1, or to at most 1.")
    ] = "none"
    learning_rate: Annotated[float, model_option(callback=positive, help="Step size at the start.")] = 0.2


@dataclass(kw_only=True)
class TransERun(TrainRun):
    """Vectors of entities and relations of a knowledge graph, by TransE (translations).

    FB15k-237: [bold]strads train transe --data train2id.txt --known valid2id.txt --test test2id.txt --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train transe …[/bold], with the same result.
    """

    data: Annotated[
        Path, data_option(help="Triples: head, relation, tail, separated by tabs; or OpenKE's train2id.txt; gzip too.")
    ]
    parameters: TransEParameters  # options that are parameters of the estimator
    test: Annotated[Path | None, data_option(help="Triples to test on.")] = None
    known: Annotated[
        list[Path] | None,
        data_option(
            help="Further true triples, such as those for validation, for the filtered ranks; may be repeated."
        ),
    ] = None
    entities: Annotated[Path | None, data_option(help="Names of entity ids (entity2id.txt).")] = None
    relations: Annotated[Path | None, data_option(help="Names of relation ids (relation2id.txt).")] = None

    estimator: ClassVar[str] = "TransE"  # its class in `strads.models`

    model: TransE = field(init=False)  # the estimator
    _triples: NDArray[Any] = field(init=False)
    _test: NDArray[Any] | None = field(init=False, default=None)
    _known: list[NDArray[Any]] = field(init=False)
    _labels: dict[str, Any] = field(init=False)
    _found: LinkPrediction | None = field(init=False, default=None)

    def read(self) -> None:
        """Read all triples; those of the test must have entities and relations that the model knows."""
        self._triples = read_triples(self.data)
        self._known = [read_triples(path) for path in self.known or ()]
        if self.test is not None:
            self._test = read_triples(self.test)
        everything = [self._triples, *self._known, *([] if self._test is None else [self._test])]
        paths = [self.data, *(self.known or ()), *([] if self.test is None else [self.test])]
        for path, triples in zip(paths, everything, strict=True):
            if (triples.dtype == object) != (self._triples.dtype == object):
                raise InputError(
                    f"{path}: one of this file and {self.data} has ids, the other labels: use the same in both"
                )
        self._labels = {
            kind: self._all_labels(path, everything, columns)
            for kind, path, columns in (("entities", self.entities, [0, 2]), ("relations", self.relations, [1]))
        }

    def _all_labels(self, path: Path | None, everything: list[NDArray[Any]], columns: list[int]) -> Any:
        """Return the labels in a file of ids, or those of all triples: a list, or their number."""
        of_triples = np.concatenate([triples[:, columns].ravel() for triples in everything])
        if of_triples.dtype == object:
            if path is not None:
                raise InputError(f"{path}: the triples have labels, not ids: leave the file out")
            return sorted(set(of_triples.tolist()))
        count = int(of_triples.max()) + 1
        if path is None:
            check_announced(str(self.data), {"ids": count}, len(of_triples))
            return count
        labels = read_labels(path)
        if len(labels) < count:
            raise InputError(
                f"{path}: there are {len(labels)} labels, but {self.data} or another file has the id {count - 1}"
            )
        return labels

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the triples of the data file."""
        self.model.fit(self._triples, **self._labels, on_iteration=on_record)

    def measure(self) -> None:
        """Rank the ends of the test triples."""
        if self._test is not None:
            self._found = self.model.evaluate(self._test, [self._triples, *self._known])

    def announcement(self) -> list[str]:
        """Numbers of triples, entities and relations."""
        data = self.about_data()
        test = "" if self._test is None else f"; {len(self._test):,} to test"
        return [f"{data['triples']:,} triples of {data['entities']:,} entities, {data['relations']:,} relations{test}"]

    def arguments(self) -> Record:
        """The other files."""
        return {name: getattr(self, name) for name in ("test", "entities", "relations")} | {"known": self.known or []}

    def about_data(self) -> Record:
        """The numbers of triples, entities and relations."""
        counts = {kind: labels if isinstance(labels, int) else len(labels) for kind, labels in self._labels.items()}
        return {"triples": len(self._triples), "test_triples": 0 if self._test is None else len(self._test), **counts}

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The loss, and the ranks of the test."""
        return {"loss": last.get("objective"), "test": None if self._found is None else asdict(self._found)}

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The filtered ranks of the test, and the raw ones."""
        rows = [("training loss", f"{last['objective']:.4f}")]
        for name in ("raw", "filtered") if self._found is not None else ():
            found = getattr(self._found, name)
            hits = f"hits@1 {found.hits_at_1:.3f}, @3 {found.hits_at_3:.3f}, @10 {found.hits_at_10:.3f}"
            rows.insert(0, (f"test, {name}", f"MRR {found.mrr:.4f}, {hits}, mean rank {found.mean_rank:,.1f}"))
        return rows
