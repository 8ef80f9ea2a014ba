"""TransE: entities and relations of a knowledge graph as vectors."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints import learned_data
from strads.errors import ArgumentError, InputError
from strads.models._file_contents import Table
from strads.models._iterative import IterativeEstimator, OnIteration
from strads.models._parameters import (
    check_choice,
    check_positive,
    check_whole_number,
    check_whole_numbers,
    recorded_seed,
)
from strads.models.kernels.aligned import padded_rows
from strads.models.kernels.transe import LOGISTIC, MARGIN, Objective
from strads.models.kernels.translations import BALL, FREE, SPHERE
from strads.models.kernels.triple_ranking import all_distances, pair_distances
from strads.models.knowledge_graphs.program import Settings
from strads.models.knowledge_graphs.ranking import KnownAnswers, LinkPrediction, predict_links
from strads.models.knowledge_graphs.training import (
    Translations,
    TranslationSolver,
    initial_vectors,
    tail_shares,
)
from strads.models.knowledge_graphs.triples import Labels, as_columns, to_numbers, without_duplicates
from strads.progress import Shown

_LOSSES = {"margin": MARGIN, "logistic": LOGISTIC}
_CONSTRAINTS = {"none": FREE, "sphere": SPHERE, "ball": BALL}
_NEGATIVES = ("uniform", "bernoulli")
_SCHEDULES = ("linear", "constant")


@dataclass(eq=False, repr=False)
class TransE(IterativeEstimator):
    """Embeds a knowledge graph: of a triple (head, relation, tail), head + relation is near tail (Bordes et al. 2013).

    Compares each triple, in each epoch, with `n_negatives` others, in which another entity replaces its head or its
    tail, and takes a gradient step with step sizes of AdaGrad. The result depends only on the seed, not on the number
    of threads and nodes or on timing. On a cluster started by `strads.init`, the vectors stay on the nodes during
    training.

    Parameters
    ----------
    n_components : int, default 50
        d, length of the vectors.
    norm : {2, 1}, default 2
        Which norm is the distance ‖head + relation − tail‖.
    loss : {"margin", "logistic"}, default "margin"
        With distances d of a triple and dᵢ of its negatives, and weights pᵢ that sum to 1:
        "margin" is Σ pᵢ max(0, γ + d − dᵢ), margin ranking;
        "logistic" is −log σ(γ − d) − Σ pᵢ log σ(dᵢ − γ) (Sun et al. 2019, eq. 5).
    margin : float, default 4.0
        γ. Good values are larger for `norm=1`, such as 10, and 1 if entities are normalized.
    n_negatives : int, default 16
        Number of negatives of each triple.
    negatives : {"uniform", "bernoulli"}, default "uniform"
        Whether head and tail are replaced equally often, or the one more often that has fewer alternatives in the
        triples of the relation (Wang et al. 2014). Entities are drawn uniformly from two blocks of them, see Notes.
    adversarial_temperature : float, default 10.0
        α in pᵢ ∝ exp(−α dᵢ): the larger, the more the nearest negatives count (Sun et al. 2019, eq. 4); 0 for equal
        weights. Negatives with less than a hundredth of the largest weight are left out.
    normalization : {"none", "sphere", "ball"}, default "none"
        Whether entities are scaled to ‖x‖₂ = 1 after each step, as Bordes et al. do, or only if they are longer.
    max_iter : int, default 100
        Number of epochs, passes over the triples.
    learning_rate : float, default 0.2
        Step size η: a row's step is η / √G, with G the row's summed mean squared gradients.
    learning_rate_schedule : {"linear", "constant"}, default "linear"
        "linear" decreases the step size from epoch to epoch, towards 0 after `max_iter` of them.
    n_jobs, random_state, verbose
        As of `MatrixFactorization`.

    Attributes
    ----------
    entity_vectors_ : ndarray of shape (n_entities, n_components), float32
    relation_vectors_ : ndarray of shape (n_relations, n_components), float32
    entities_, relations_ : ndarray of shape (n_entities,), (n_relations,)
        Label of each row: str objects, or the ids 0, 1, 2, …
    n_iter_ : int
        Number of epochs run.
    history_ : list of dict
        One record per epoch: `iteration`; `seconds` of training so far; `samples` (triples visited so far);
        `objective`, the mean loss of a triple, measured just before its step; `nodes`, statistics of each node.

    Notes
    -----
    Entities are divided into blocks, and every two blocks meet once an epoch; the negatives of a triple come from the
    two blocks of its head and tail (Lerer et al. 2019). Entities are dealt to blocks anew every few epochs. Every node
    holds all triples (24 bytes each) and the vectors of all relations.

    Examples
    --------
    >>> triples = [("Paris", "capital of", "France"), ("Rome", "capital of", "Italy"), ("Rome", "in", "Italy")]
    >>> model = TransE(n_components=4, max_iter=5).fit(triples)
    >>> labels, scores = model.predict_tails("Paris", "in", topn=2)
    >>> labels.shape
    (2,)
    """

    n_components: int = 50
    _: KW_ONLY
    norm: int = 2
    loss: str = "margin"
    margin: float = 4.0
    n_negatives: int = 16
    negatives: str = "uniform"
    adversarial_temperature: float = 10.0
    normalization: str = "none"
    max_iter: int = 100
    learning_rate: float = 0.2
    learning_rate_schedule: str = "linear"
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    shown: ClassVar = Shown({"objective": "loss"}, "triples")

    _contents: ClassVar = {
        "entities": Table(dtypes="f4", shape=("entities", "columns")),
        "relations": Table(dtypes="f4", shape=("relations", "columns")),
    }

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        entities: Any = None,
        relations: Any = None,
        on_iteration: OnIteration | None = None,
    ) -> Self:
        """Fit to triples.

        Parameters
        ----------
        X : array, list or table of shape (n, 3)
            Head, relation, tail: ids 0, 1, 2, … as integers, or labels as strings; `strads.models.read_triples` reads
            files. A table (a data frame, an Arrow table, a dict of columns) calls its columns head, relation and tail,
            or h, r, t, or subject, predicate, object, in any order. Duplicates are left out, with a warning.
        y
            Ignored.
        entities, relations : int or list of str, optional
            How many there are, or their labels in the order of their ids; by default those of the triples, labels in
            alphabetical order. Those without triples keep their random initial vectors.
        on_iteration
            Called with the record of each epoch; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters or triples; the message names the first.
        NodeFailure
            If a node is lost.
        """
        self._check_parameters()
        found = as_columns(X)
        ends = Labels.of(found[:, [0, 2]], entities, "entity")
        kinds = Labels.of(found[:, 1], relations, "relation")
        if len(ends) < 2:
            raise InputError("the triples have a single entity: there is nothing to compare them with")
        triples = without_duplicates(to_numbers(found, ends, kinds, "triples"))
        self._forget("entity_vectors_", "relation_vectors_")
        self._entities, self._relations = ends, kinds
        self.n_features_in_ = 3
        shares = np.full(len(kinds), 0.5, np.float32)
        if self.negatives == "bernoulli":
            shares = tail_shares(triples, len(kinds))
        seed = recorded_seed(self.random_state)
        size = len(ends), len(kinds), int(self.n_components)
        start = initial_vectors(*size, float(self.margin), seed)
        with TranslationSolver(triples, start, shares, self._settings(seed), self._threads) as solver:
            self._train(solver, on_iteration, data=learned_data(triples, ends.names, kinds.names))
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole_numbers(self, "n_components", "n_negatives", "max_iter")
        if isinstance(self.norm, bool) or self.norm not in (1, 2):
            raise ArgumentError(f"norm={self.norm!r}: give 1 or 2")
        check_choice(self, "loss", tuple(_LOSSES))
        check_choice(self, "negatives", _NEGATIVES)
        check_choice(self, "normalization", tuple(_CONSTRAINTS))
        check_choice(self, "learning_rate_schedule", _SCHEDULES)
        check_positive(self, "margin", "learning_rate")
        check_positive(self, "adversarial_temperature", or_zero=True)

    def _settings(self, seed: int) -> Settings:
        objective = Objective(
            _LOSSES[self.loss],
            int(self.norm),
            np.float32(self.margin),
            np.float32(self.adversarial_temperature),
            _CONSTRAINTS[self.normalization],
            np.float32(1 / self.n_components),
        )
        return Settings(
            objective=objective,
            negatives=int(self.n_negatives),
            learning_rate=float(self.learning_rate),
            decay_epochs=int(self.max_iter) if self.learning_rate_schedule == "linear" else 0,
            seed=seed,
        )

    def _publish(self, learnt: Translations) -> None:
        self._vectors = learnt
        columns = int(self.n_components)
        self.entity_vectors_, self.relation_vectors_ = (table[:, :columns] for table in learnt)

    @property
    def entities_(self) -> NDArray[Any]:
        """Label of each row of `entity_vectors_`."""
        self._check_fitted()
        return self._entities.names

    @property
    def relations_(self) -> NDArray[Any]:
        """Label of each row of `relation_vectors_`."""
        self._check_fitted()
        return self._relations.names

    def score_triples(self, triples: Any) -> NDArray[np.float32]:
        """Score triples by −‖head + relation − tail‖.

        Parameters
        ----------
        triples : array or list of shape (n, 3)

        Returns
        -------
        ndarray of shape (n,), float32

        Raises
        ------
        InputError
            For unknown entities or relations, and ids out of range.
        """
        numbers = self._numbers(triples, "triples")
        lengths = np.empty(len(numbers), np.float32)
        pair_distances(*self._vectors, numbers, int(self.norm), lengths)
        return -lengths

    def predict_tails(
        self, head: Any, relation: Any, topn: int = 10, *, exclude: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Return the entities that most likely are tails of (head, relation, ?), best first.

        Parameters
        ----------
        head, relation
            Labels or ids, as in `fit`.
        topn : int, default 10
            How many.
        exclude : array or list of shape (n, 3), optional
            Triples, such as those of the training: tails that make one of them are left out.

        Returns
        -------
        labels : ndarray of shape (topn,)
            Labels or ids; fewer if there are fewer.
        scores : ndarray of shape (topn,), float32
            −‖head + relation − tail‖.

        Raises
        ------
        ArgumentError, InputError
            For unknown labels, ids out of range, or an invalid `topn`.
        """
        return self._nearest(head, relation, topn, exclude, anchor=0)

    def predict_heads(
        self, relation: Any, tail: Any, topn: int = 10, *, exclude: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Return the entities that most likely are heads of (?, relation, tail), best first; as `predict_tails`."""
        return self._nearest(tail, relation, topn, exclude, anchor=2)

    def _nearest(
        self, entity: Any, relation: Any, topn: int, exclude: Any, *, anchor: int
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        check_whole_number("topn", topn)
        query = self._numbers([(entity, relation, entity)], "the query")
        lengths = np.empty((1, len(self._entities)), np.float32)
        direction = np.array([1 if anchor == 0 else -1], np.float32)
        all_distances(*self._vectors, query[:, anchor].copy(), query[:, 1].copy(), direction, int(self.norm), lengths)
        candidates = np.ones(len(self._entities), bool)
        if exclude is not None:
            known = KnownAnswers(self._numbers(exclude, "exclude"), len(self._relations))
            candidates[known.of(query, anchor)[1]] = False
        found = np.flatnonzero(candidates)
        best = found[np.argsort(lengths[0, found], kind="stable")[:topn]]
        return self._entities.names[best], -lengths[0, best]

    def evaluate(self, test: Any, known: Any = ()) -> LinkPrediction:
        """Rank the tail and the head of each test triple among all entities (Bordes et al. 2013, §4.2).

        Parameters
        ----------
        test : array or list of shape (n, 3)
        known : array, or list of arrays, of shape (n, 3)
            Further true triples, such as those of training and validation. `filtered` ranks leave out entities that
            make a known triple or one of the test, other than the one ranked. A test triple may be a known one.

        Returns
        -------
        LinkPrediction
            `raw` and `filtered`, each with `mrr`, `mean_rank`, `hits_at_1`, `hits_at_3`, `hits_at_10`; over both sides.
            An entity at the same distance as the right one adds a half to its rank.

        Raises
        ------
        InputError
            For unknown entities or relations, and ids out of range.
        """
        queries = self._numbers(test, "test")
        groups = [known] if hasattr(known, "shape") or (len(known) and _is_triple(known[0])) else known
        others = [self._numbers(group, "known") for group in groups if len(group)]
        everything = np.concatenate([queries, *others])
        return predict_links(queries, everything, *self._vectors, int(self.norm), self._team())

    def _numbers(self, triples: Any, what: str) -> NDArray[np.int32]:
        self._check_fitted()
        return to_numbers(as_columns(triples, what), self._entities, self._relations, what)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {"entities": self.entity_vectors_, "relations": self.relation_vectors_}
        labels = {
            labels.kind: labels.names.tolist() if labels.are_strings else len(labels)
            for labels in (self._entities, self._relations)
        }
        return {"labels": labels}, arrays

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        given = parameters["labels"]
        nothing = np.zeros(0, np.int64)
        for kind, name in (("entity", "entities"), ("relation", "relations")):
            count = len(given[kind]) if isinstance(given[kind], list) else given[kind]
            if count != len(arrays[name]):
                raise ValueError(f"{count} labels of {len(arrays[name])} {name}")
        self._entities, self._relations = (Labels.of(nothing, given[kind], kind) for kind in ("entity", "relation"))
        columns = int(self.n_components)
        if arrays["entities"].shape[1] != columns:
            raise ValueError(f"vectors of {arrays['entities'].shape[1]} components, not n_components={columns}")
        self.n_features_in_ = 3
        self._publish(Translations(padded_rows(arrays["entities"]), padded_rows(arrays["relations"])))


def _is_triple(value: Any) -> bool:
    return len(value) == 3 and all(np.ndim(part) == 0 for part in value)
