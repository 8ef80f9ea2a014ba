"""Linear support vector machines by coordinate descent on the dual, on the Dynamic Engine (Hsieh et al. 2008)."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.errors import InputError
from strads.models._early_stopping import wants_to_stop
from strads.models.kernels.columns import SparseColumns
from strads.models.kernels.coordinate_model import Coefficients, add_changes, make_rows
from strads.models.kernels.datafits import SquaredNorm
from strads.models.kernels.penalties import Box
from strads.models.regression import coordinate_program as on_node
from strads.models.regression.column_samples import sample_columns
from strads.models.regression.design import Design
from strads.models.regression.scheduled import ScheduleMaker
from strads.models.regression.solution import OnProgress, Progress, Solution

_DIVERGED = 1e3  # times the objective at w = 0, below the best
_THRESHOLD = 0.3  # largest correlation of samples that are updated together, as for the Lasso
_GROWTH = 5  # epochs between two evaluations are the epochs so far divided by this: an evaluation costs half an epoch


@dataclass(frozen=True, eq=False)
class DualProblem:
    """max over a of Σ a_i − ½ Σ ridge_i a_i² − ½ ‖w‖² − ½ v², with 0 ≤ a_i ≤ upper_i (Hsieh et al. 2008, eq. 4).

    Here w = Σ a_i y_i x_i, and v = constant · Σ a_i y_i is the weight of the constant feature. The hinge loss has the
    bounds C_i and no ridge, the squared hinge loss no bounds and the ridge 1/(2 C_i). The updated variables are
    y_i a_i: so this is least squares with Xᵀ as the matrix, no response, and a `Box` as the penalty.

    Attributes
    ----------
    design
        Xᵀ, of shape (features, samples): a column is a sample.
    squares
        float64 array of shape (samples,): ‖x_i‖².
    labels
        y, float64 array of shape (samples,), −1 or 1.
    strengths
        C_i, float64 array of shape (samples,).
    constant
        Value of the constant feature; 0 for no intercept.
    is_squared
        Whether the hinge loss is squared.
    """

    design: Design
    squares: NDArray[np.float64]
    labels: NDArray[np.float64]
    strengths: NDArray[np.float64]
    constant: float
    is_squared: bool

    @cached_property
    def box(self) -> Box:
        """The constraints of the variables."""
        if not self.is_squared:
            return Box(self.labels, self.strengths, np.zeros(len(self.labels)))
        counted = self.strengths > 0.0
        ridge = np.divide(0.5, self.strengths, out=np.zeros(len(counted)), where=counted)
        return Box(self.labels, np.where(counted, np.inf, 0.0), ridge)

    @property
    def null_objective(self) -> float:
        """The primal objective at w = 0."""
        return float(self.strengths.sum())

    def predictor(self, variables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return w for the given variables."""
        w, support = np.zeros(self.design.shape[0]), np.flatnonzero(variables)
        if len(support):
            rows = make_rows(self.design.columns, SquaredNorm(), w)
            add_changes(rows, support, variables[support], len(support), 0, len(w), -1)
        return w

    def coefficients(self, variables: NDArray[np.float64], concurrency: int) -> Coefficients:
        """Return the variables for coordinate descent with the given concurrency.

        Even nearly uncorrelated samples share the constant feature. As (Σ δ)² ≤ P Σ δ² for P of them, steps computed
        as if that feature were √P times as large are safe (Richtárik & Takáč 2016).
        """
        features, samples = self.design.shape
        columns, entries = self.design.columns, np.full(samples, features, np.int64)
        if isinstance(columns, SparseColumns):
            entries = np.diff(columns.indptr).astype(np.int64)
        return Coefficients(
            self.box,
            self.squares + concurrency * self.constant**2,
            np.full(samples, self.constant),
            np.zeros(samples),
            entries,
            variables.copy(),
            np.array([self.constant * variables.sum(), 1.0, float(features), 0.0]),
        )

    def objectives(self, w: NDArray[np.float64], variables: NDArray[np.float64]) -> tuple[float, float]:
        """Return the primal and the dual objective."""
        offset, a = self.constant * float(variables.sum()), self.labels * variables
        losses = np.maximum(1.0 - self.labels * (self.design.correlate(w) + self.constant * offset), 0.0)
        if self.is_squared:
            losses **= 2
        norm = 0.5 * (float(w @ w) + offset**2)
        return norm + float(self.strengths @ losses), float(a.sum()) - 0.5 * float(self.box.ridge @ a**2) - norm


@dataclass(frozen=True, eq=False)
class DualSolution(Solution):
    """w as `coef`, the constant added to xᵀw as `intercept`, epochs as `iterations`, and the variables y_i a_i."""

    variables: NDArray[np.float64]


def solve_dual(
    problem: DualProblem,
    *,
    concurrency: int = 1,
    tol: float = 1e-4,
    max_iter: int = 1000,
    variables: NDArray[np.float64] | None = None,
    threads: int | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> DualSolution:
    """Solve a dual problem: several variables at a time, drawn by their last change and checked for dependencies.

    The bits depend on the seed and the total number of threads of the nodes, but not on those of a single process.

    Parameters
    ----------
    problem : DualProblem
    concurrency : int
        Largest number of variables that are updated at a time.
    tol : float
        Gap to reach, relative to the primal objective at w = 0.
    max_iter : int
        Largest number of epochs; with 0, only the starting point is evaluated.
    variables : array of shape (samples,), optional
        Starting point, clipped to the bounds; by default 0.
    threads : int, optional
        Threads to use on a single process.
    seed : int
        Seed of the draws.
    on_progress : callable, optional
        Called at each evaluation, first at the start; ends the run if it returns True.

    Raises
    ------
    InputError
        If the dual objective diverges: too many simultaneous updates.
    """
    start = np.zeros(len(problem.labels))
    if variables is not None:
        start = problem.labels * np.clip(problem.labels * variables, 0.0, problem.box.upper)
    null, looked_at, least = problem.null_objective, 0, -np.inf
    with closing(_states(problem, start, concurrency, max_iter, threads, seed)) as states:
        for state in states:
            objective, dual = problem.objectives(state.w, state.variables)
            looked_at += problem.design.entries
            if not dual >= least:  # with one update at a time, it only increases
                raise InputError(
                    f"dual coordinate descent diverges with concurrency={concurrency}: choose a smaller one"
                )
            least = max(least, dual - _DIVERGED * null)
            gap, active = max(objective - dual, 0.0), int(np.count_nonzero(state.variables))
            progress = Progress(state.epochs, state.touched + looked_at, objective, gap, active)
            stops = wants_to_stop(None if on_progress is None else on_progress(progress))
            if stops or gap <= tol * null:
                break
    return DualSolution(
        state.w,
        problem.constant**2 * float(state.variables.sum()),
        objective,
        gap,
        null,
        state.epochs,
        progress.samples,
        gap <= tol * null,
        state.variables,
    )


class _State(NamedTuple):
    """State of coordinate descent: w, the variables, and the number of entries of X touched by updates."""

    epochs: int
    w: NDArray[np.float64]
    variables: NDArray[np.float64]
    touched: int


def _states(
    problem: DualProblem,
    variables: NDArray[np.float64],
    concurrency: int,
    max_iter: int,
    threads: int | None,
    seed: int,
) -> Generator[_State, None, None]:
    """Yield the initial state, and the states of coordinate descent after increasing numbers of epochs."""
    w, columns = problem.predictor(variables), problem.design.columns
    yield _State(0, w, variables, 0)
    features, samples = problem.design.shape
    count, sample = min(concurrency, samples), None
    coefficients = problem.coefficients(variables, count)
    if count > 1:
        sample = sample_columns(columns, features, centre=False, local=cluster.current().is_local)
    norms = np.sqrt(np.maximum(coefficients.squares, 1e-300))
    make = ScheduleMaker("dynamic_regression", count, _THRESHOLD, True, sample, norms, seed)
    options = {"instances": 1, "pipeline_depth": 1, "threads": threads}
    with on_node.start_engine(coefficients, columns, SquaredNorm(), w, make, **options) as engine:
        epochs, between = 0, 1
        while epochs < max_iter:
            between = min(between, max_iter - epochs)
            updates = between * samples
            while updates > 0:
                done = engine.run(-(-updates // count)).updates
                updates = updates - done if done > 0 else 0
            epochs += between
            variables, touched = engine.each_node(on_node.state_of)[0]
            w = np.concatenate(engine.each_worker(on_node.predictor_of))
            yield _State(epochs, w, variables.copy(), int(touched))
            between = max(between, epochs // _GROWTH)
