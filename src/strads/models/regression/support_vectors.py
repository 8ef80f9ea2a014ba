"""Linear support vector machines by coordinate descent on the dual, on the Dynamic Engine (Hsieh et al. 2008)."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from strads import cluster
from strads.errors import InputError
from strads.models.arrays import Array
from strads.models.kernels.columns import SparseColumns
from strads.models.kernels.coordinate_model import Coefficients
from strads.models.kernels.datafits import SquaredNorm
from strads.models.kernels.penalties import Box
from strads.models.regression import coordinate_program as on_node
from strads.models.regression.column_samples import sample_columns
from strads.models.regression.coordinate_descent import CoordinateDescent, ScheduleMaker
from strads.models.regression.design import Design
from strads.models.regression.solver import Descent, Progress, Solution
from strads.schmp.dynamic_engine import DynamicEngine

_DIVERGED = 1e3  # times the objective at w = 0, below the best
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
    squares: Array
    labels: Array
    strengths: Array
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

    def start(self, variables: Array | None) -> Array:
        """Return a copy of the variables, clipped to their bounds; 0 for None."""
        if variables is None:
            return np.zeros(len(self.labels))
        return np.asarray(self.labels * np.clip(self.labels * variables, 0.0, self.box.upper))

    def coefficients(self, variables: Array, concurrency: int) -> Coefficients:
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

    def objectives(self, w: Array, variables: Array) -> tuple[float, float]:
        """Return the primal and the dual objective."""
        offset, a = self.constant * float(variables.sum()), self.labels * variables
        norm = 0.5 * (float(w @ w) + offset**2)
        dual = float(a.sum()) - 0.5 * float(self.box.ridge @ a**2) - norm
        return self.primal(w, self.constant * offset), dual

    def primal(self, w: Array, intercept: float) -> float:
        """Return the primal objective; the intercept is the weight of the constant feature times its value."""
        predictors = (self.design.correlate(w) if w.any() else 0.0) + intercept  # saves a pass over X at the start
        losses = np.maximum(1.0 - self.labels * predictors, 0.0)
        if self.is_squared:
            losses **= 2
        offset = intercept / self.constant if self.constant else 0.0
        return 0.5 * (float(w @ w) + offset**2) + float(self.strengths @ losses)


@dataclass(frozen=True, eq=False)
class DualSolution(Solution):
    """w as `coef`, the constant added to xᵀw as `intercept`, epochs as iterations, and the variables y_i a_i."""

    variables: Array


class SupportVectorDescent(Descent):
    """A support vector machine in training, by any method, for at most `_max_iter` epochs or steps."""

    _goal: float
    _max_iter: int
    _progress: Progress

    @property
    def is_over(self) -> bool:
        """Whether the goal is reached, or all iterations are over."""
        return self._progress.gap <= self._goal or self._progress.iteration >= self._max_iter

    @abstractmethod
    def solution(self) -> DualSolution:
        """Return w, the constant and the variables that were evaluated last."""

    def start_engine(self) -> None:
        """Start the engine from the current variables, unless it runs."""


class DualDescent(SupportVectorDescent):
    """A dual problem being solved by updates of several variables at a time, drawn by their last change.

    Dependent ones are not updated together. The bits depend on the seed and the total number of threads of the nodes,
    but not on those of a single process.
    """

    checkpointed = ("_variables", "_w", "_epochs", "_next", "_touched", "_least", "_progress", "_engine")

    def __init__(
        self,
        problem: DualProblem,
        goal: float,
        concurrency: int,
        max_iter: int,
        threads: int | None,
        seed: int,
        variables: Array | None = None,
    ):
        self._problem, self._goal, self._max_iter = problem, goal, max_iter
        self._concurrency, self._threads, self._seed = concurrency, threads, seed
        self._count = min(concurrency, len(problem.labels))
        self._variables = problem.start(variables)
        self._w = problem.design.predict(self._variables)
        self._engine: DynamicEngine | None = None  # not started for a starting point that is good enough
        self._epochs, self._next, self._touched, self._least = 0, 1, 0, -np.inf

    def advance(self, iteration: int) -> Progress:
        """Run epochs, ever more of them at a time, and evaluate the gap; iterations are numbered by epochs, from 0."""
        if iteration > 1:
            self._run_epochs(min(self._next, self._max_iter - self._epochs))
        problem = self._problem
        objective, dual = problem.objectives(self._w, self._variables)
        if not dual >= self._least:  # with one update at a time, it only increases
            raise InputError(
                f"dual coordinate descent diverges with concurrency={self._concurrency}: choose a smaller one"
            )
        self._least = max(self._least, dual - _DIVERGED * problem.null_objective)
        samples, active = self._touched + iteration * problem.design.entries, int(np.count_nonzero(self._variables))
        self._progress = Progress(self._epochs, samples, objective, max(objective - dual, 0.0), active)
        return self._progress

    def solution(self) -> DualSolution:
        """Return w, the constant and the variables that were evaluated last."""
        problem = self._problem
        constant = problem.constant**2 * float(self._variables.sum())
        return DualSolution(self._w, constant, self._progress, problem.null_objective, self._goal, self._variables)

    def close(self) -> None:
        """Release everything on the nodes."""
        if self._engine is not None:
            self._engine.close()

    def start_engine(self) -> None:
        """Start the engine from the current variables, unless it runs."""
        if self._engine is not None:
            return
        problem, count, sample = self._problem, self._count, None
        columns = problem.design.columns
        coefficients = problem.coefficients(self._variables, count)
        if count > 1:
            local = cluster.current().is_local
            sample = sample_columns(columns, problem.design.shape[0], centre=False, local=local)
        norms = np.sqrt(np.maximum(coefficients.squares, 1e-300))
        make = ScheduleMaker(CoordinateDescent(random_state=self._seed), count, sample, norms)
        options = {"instances": 1, "pipeline_depth": 1, "threads": self._threads}
        self._engine = on_node.start_engine(coefficients, columns, SquaredNorm(), self._w, make, **options)

    def _run_epochs(self, epochs: int) -> None:
        self.start_engine()
        assert self._engine is not None
        updates = epochs * len(self._variables)
        while updates > 0:
            done = self._engine.run(-(-updates // self._count)).updates
            updates = updates - done if done > 0 else 0
        variables, touched = self._engine.each_node(on_node.state_of)[0]
        self._variables, self._touched = variables.copy(), int(touched)
        self._w = np.concatenate(self._engine.each_worker(on_node.predictor_of))
        self._epochs += epochs
        self._next = max(epochs, self._epochs // _GROWTH)
