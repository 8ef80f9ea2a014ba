"""Regression by scheduled coordinate descent on the Dynamic Engine, with any schedule, down to a duality gap."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from strads import cluster
from strads.errors import InputError
from strads.models._parameters import (
    check_choice,
    check_seed,
    check_share,
    check_whole_numbers,
    fixed_seed,
    recorded_seed,
)
from strads.models.arrays import Array
from strads.models.kernels import datafits
from strads.models.kernels.columns import Columns, SparseColumns
from strads.models.kernels.coordinate_model import Coefficients
from strads.models.kernels.penalties import ElasticNet
from strads.models.regression import coordinate_program as on_node
from strads.models.regression.column_samples import ColumnSample, largest_entries, sample_columns
from strads.models.regression.coordinate_program import start_engine
from strads.models.regression.problem import Problem
from strads.models.regression.solver import Descent, LinearSolver, Progress, Solution
from strads.schedule.dynamic.schedules import (
    CyclicSchedule,
    DynamicSchedule,
    PrioritySchedule,
    RandomSchedule,
    ViolationSchedule,
)

ScheduleFactory = Callable[[int, range], DynamicSchedule]
SCHEDULES = ("priority", "resting", "violation", "random", "cyclic")

_DIVERGED = 10.0  # times the initial objective
_REST = 5  # of "resting": a coefficient that no longer changes is skipped for up to 31 sweeps
_MARGIN = 0.5  # fraction of l1 by which a column may fall short of it and still be drawn, by "violation"
# Between two full passes of "violation", squared violations decrease to a fraction of those found by the first
# pass, unless that takes more than this many updates of each drawn column, or p / 2 in total if that is more (a pass
# costs p).
_SETTLED, _TURNS = 1e-3, 20
_MIN_DRAWN = 512  # columns drawn between two full passes
# For other schedules the number of sweeps between two passes grows: passes stay cheap, with little overrun at the end.
_GROWTH, _MAX_TURNS = 1.2, 50.0


@dataclass(frozen=True)
class CoordinateDescent(LinearSolver):
    """Coordinate descent on several coefficients at a time, chosen by a schedule, on all nodes of `strads.init`.

    From time to time it makes a full pass over the columns, for the duality gap and for the priorities of
    "violation". The result depends on the seed, the number of nodes, and the threads of each.

    Parameters
    ----------
    schedule : {"priority", "resting", "violation", "random", "cyclic"} or function
        "priority" draws coefficients by their last change and drops those that depend on others (thesis
        §5.1); "resting" does the same but seldom draws those that no longer change; "violation" draws them by their
        violation of the optimality conditions; "random" is Shotgun (Bradley et al. 2011). A function takes the number
        of a scheduler instance and its parameters, and returns a schedule (`strads.schmp`); with an intercept and a
        loss that is not quadratic, the last parameter is the intercept.
    concurrency : int, default 8
        Number of coefficients that are updated at a time, from the same predictor.
    pipeline_depth : int, default 3
        Largest number of rounds in flight.
    prioritize, check_dependencies : bool, default True
        Whether "priority", "resting" and "violation" draw by priority, and drop dependent coefficients.
    threshold : float, default 0.3
        Largest correlation of two columns that are not considered dependent.
    reorder : bool, default True
        Whether the coordinator dispatches coefficients of high priority first.
    random_state : int, RandomState or None, default 0
        Seed of all draws; None: another one at each fit.

    Raises
    ------
    ArgumentError
        For invalid parameters.
    """

    schedule: str | ScheduleFactory = "priority"
    concurrency: int = 8
    pipeline_depth: int = 3
    prioritize: bool = True
    check_dependencies: bool = True
    threshold: float = 0.3
    reorder: bool = True
    random_state: int | np.random.RandomState | None = 0

    def __post_init__(self) -> None:
        if not callable(self.schedule):
            check_choice(self, "schedule", SCHEDULES)
        check_whole_numbers(self, "concurrency", "pipeline_depth")
        check_seed(self)
        check_share("threshold", self.threshold)

    def start(self, problem: Problem, goal: float, coef: Array | None = None, intercept: float = 0.0) -> Descent:
        """Begin with a problem; an iteration is a number of updates and a pass over all columns."""
        seeded = replace(self, random_state=recorded_seed(self.random_state))
        return _ScheduledDescent(seeded, problem, goal, coef, intercept)


@dataclass(frozen=True, eq=False)
class ScheduleMaker:
    """Creates the schedules of a solver's instances, on their nodes.

    Attributes
    ----------
    solver
        With a schedule that has a name, and a number as `random_state`.
    concurrency
        At most the number of parameters.
    sample
        From which dependencies are computed; None: they are not checked.
    norms
        Array of shape (parameters,) that makes changes comparable.
    """

    solver: CoordinateDescent
    concurrency: int
    sample: ColumnSample | None
    norms: Array

    def __call__(self, instance: int, parameters: range) -> DynamicSchedule:
        """Return the schedule of an instance's own parameters."""
        name, seed = self.solver.schedule, fixed_seed(self.solver.random_state)
        if name == "random":
            return RandomSchedule(parameters, self.concurrency, seed=seed)
        if name == "cyclic":
            return CyclicSchedule(parameters, self.concurrency)
        kind: Callable[..., DynamicSchedule] = PrioritySchedule
        if name == "violation":
            kind = ViolationSchedule
        elif name == "resting":
            kind = partial(PrioritySchedule, rest=_REST)
        return kind(
            parameters,
            self.concurrency,
            threshold=float(self.solver.threshold),
            dependencies=None if self.sample is None else self.sample.dependencies(parameters, self.concurrency),
            prioritize=bool(self.solver.prioritize),
            scales=self.norms[parameters.start : parameters.stop],
            seed=seed,
        )


class _ScheduledDescent(Descent):
    """A problem being solved: the engine with its initial state, and full passes that measure progress."""

    checkpointed = (
        "coef",
        "intercept",
        "predictor",
        "_best_dual",
        "_looked_at",
        "_limit",
        "_turns",
        "_engine",
        "_correlations",
        "_progress",
    )

    def __init__(self, solver: CoordinateDescent, problem: Problem, goal: float, coef: Array | None, intercept: float):
        self.problem, self.datafit = problem, problem.datafit
        self.columns: Columns = problem.design.columns
        self.features = problem.design.shape[1]
        self.schedule, self.concurrency = solver.schedule, min(int(solver.concurrency), self.features)
        self.quadratic = self.datafit.is_quadratic
        self._goal = goal
        self.coef = np.zeros(self.features) if coef is None else np.array(coef, np.float64)
        self.intercept = problem.null_intercept
        if coef is not None and problem.fit_intercept:
            self.intercept = float(intercept)
        self.predictor = problem.design.predict(self.coef)
        sums, squares = problem.design.moments(self.datafit.weights)
        if not np.isfinite(squares).all():
            raise InputError(problem.design.describe_column(int(np.argmin(np.isfinite(squares)))))
        self.coefficients = self._coefficients(sums, squares)
        self._best_dual = -math.inf
        self._looked_at = 0
        self._limit = 0.0  # on the objective, above which it diverges
        self._turns = 1.0  # sweeps until the next full pass
        make: Any = self.schedule
        if not callable(make):
            is_checked = solver.check_dependencies and make not in ("random", "cyclic")
            sample = self._sample() if is_checked else None
            make = ScheduleMaker(solver, self.concurrency, sample, self._norms())
        self._engine = start_engine(
            self.coefficients,
            self.columns,
            self.datafit,
            self.predictor,
            make,
            pipeline_depth=int(solver.pipeline_depth),
            reorder=bool(solver.reorder),
        )
        self._correlations: Array = np.empty(0)
        self._progress = Progress(0, 0, math.inf, math.inf, 0)

    def advance(self, iteration: int) -> Progress:
        """Update coefficients until another full pass is worthwhile, and make it."""
        if iteration > 1:
            self._check(self._progress.objective)
            self._update()
        self._progress = self._look(iteration)
        return self._progress

    def solution(self) -> Solution:
        """Return the coefficients of the last full pass."""
        return Solution(self.coef, self.intercept, self._progress, self.problem.null_objective, self._goal)

    def close(self) -> None:
        """Stop the engine."""
        self._engine.close()

    def _coefficients(self, sums: Array, squares: Array) -> Coefficients:
        problem, samples = self.problem, len(self.predictor)
        total, centred = float(self.datafit.weights.sum()), problem.fit_intercept and self.quadratic
        if centred and total > 0.0:
            rest = squares - sums**2 / total
            squares = np.where(rest <= 1e-12 * squares, 0.0, rest)  # constant columns leave only rounding error
        entries = np.empty(self.features, np.int64)
        entries[:] = np.diff(self.columns.indptr) if isinstance(self.columns, SparseColumns) else samples
        self.total_entries = int(entries.sum())
        coef = self.coef.copy()
        if self._intercept_is_parameter:
            self.predictor += self.intercept
            coef, entries = np.append(coef, self.intercept), np.append(entries, samples)
        return Coefficients(
            ElasticNet(problem.l1, problem.l2, problem.positive),
            squares,
            sums if centred else np.zeros(self.features),
            np.zeros(self.features) if self.quadratic else largest_entries(self.columns, samples),
            entries,
            coef,
            np.array([self.intercept if centred else 0.0, -1.0 / total if centred else 0.0, total, 0.0]),
        )

    @property
    def _intercept_is_parameter(self) -> bool:
        return self.problem.fit_intercept and not self.quadratic

    def _sample(self) -> ColumnSample:
        """Return the sample from which dependencies are computed."""
        centre, local = self.problem.fit_intercept and self.quadratic, cluster.current().is_local
        return sample_columns(self.columns, len(self.predictor), centre=centre, local=local)

    def _norms(self) -> Array:
        """Return the norms of the columns, weighted by the loss, which make their changes comparable."""
        norms = np.sqrt(self.coefficients.squares)
        return np.append(norms, math.sqrt(len(self.predictor))) if self._intercept_is_parameter else norms

    def _look(self, iteration: int) -> Progress:
        """Make a full pass: compute the gap, and set the intercept to its optimum."""
        problem, engine = self.problem, self._engine
        coef, samples = engine.each_node(on_node.state_of)[0]
        z = np.concatenate(engine.each_worker(on_node.predictor_of))
        self.intercept = self._best_intercept(z, coef)
        z = z + self.intercept if self.quadratic else z
        w = self.coef = coef[: self.features].copy()
        u = np.empty(len(z))
        datafits.fill_negative_gradient(self.datafit, z, u)
        self._correlations = problem.design.correlate(u) - problem.l2 * w
        self._looked_at += self.total_entries
        objective = problem.objective(z, w)
        if not math.isfinite(objective):
            self._check(objective)
        self._best_dual = max(self._best_dual, problem.dual_objective(u, self._correlations, w))
        gap = max(objective - self._best_dual, 0.0)
        return Progress(iteration, int(samples) + self._looked_at, objective, gap, int(np.count_nonzero(w)))

    def _best_intercept(self, z: Array, coef: Array) -> float:
        """Fit the intercept to the predictor, here and on the nodes; a logistic predictor already includes it."""
        if not self.problem.fit_intercept or not np.isfinite(z).all():
            return 0.0
        change = float(datafits.fit_intercept(self.datafit, z))
        if self.quadratic:
            self._engine.each_node(on_node.set_offset, change)
            self._engine.each_worker(on_node.set_offset_of_rows, change)
            return change
        intercept = float(coef[-1]) + change
        self._engine.each_node(on_node.shift_intercept, change)
        self._engine.each_worker(on_node.shift_rows, change)
        z += change
        return intercept

    def _update(self) -> None:
        """Update coefficients until another full pass is worthwhile."""
        if self.schedule != "violation":
            self._update_times(round(self.features * self._turns), self.features)
            self._turns = min(_GROWTH * self._turns, _MAX_TURNS)
            return
        violations = self._violations(max(4 * self.concurrency, _MIN_DRAWN))
        self._engine.each_node(on_node.refresh_schedules, violations)
        drawn = int(np.count_nonzero(violations >= 0.0))
        enough = _SETTLED * sum(self._engine.each_node(on_node.expected_of))
        most = max(_TURNS * drawn, self.features // 2)
        self._update_times(most, drawn, lambda: sum(self._engine.each_node(on_node.expected_of)) <= enough)

    def _update_times(self, times: int, at_a_time: int, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Make a number of updates, in several runs: between two of them, Ctrl-C is handled."""
        while times > 0:
            # Each scheduler instance is asked: one may have nothing to propose while others have.
            rounds = max(-(-min(times, at_a_time) // self.concurrency), self._engine.instances)
            done = self._engine.run(rounds).updates
            times = times - done if done > 0 and not is_enough() else 0

    def _check(self, objective: float) -> None:
        """Raise an error if the objective diverges."""
        if self._limit == 0.0:
            self._limit = _DIVERGED * max(self.problem.null_objective, objective)
        if math.isfinite(objective) and objective <= self._limit:
            return
        raise InputError(
            f"coordinate descent diverges with {self.concurrency} updates at a time chosen by {self.schedule!r}: take "
            "a smaller concurrency, or a schedule that checks dependencies (Bradley et al. 2011: fewer than p / ρ + 1 "
            "of p standardized columns, with ρ the largest eigenvalue of XᵀX)"
        )

    def _violations(self, least: int) -> Array:
        """Return the expected change of each coefficient; −1 for all but the support and the largest violations."""
        problem, w, correlations = self.problem, self.coef, self._correlations
        size = problem.pulls(correlations)
        support = w != 0.0
        excess = np.where(support, np.abs(correlations - np.sign(w) * problem.l1), size - problem.l1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(problem.l1 > 0.0, size / problem.l1, 0.0)
        share[support] = np.inf
        room = min(max(least, 2 * int(support.sum())), self.features)
        chosen = np.argpartition(-share, room - 1)[:room]
        chosen = chosen[share[chosen] > 1.0 - _MARGIN]
        found = np.full(len(self.coefficients.coef), -1.0)
        norms = np.sqrt(self.coefficients.squares[chosen])
        found[chosen] = np.maximum(excess[chosen], 0.0) / np.where(norms > 0.0, norms, 1.0)
        if self._intercept_is_parameter:
            found[-1] = 0.0
        return found
