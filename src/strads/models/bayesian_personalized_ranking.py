"""Bayesian personalized ranking of items that users have not chosen yet."""

import time
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints import learned_data
from strads.models._continuing import CALLS, SEED
from strads.models._file_contents import Number, Offsets, Table
from strads.models._iterative import OnIteration
from strads.models._parameters import (
    check_positive,
    check_switches,
    check_whole_numbers,
    check_workers,
    recorded_seed,
)
from strads.models.factorization.item_log import ItemLog
from strads.models.interactions.identified import IdIndexes
from strads.models.ranking.likes import KnownLikes, Likes, as_likes, check_rankable
from strads.models.ranking.online import OnlineRanking
from strads.models.ranking.recommender import Recommender
from strads.models.ranking.training import RankingFactors, RankingSolver, means
from strads.partition import distinct_pairs
from strads.progress import Shown


@dataclass(eq=False, repr=False)
class BayesianPersonalizedRanking(Recommender):
    """Ranks items for users by ⟨factors of the user, factors of the item⟩ + bias of the item, from implicit feedback.

    Maximizes Σ ln σ(x_ui − x_uj) − λ/2 ‖Θ‖² over triples of a user u, an item i that u likes, and another item j, by
    stochastic gradient ascent (Rendle, Freudenthaler, Gantner and Schmidt-Thieme, UAI 2009). Users stay with logical
    workers, blocks of items rotate over them, and j is drawn from the block of i, by popularity; the items are dealt to
    other blocks every few epochs. So the result depends on the seed and on `n_workers`, but not on threads, nodes,
    backend or timing.

    Parameters
    ----------
    factors : int, default 100
        Number of factors of each user and item.
    learning_rate : float, default 0.01
        Step size η.
    regularization : float, default 0.01
        λ of the factors and biases of each triple.
    iterations : int, default 100
        Number of epochs; each visits every like once.
    verify_negative_samples : bool, default True
        Whether j must be an item that u does not like: if one is drawn that u likes, there is no step.
    n_workers : int or None, default None
        Number of logical workers P, at most that many threads are used; None: by the number of likes, up to 64. An item
        meets only others of its block, a P-th of all, until the next deal.
    n_jobs, random_state, verbose
        As of `MatrixFactorization`.

    Attributes
    ----------
    user_ids_, item_ids_ : ndarray of shape (n_users,), (n_items,)
        Ids of the rows: int64, or objects of type str.
    user_factors_, item_factors_ : ndarray of shape (n_users, factors), (n_items, factors), float32
        Those of users and items without likes are 0.
    item_biases_ : ndarray of shape (n_items,), float32
    n_iter_ : int
        Number of epochs run.
    history_ : list of dict
        One record per epoch: `iteration`; `seconds` of training so far; `samples` (likes visited so far); `objective`,
        the mean of ln σ(x_ui − x_uj), and `correct`, the share of triples with x_ui > x_uj, each triple measured just
        before its step; `skipped`, the share of likes without a step; `validation_auc` if likes are held out;
        `nodes`, statistics of each node.

    Notes
    -----
    Ids are whole numbers or texts; those that occur get a row. A user without likes, as a sparse matrix may have, has
    no factors: the best items for them are those with the highest bias. Weights tell likes (above 0) from the rest (0,
    or not stored); their size does not matter.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> likes = scipy.sparse.csr_array(np.eye(6, 8, dtype=int) + np.eye(6, 8, 1, dtype=int))
    >>> model = BayesianPersonalizedRanking(factors=4, iterations=5).fit(likes)
    >>> items, scores = model.recommend(0, N=3)
    >>> items.shape
    (3,)
    """

    factors: int = 100
    learning_rate: float = 0.01
    regularization: float = 0.01
    _: KW_ONLY
    iterations: int = 100
    verify_negative_samples: bool = True
    n_workers: int | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    @property
    def max_iter(self) -> int:  # type: ignore[override]
        """`iterations`, under the name that other estimators have for it."""
        return self.iterations

    _must_agree = ("factors",)
    shown: ClassVar = Shown({"correct": "correct", "validation_auc": "held-out AUC"}, "likes")

    _contents: ClassVar = {
        "users": Table(dtypes="f4", shape=("users", "columns")),
        "items": Table(dtypes="f4", shape=("items", "columns")),
        "biases": Table(dtypes="f4", shape=("items",)),
        "first_items": Number(whole=True, least=0),
        "liked_items": Table(dtypes="i4", shape=("likes",), below="first_items"),
        "liked_offsets": Offsets(of="likes"),
        "later_users": Table(dtypes="i4", shape=("later",), below="users"),
        "later_items": Table(dtypes="i4", shape=("later",), below="items"),
        "start_seed": SEED,
        "calls": CALLS,
    }
    _start_seed: int = field(init=False)
    _online: OnlineRanking | None = field(init=False)  # between calls of partial_fit

    def fit(
        self,
        user_items: Any,
        y: Any = None,
        *,
        init: "BayesianPersonalizedRanking | None" = None,
        validation: Any = None,
        on_iteration: OnIteration | None = None,
    ) -> Self:
        """Fit to likes.

        Parameters
        ----------
        user_items
            A pair of arrays (users, items), or an array of pairs, shape (n, 2), of ids, whole numbers or texts; or a
            table with columns for users, items and perhaps weights, which are recognized by name (a data frame, an
            Arrow table, a dict of columns, a dvector of records). Or a SciPy sparse matrix of weights, users × items,
            whose positions are the ids. Entries of weight 0 are no likes, repeated ones count once.
        y
            Ignored.
        init
            A fitted model, possibly this one, from whose factors and biases to start; it does not change. Users and
            items without likes so far start as in a fresh fit. Its likes are not those of the new model.
        validation
            Held-out likes of the same users and items, in the same formats; their AUC is measured after each epoch.
        on_iteration
            Called with the record of each epoch; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters, weights or ids; the message names the first.
        NodeFailure
            If a node is lost.

        Notes
        -----
        After Ctrl-C the current epoch is completed; the model then holds what was learnt, and can be used and saved.
        """
        begin = time.perf_counter()
        self._check_parameters()
        origin = self._origin(init)
        indexes = IdIndexes.of(origin)
        likes, held_out = _with_validation(user_items, validation, indexes)
        check_rankable(likes, verify=self.verify_negative_samples)
        start_seed = recorded_seed(self.random_state)
        known = None
        if origin is not None:
            start_seed, known = origin._start_seed, origin._factors
        start = RankingFactors.at_random(likes, int(self.factors), start_seed, known)
        seed = self._call_seed(origin)
        self._forget()
        with RankingSolver(
            likes,
            held_out,
            start,
            rate=float(self.learning_rate),
            regularization=float(self.regularization),
            verify=bool(self.verify_negative_samples),
            workers=self.n_workers,
            seed=seed,
            threads=self._threads,
            team=self._team(),
        ) as solver:
            self._begin_call(origin)
            self._likes, self._start_seed = KnownLikes(likes, ItemLog()), start_seed
            self._user_ids, self._item_ids = indexes.users, indexes.items
            self.n_features_in_ = likes.n_items
            data = learned_data(likes, held_out, indexes.saved(), start=origin and [origin._calls, origin._factors])
            self._train(solver, on_iteration, seconds=time.perf_counter() - begin, data=data)
        return self

    def partial_fit(self, user_items: Any, y: Any = None) -> Self:
        """Continue learning from a batch of likes, in one pass.

        Takes time in proportion to the batch, however large the model; on one thread. Users and items may be new. The
        likes are visited in random order, and other items are drawn from all likes so far, by popularity. The same
        batches give the same bits, also if the model was saved and loaded between them. A batch that fails changes
        nothing, nor does one without likes. A batch adds a record to `history_`, which keeps the last 1,000.

        Parameters
        ----------
        user_items, y
            As in `fit`; there may be no likes.

        Raises
        ------
        ArgumentError, InputError
            As in `fit`; for texts as ids where the model has whole numbers, or the other way round; for a matrix far
            larger than the model.
        """
        begin = time.perf_counter()
        self._check_parameters()
        origin = self._origin(self if self._is_fitted else None)
        given = as_likes(user_items)
        if len(given) == 0:
            return self
        indexes = IdIndexes.of(origin, copy=False)
        numbered = indexes.number(given)
        users, items = distinct_pairs(numbered[0].rows, numbered[1].rows, numbered[1].count).astype(np.int32).T
        if origin is None:
            likes, seed = KnownLikes(Likes.none(0, 0), ItemLog()), recorded_seed(self.random_state)
            online = OnlineRanking(RankingFactors.none(int(self.factors)), likes, seed)
        else:
            likes, seed = self._likes, self._start_seed
            online = self._online or OnlineRanking(self._factors, likes, seed)
        earlier = len(likes.later)
        try:
            batch = online.step(
                users,
                items,
                (numbered[0].count, numbered[1].count),
                rate=float(self.learning_rate),
                regularization=float(self.regularization),
                verify=bool(self.verify_negative_samples),
                seed=self._call_seed(origin),
            )
            self._check_finite(batch.figures, batch.factors.users, batch.factors.items, batch.factors.biases)
            with self._changing():
                online.take(batch)
                earlier = len(likes.later)  # a Ctrl-C that is raised later leaves the batch in the model
                indexes.append(numbered)
                self._user_ids, self._item_ids = indexes.users, indexes.items
                self._likes, self._start_seed = likes, seed
                self._publish(online.factors)
                self._online, self.n_features_in_ = online, batch.n_items
                self._begin_call(origin)
                self._add_record(time.perf_counter() - begin, len(users), **means(batch.figures, len(users)))
        except BaseException:
            likes.later.shorten(earlier)
            raise
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole_numbers(self, "factors", "iterations")
        check_positive(self, "learning_rate")
        check_positive(self, "regularization", or_zero=True)
        check_switches(self, "verify_negative_samples")
        check_workers(self)

    def _publish(self, learnt: RankingFactors) -> None:
        self._factors, self._online = learnt, None
        self.user_factors_, self.item_factors_, self.item_biases_ = learnt.users, learnt.items, learnt.biases

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {
            "users": self._factors.users,
            "items": self._factors.items,
            "biases": self._factors.biases,
            "liked_offsets": self._likes.first.offsets,
            "liked_items": self._likes.first.items,
            "later_users": self._likes.later.users,
            "later_items": self._likes.later.items,
        }
        rest = {"start_seed": self._start_seed, "first_items": self._likes.first.n_items}
        return rest | self._saved_call(), arrays | self._saved_ids()

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        users, items, biases = arrays["users"], arrays["items"], arrays["biases"]
        likes = Likes(arrays["liked_offsets"], arrays["liked_items"], int(parameters["first_items"]))
        if likes.n_users > len(users) or likes.n_items > len(items):
            raise ValueError("the likes do not fit the factors")
        later = ItemLog(arrays["later_users"], arrays["later_items"])
        self._likes, self._start_seed = KnownLikes(likes, later), int(parameters["start_seed"])
        self.n_features_in_ = len(items)
        self._restore_ids(arrays, len(users), len(items))
        self._restore_call(parameters)
        self._publish(RankingFactors(users, items, biases))


def _with_validation(user_items: Any, validation: Any, indexes: IdIndexes) -> tuple[Likes, Likes | None]:
    """Return likes and held-out likes in terms of rows; the indexes get the ids of both."""
    given = [as_likes(user_items), *([] if validation is None else [as_likes(validation)])]
    rows = [indexes.add(each) for each in given]
    likes, *held_out = (Likes.of(users.rows, items.rows, indexes.shape) for users, items in rows)
    return likes, held_out[0] if held_out else None
