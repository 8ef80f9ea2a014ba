"""Matrix factorization of ratings by parallel stochastic gradient descent or coordinate descent."""

import time
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.checkpoints import learned_data, preparing
from strads.dds import dvector
from strads.errors import ArgumentError
from strads.models._continuing import CALLS, SEED
from strads.models._file_contents import Number, Offsets, Table, check_contents
from strads.models._iterative import OnIteration, Solver
from strads.models._parameters import (
    check_choice,
    check_positive,
    check_share,
    check_switches,
    check_whole_numbers,
    recorded_seed,
)
from strads.models.factorization.coordinate_descent import CoordinateDescentSolver, Regularization
from strads.models.factorization.factor_tables import FactorTables, InitialFactors
from strads.models.factorization.gradient_descent import STEPS, StepSize, StochasticGradientSolver
from strads.models.factorization.item_log import ItemLog
from strads.models.factorization.online import OnlineTables
from strads.models.factorization.predictor import FactorPredictor
from strads.models.factorization.ratings import as_ratings, as_records
from strads.models.factorization.score_scale import ScoreScale
from strads.models.held_out import held_out
from strads.models.interactions.identified import IdIndexes
from strads.models.interactions.interactions import Interactions
from strads.models.kernels.grouping import group_by_key
from strads.models.ranking.likes import KnownLikes, Likes
from strads.progress import Shown

_SCHEDULES = ("linear", "constant")
_SOLVERS = ("sgd", "ccd")


@dataclass(eq=False, repr=False)
class MatrixFactorization(FactorPredictor):
    """Predicts scores as μ + bias of the user + bias of the item + ⟨factors of the user, factors of the item⟩.

    Minimizes Σ [(score − prediction)² + λ(‖w‖² + ‖h‖² + biases²)] over the ratings, by stochastic gradient descent or
    coordinate descent. With either, the result depends only on the seed, not on the number of threads and nodes or on
    timing. On a cluster started by `strads.init`, the factors stay on the nodes during training.

    Parameters
    ----------
    n_components : int, default 32
        Rank: number of factors of each user and item.
    solver : {"sgd", "ccd"}, default "sgd"
        "sgd" takes one rating at a time, as a serializable parallel loop: the result is that of a sequential pass.
        "ccd" minimizes exactly over one factor of all users, then of all items, and so on (CCD++, Yu et al. 2012;
        supplement §2 of Lee et al. 2014), without parallelization error: it needs no step size, its objective never
        increases, and it needs few epochs, each of which takes longer. Up to 16 threads share the work.
    max_iter : int, default 20
        Number of epochs, passes over the ratings. An epoch of "ccd" updates every factor once.
    step : {"adagrad", "constant"}, default "adagrad"
        "adagrad" divides the step of each row by the root of its summed squared gradients (Chin et al. 2015). Only
        for `solver="sgd"`.
    learning_rate : float, default 0.1
        Step size η; for `step="constant"` 0.01 is a good start. Only for `solver="sgd"`.
    learning_rate_schedule : {"linear", "constant"}, default "linear"
        "linear" decreases the step size from epoch to epoch, towards 0 after `max_iter` of them. Only for
        `solver="sgd"`.
    regularization : float, default 0.1
        λ, in units of squared scores.
    weighted_regularization : bool, default True
        Whether the penalty of a user or an item is applied once per rating, as above (Zhou et al. 2008), or only once,
        as in equation 2 of the supplement, which calls for a larger λ. False needs `solver="ccd"`.
    biases : bool, default True
        Whether to fit μ and the biases of users and items.
    early_stopping : bool, default False
        Whether to hold out `validation_fraction` of the ratings, stop when their RMSE has not improved by `tol` for
        `n_iter_no_change` epochs, and keep the best epoch's model.
    validation_fraction : float, default 0.1
        Fraction of ratings held out by `early_stopping`.
    n_iter_no_change : int, default 3
        Patience of `early_stopping`, in epochs.
    tol : float, default 1e-4
        Smallest improvement of the held-out RMSE that counts.
    remember_ratings : bool, default True
        Whether to keep the items that each user rated, for `recommend`.
    n_jobs : int or None, default None
        Threads of this process; None: those of `strads.init`, by default all cores; -1: all cores. On several nodes
        training uses the threads that `strads.init` has assigned to each, and `n_jobs` applies to `predict` only.
    random_state : int, RandomState or None, default 0
        Seed of the initial factors, the order of ratings and the held-out sample; None: another one at each fit.
    verbose : bool, default False
        Whether to show progress: a bar on a terminal and in a notebook, elsewhere a line per epoch.

    Attributes
    ----------
    user_ids_, item_ids_ : ndarray of shape (n_users,), (n_items,)
        Ids of the rows: int64, or objects of type str.
    user_factors_, item_factors_ : ndarray of shape (n_users, n_components), (n_items, n_components), float32
    user_biases_, item_biases_ : ndarray of shape (n_users,), (n_items,), float32
    mean_ : float
        μ, the mean score; 0 without biases.
    score_range_ : tuple of float
        The lowest and the highest score so far, between which predictions are.
    n_iter_ : int
        Number of epochs run.
    history_ : list of dict
        One record per epoch: `iteration`; `seconds` of training so far; `samples` (ratings visited so far);
        `objective` and `rmse`: for "sgd" the mean squared error, each rating measured just before its step, and its
        square root; for "ccd" the full objective and the root mean squared error, both after the epoch;
        `validation_rmse` if ratings are held out; `nodes`, statistics of each node in the epoch, as a dict of the
        fields of `strads.NodeStatistics` (bytes sent, seconds computed and waited, queue length, …).

    Notes
    -----
    Ids are whole numbers or texts; those that occur get a row. Entries that a sparse matrix does not store are unknown,
    not zero; stored zeros are ratings of zero. A user or item that it has without ratings is predicted by the other's
    bias.

    Examples
    --------
    >>> import numpy as np
    >>> users, items = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> model = MatrixFactorization(n_components=2).fit((users, items), [5.0, 1.0, 4.0, 1.0])
    >>> model.predict([[0, 0], [1, 1]]).shape
    (2,)
    """

    n_components: int = 32
    _: KW_ONLY
    solver: str = "sgd"
    max_iter: int = 20
    step: str = "adagrad"
    learning_rate: float = 0.1
    learning_rate_schedule: str = "linear"
    regularization: float = 0.1
    weighted_regularization: bool = True
    biases: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 3
    tol: float = 1e-4
    remember_ratings: bool = True
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    _early_stopping_figure = "validation_rmse"
    _must_agree = ("n_components", "solver", "step", "biases")
    shown: ClassVar = Shown({"rmse": "RMSE", "validation_rmse": "held-out"}, "ratings")

    _contents: ClassVar = {
        "users": Table(dtypes="f4", shape=("users", "columns")),
        "items": Table(dtypes="f4", shape=("items", "columns")),
        "rated_items": Table(dtypes="i4", shape=("ratings",), below="items", optional=True),
        "rated_offsets": Offsets(of="ratings", optional=True),
        "later_users": Table(dtypes="i4", shape=("later",), below="users", optional=True),
        "later_items": Table(dtypes="i4", shape=("later",), below="items", optional=True),
        "mean": Number(),
        "rank": Number(whole=True, least=1),
        "calls": CALLS,
    }

    _initial: InitialFactors = field(init=False)
    _online: OnlineTables | None = field(init=False)  # between calls of partial_fit

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        init: "MatrixFactorization | None" = None,
        validation: Any = None,
        on_iteration: OnIteration | None = None,
    ) -> Self:
        """Fit to ratings.

        Parameters
        ----------
        X, y
            `fit((users, items), scores)`, `fit(pairs, scores)` with an array of shape (n, 2), or `fit(table)`: a data
            frame, an Arrow table, a dict of columns, a structured array or a dvector of records, whose columns are
            recognized by name (`user`, `userId`, `movieId`, `rating`, …). Ids are whole numbers or texts. Or a SciPy
            sparse matrix of scores (users × items), whose positions are the ids.
        init
            A fitted model, possibly this one, from whose factors, biases and μ to start; it does not change. Users and
            items that it does not know start as in a fresh fit. Only for `solver="sgd"`.
        validation
            Held-out ratings, as a sparse matrix, a table, or a tuple (pairs, scores); measured after each epoch.
            By default a random `validation_fraction` of X if `early_stopping` is set.
        on_iteration
            Called with the record of each epoch; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters or ratings; the message names the first.
        NodeFailure
            If a node is lost.

        Notes
        -----
        After Ctrl-C the current epoch is completed; the model then holds what was learnt so far (with `early_stopping`,
        that of the best epoch), and can be used and saved. After the loss of a node it does not: call `save` in
        `on_iteration` to keep intermediate results.
        """
        self._check_parameters()
        origin = self._origin(init)
        start = time.perf_counter()
        indexes = IdIndexes.of(origin)
        ratings, held, rated = self._split(as_ratings(X, y), validation, indexes)
        data = ratings.to_numpy()
        seed = self._call_seed(origin)
        tables = self._start(data, indexes, origin)
        self._rated = rated
        with self._make_solver(ratings, held, tables, seed) as solver:
            seconds = time.perf_counter() - start
            digest = learned_data(data, held, indexes.saved(), start=tables.arrays)
            self._train(solver, on_iteration, seconds=seconds, data=digest)
        return self

    def partial_fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Continue learning from a batch of ratings, in one pass with the step size `learning_rate`.

        Takes time in proportion to the batch, however large the model. Users and items may be new: they get the next
        rows, in the order of their ids, which start as in a fresh fit. μ is the mean score of the first call, and
        `early_stopping` has no effect. The same batches give the same bits, on any number of threads and nodes, and
        also if the model was saved and loaded between them. A batch that fails changes nothing, nor does an empty one.
        A batch adds a record to `history_`, which keeps the last 1,000.

        Parameters
        ----------
        X, y
            As in `fit`; there may be no ratings.

        Raises
        ------
        ArgumentError, InputError
            As in `fit`; for texts as ids where the model has whole numbers, or the other way round; for a matrix far
            larger than the model; with `solver="ccd"`.
        """
        self._check_parameters()
        origin = self._origin(self if self._is_fitted else None)
        if self.solver != "sgd":
            raise ArgumentError('partial_fit needs solver="sgd"')
        begin = time.perf_counter()
        ratings = as_ratings(X, y, allow_empty=True)
        if len(ratings) == 0:
            return self
        indexes = IdIndexes.of(origin, copy=False)
        numbered = indexes.number(ratings)
        data = as_records(ratings, *numbered).to_numpy()
        online = self._online_tables(data, origin)
        batch = online.prepare(data, (numbered[0].count, numbered[1].count))
        seed = self._call_seed(origin)
        solver = self._stochastic(
            batch.ratings, None, batch.tables, StepSize(float(self.learning_rate), False, 1), seed
        )
        with preparing():  # a restarted program learns from the batch again
            epoch = solver.run_epoch(1)
        self._check_finite(epoch.objective, *batch.tables.arrays)
        with self._changing():
            online.take(batch)
            indexes.append(numbered)
            self._user_ids, self._item_ids = indexes.users, indexes.items
            self._scale = ScoreScale.of(data["score"], None if origin is None else self._scale)
            self._online, self._tables = online, online.tables
            self.mean_, self._initial, self.n_features_in_ = online.mean, online.start, 2
            if origin is None:
                self._rated = self._remembered(data[:0], (0, 0))
            if self._rated is not None:
                self._rated.later.append(data["user"].astype(np.int32), data["item"].astype(np.int32))
            self._begin_call(origin)
            self._add_record(
                time.perf_counter() - begin, epoch.samples, objective=float(epoch.objective or 0.0), **epoch.figures
            )
        return self

    def _online_tables(self, data: NDArray[Any], origin: "MatrixFactorization | None") -> OnlineTables:
        """Return tables with room for more rows: those of the model, or empty ones before the first ratings."""
        if origin is not None:
            return self._online or OnlineTables(self._tables, self._initial)
        mean, initial = self._first(data)
        return OnlineTables(FactorTables.random(0, 0, int(self.n_components), mean, initial), initial)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole_numbers(self, "n_components", "max_iter", "n_iter_no_change")
        check_positive(self, "learning_rate")
        check_positive(self, "regularization", "tol", or_zero=True)
        check_choice(self, "solver", _SOLVERS)
        check_switches(self, "weighted_regularization", "biases", "early_stopping", "remember_ratings")
        if not self.weighted_regularization and self.solver != "ccd":
            raise ArgumentError('weighted_regularization=False needs solver="ccd"')
        check_choice(self, "step", tuple(STEPS))
        check_choice(self, "learning_rate_schedule", _SCHEDULES)
        check_share("validation_fraction", self.validation_fraction)

    def _split(
        self, given: Interactions, validation: Any, indexes: IdIndexes
    ) -> tuple[dvector, dvector | None, KnownLikes | None]:
        """Return ratings and held-out ratings in terms of rows, and what is remembered of all that are given.

        The indexes get the ids of both. Those held out of the given ones are remembered as well: a user has rated them.
        """
        if isinstance(validation, tuple) and len(validation) != 2:
            raise ArgumentError(f"validation is a tuple of {len(validation)}: give (pairs, scores)")
        held = None
        if validation is not None:
            held = as_ratings(*validation) if isinstance(validation, tuple) else as_ratings(validation)
        ratings = as_records(given, *indexes.add(given))
        others = None if held is None else as_records(held, *indexes.add(held))
        data = ratings.to_numpy()
        rated = self._remembered(data, indexes.shape)
        if others is not None or not self.early_stopping:
            return ratings, others, rated
        is_held = held_out(len(data), self.validation_fraction, recorded_seed(self.random_state), "ratings")
        return dvector(data[~is_held], copy=False), dvector(data[is_held], copy=False), rated

    def _first(self, data: NDArray[Any]) -> tuple[float, InitialFactors]:
        """Return what the first ratings determine permanently: μ, and the initial factors."""
        scale = float(data["score"].mean(dtype=np.float64))
        seed = recorded_seed(self.random_state)
        initial = InitialFactors.of(int(self.n_components), scale, biases=self.biases, seed=seed)
        return scale if self.biases else 0.0, initial

    def _start(self, data: NDArray[Any], indexes: IdIndexes, origin: "MatrixFactorization | None") -> FactorTables:
        """Discard an earlier fit, set what is known before training, and return the initial factors."""
        if origin is None:
            self._forget()
            self.mean_, self._initial = self._first(data)
            tables = FactorTables.random(*indexes.shape, int(self.n_components), self.mean_, self._initial)
        else:
            if self.solver != "sgd":
                raise ArgumentError('init needs solver="sgd": "ccd" minimizes from its own start')
            tables = origin._tables.grown(*indexes.shape, origin._initial)
            self._forget()
            self.mean_, self._initial = origin.mean_, origin._initial
        self._user_ids, self._item_ids = indexes.users, indexes.items
        self._scale = ScoreScale.of(data["score"], None if origin is None else origin._scale)
        self.n_features_in_ = 2
        self._begin_call(origin)
        return tables

    def _remembered(self, ratings: NDArray[Any], shape: tuple[int, int]) -> KnownLikes | None:
        """Return the items that each user rated, in the order of the ratings; None if they are not to be kept."""
        if not self.remember_ratings:
            return None
        offsets, items = np.zeros(shape[0] + 1, np.int64), np.empty(len(ratings), np.int32)
        group_by_key(ratings["user"], ratings["item"], None, offsets, items, None)
        return KnownLikes(Likes(offsets, items, shape[1]), ItemLog())

    def _make_solver(self, ratings: dvector, held: dvector | None, tables: FactorTables, seed: int) -> Solver:
        regularization = float(self.regularization)
        if self.solver == "ccd":
            return CoordinateDescentSolver(
                ratings.to_numpy(),
                None if held is None else held.to_numpy(),
                tables,
                Regularization(0.0, regularization)
                if self.weighted_regularization
                else Regularization(regularization, 0.0),
                biases=self.biases,
                threads=self._threads,
            )
        step_size = StepSize(float(self.learning_rate), self.learning_rate_schedule == "linear", int(self.max_iter))
        return self._stochastic(ratings, held, tables, step_size, seed)

    def _stochastic(
        self, ratings: dvector, held: dvector | None, tables: FactorTables, step_size: StepSize, seed: int
    ) -> StochasticGradientSolver:
        return StochasticGradientSolver(
            ratings,
            held,
            tables,
            step=self.step,
            step_size=step_size,
            regularization=float(self.regularization),
            biases=self.biases,
            threads=self._threads,
            seed=seed,
        )

    def _advice_on_divergence(self) -> str:
        slower = f"use a smaller learning_rate than {self.learning_rate}, or " if self.solver == "sgd" else ""
        return f"{slower}scale the scores"

    def _publish(self, learnt: FactorTables) -> None:
        self._tables, self._online = learnt.at_home(), None

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        users, items = self._tables.arrays
        arrays: dict[str, NDArray[Any]] = {"users": users, "items": items}
        if self._rated is not None:
            first, later = self._rated.first, self._rated.later
            arrays |= {"rated_offsets": first.offsets, "rated_items": first.items}
            arrays |= {"later_users": later.users, "later_items": later.items}
        rest = {"mean": self.mean_, "rank": self._tables.rank, "initial": asdict(self._initial)}
        return rest | {"scale": asdict(self._scale)} | self._saved_call(), arrays | self._saved_ids()

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        users, items = arrays["users"], arrays["items"]
        self.n_features_in_, self.mean_, self._rated = 2, float(parameters["mean"]), None
        self._publish(FactorTables.from_arrays(users, items, int(parameters["rank"]), self.mean_))
        check_contents({"spread": Number(least=0), "seed": SEED}, parameters["initial"], {})
        self._initial = InitialFactors(**parameters["initial"])
        check_contents({"lowest": Number(), "highest": Number()}, parameters["scale"], {})
        self._scale = ScoreScale(**parameters["scale"])
        if self._scale.lowest > self._scale.highest:
            raise ValueError("the scale of the scores is empty")
        self._restore_ids(arrays, len(users), len(items))
        self._restore_call(parameters)
        if "rated_items" in arrays:
            if len(arrays["rated_offsets"]) > len(users) + 1:
                raise ValueError("the rated items do not fit the factors")
            later = ItemLog(arrays["later_users"], arrays["later_items"])
            self._rated = KnownLikes(Likes(arrays["rated_offsets"], arrays["rated_items"], len(items)), later)
