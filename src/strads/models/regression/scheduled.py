"""Regression by scheduled coordinate descent on the Dynamic Engine, with any schedule, down to a duality gap."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.cluster.cores import check_count
from strads.errors import ArgumentError, InputError
from strads.models._early_stopping import wants_to_stop
from strads.models.kernels import datafits
from strads.models.kernels.columns import Columns, SparseColumns
from strads.models.kernels.coordinate_model import Coefficients, add_changes, largest_entries, make_rows
from strads.models.kernels.penalties import ElasticNet
from strads.models.regression import coordinate_program as on_node
from strads.models.regression.column_samples import ColumnSample, sample_columns
from strads.models.regression.coordinate_program import is_quadratic, start_engine
from strads.models.regression.problem import Problem
from strads.models.regression.solution import OnProgress, Progress, Solution
from strads.schedule.dynamic.schedules import (
    CyclicSchedule,
    DynamicSchedule,
    PrioritySchedule,
    RandomSchedule,
    ViolationSchedule,
)
from strads.schmp.dynamic_engine import DynamicEngine

ScheduleFactory = Callable[[int, range], DynamicSchedule]
SCHEDULES = ("dynamic_regression", "resting", "kkt_violation", "random", "cyclic")

_DIVERGED = 10.0  # times the initial objective
_REST = 5  # of "resting": a coefficient that no longer changes is skipped for up to 31 sweeps
_MARGIN = 0.5  # fraction of l1 by which a column may fall short of it and still be drawn, by "kkt_violation"
# Between two full passes of "kkt_violation", squared violations decrease to a fraction of those found by the first
# pass, unless that takes more than this many updates of each drawn column, or p / 2 in total if that is more (a pass
# costs p).
_SETTLED, _TURNS = 1e-3, 20
_LEAST_DRAWN = 512  # columns drawn between two full passes
# For other schedules the number of sweeps between two passes grows: passes stay cheap, with little overrun at the end.
_GROWTH, _MOST_TURNS = 1.2, 50.0


@dataclass(frozen=True, eq=False)
class ScheduleMaker:
    """Creates the schedule of an instance, on its node."""

    name: str
    concurrency: int
    threshold: float
    prioritize: bool
    sample: ColumnSample | None
    norms: NDArray[np.float64]
    seed: int

    def __call__(self, instance: int, parameters: range) -> DynamicSchedule:
        """Return the schedule of an instance's own parameters."""
        if self.name == "random":
            return RandomSchedule(parameters, self.concurrency, seed=self.seed)
        if self.name == "cyclic":
            return CyclicSchedule(parameters, self.concurrency, seed=self.seed)
        kind: Callable[..., DynamicSchedule] = PrioritySchedule
        if self.name == "kkt_violation":
            kind = ViolationSchedule
        elif self.name == "resting":
            kind = partial(PrioritySchedule, rest=_REST)
        return kind(
            parameters,
            self.concurrency,
            threshold=self.threshold,
            dependencies=None if self.sample is None else self.sample.dependencies(parameters, self.concurrency),
            prioritize=self.prioritize,
            scales=self.norms[parameters.start : parameters.stop],
            seed=self.seed,
        )


def solve_scheduled(
    problem: Problem,
    schedule: str | ScheduleFactory = "dynamic_regression",
    *,
    concurrency: int = 8,
    tol: float = 1e-6,
    max_iter: int = 1000,
    coef: NDArray[np.float64] | None = None,
    intercept: float = 0.0,
    pipeline_depth: int = 3,
    prioritize: bool = True,
    check_dependencies: bool = True,
    threshold: float = 0.3,
    reorder: bool = True,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Solution:
    """Minimize a problem by coordinate descent, on several coefficients at a time, chosen by a schedule.

    From time to time it makes a full pass over the columns, for the duality gap and for the priorities of
    "kkt_violation".

    Parameters
    ----------
    problem : Problem
        A problem with a design whose columns are in this process (`design.columns`).
    schedule
        "dynamic_regression": thesis §5.1, prioritized and checked for dependencies; "resting": ours, the same but
        skipping most draws of coefficients that no longer change; "kkt_violation": ours, priorities by violation of the
        optimality conditions; "random": Shotgun (Bradley et al. 2011); "cyclic". Or a function of the number of a
        scheduler instance and its parameters, which returns a schedule; with an intercept and a non-quadratic loss, the
        last parameter is the intercept.
    concurrency : int
        Number of coefficients that are updated at a time, from the same predictor.
    tol : float
        Gap to reach, relative to the objective at w = 0.
    max_iter : int
        Largest number of full passes.
    coef, intercept
        Starting point; by default 0, with the best intercept.
    pipeline_depth, reorder
        As in `DynamicEngine`.
    prioritize, check_dependencies, threshold
        As in `PrioritySchedule`.
    seed : int
        Seed of all draws.
    on_progress : callable, optional
        Called after each full pass; ends the run if it returns True.

    Returns
    -------
    Solution
        Its bits depend on the seed, the number of nodes, and the threads of each.

    Raises
    ------
    InputError
        If the objective diverges: too many simultaneous updates that depend on one another.
    """
    if isinstance(schedule, str) and schedule not in SCHEDULES:
        raise ArgumentError(f"schedule={schedule!r} is unknown; choose one of {', '.join(SCHEDULES)}, or a function")
    check_count("concurrency", concurrency)
    run = _Run(problem, coef, intercept, schedule, min(concurrency, problem.design.shape[1]))
    make: Any = schedule
    if isinstance(schedule, str):
        checked = check_dependencies and schedule not in ("random", "cyclic")
        sample = run.sample() if checked else None
        make = ScheduleMaker(schedule, run.concurrency, threshold, prioritize, sample, run.norms(), seed)
    with run.engine(make, pipeline_depth=pipeline_depth, reorder=reorder) as engine:
        for iteration in range(1, max_iter + 1):
            look = run.look(engine, iteration, tol)
            stop = wants_to_stop(None if on_progress is None else on_progress(look.progress))
            if stop or look.is_done or iteration == max_iter:
                break
            run.check(look.progress.objective)
            run.update(engine, look)
    return look.solution(run.null_objective)


@dataclass(frozen=True, eq=False)
class _Look:
    """The result of a full pass."""

    progress: Progress
    coef: NDArray[np.float64]
    intercept: float
    correlations: NDArray[np.float64]
    is_done: bool

    def solution(self, null_objective: float) -> Solution:
        progress = self.progress
        return Solution(
            self.coef,
            self.intercept,
            progress.objective,
            progress.gap,
            null_objective,
            progress.iteration,
            progress.samples,
            self.is_done,
        )


class _Run:
    """A problem being solved: the engine's initial state, and full passes that measure progress."""

    def __init__(
        self, problem: Problem, coef: NDArray[np.float64] | None, intercept: float, schedule: Any, concurrency: int
    ):
        self.problem, self.datafit = problem, problem.datafit
        self.schedule, self.concurrency = schedule, concurrency
        self.columns: Columns = problem.design.columns
        samples, self.features = problem.design.shape
        self.quadratic = is_quadratic(self.datafit)
        zero = np.zeros(samples)
        shift = datafits.fit_intercept(self.datafit, zero) if problem.fit_intercept else 0.0
        self.null_objective = float(datafits.total_loss(self.datafit, zero + shift))
        self.coef = np.zeros(self.features) if coef is None else np.array(coef, np.float64)
        self.intercept = (shift if coef is None else float(intercept)) if problem.fit_intercept else 0.0
        self.predictor = np.zeros(samples)
        support = np.flatnonzero(self.coef)
        if len(support):
            rows = make_rows(self.columns, self.datafit, self.predictor)
            add_changes(rows, support, self.coef[support], len(support), 0, samples, -1)
        sums, squares = problem.design.moments(self.datafit.weights)
        self.coefficients = self._coefficients(sums, squares)
        self._best_dual = -math.inf
        self._looked_at = 0
        self._limit = 0.0  # on the objective, above which it diverges
        self._turns = 1.0  # sweeps until the next full pass

    def _coefficients(self, sums: NDArray[np.float64], squares: NDArray[np.float64]) -> Coefficients:
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
            ElasticNet(problem.l1, problem.l2),
            squares,
            sums if centred else np.zeros(self.features),
            np.zeros(self.features) if self.quadratic else largest_entries(self.columns, self.features),
            entries,
            coef,
            np.array([self.intercept if centred else 0.0, -1.0 / total if centred else 0.0, total, 0.0]),
        )

    @property
    def _intercept_is_parameter(self) -> bool:
        return self.problem.fit_intercept and not self.quadratic

    def sample(self) -> ColumnSample:
        """Return the sample from which dependencies are computed."""
        local = cluster.current().is_local
        return sample_columns(
            self.columns, len(self.predictor), centre=self.problem.fit_intercept and self.quadratic, local=local
        )

    def norms(self) -> NDArray[np.float64]:
        """Return the norms of the columns, weighted by the loss, which make their changes comparable."""
        norms = np.sqrt(self.coefficients.squares)
        return np.append(norms, math.sqrt(len(self.predictor))) if self._intercept_is_parameter else norms

    def engine(self, make: ScheduleFactory, *, pipeline_depth: int, reorder: bool) -> DynamicEngine:
        """Start the program on the nodes."""
        return start_engine(
            self.coefficients,
            self.columns,
            self.datafit,
            self.predictor,
            make,
            pipeline_depth=pipeline_depth,
            reorder=reorder,
        )

    def look(self, engine: DynamicEngine, iteration: int, tol: float) -> _Look:
        """Make a full pass: compute the gap, and set the intercept to its optimum."""
        problem = self.problem
        coef, samples = engine.each_node(on_node.state_of)[0]
        z = np.concatenate(engine.each_worker(on_node.predictor_of))
        intercept = self._best_intercept(engine, z, coef)
        z = z + intercept if self.quadratic else z
        w = coef[: self.features].copy()
        u = np.empty(len(z))
        datafits.fill_negative_gradient(self.datafit, z, u)
        correlations = problem.design.correlate(u) - problem.l2 * w
        self._looked_at += self.total_entries
        objective = problem.objective(z, w)
        self._best_dual = max(self._best_dual, problem.dual_objective(u, correlations, w))
        gap = max(objective - self._best_dual, 0.0) if math.isfinite(objective) else math.inf
        touched = int(samples) + self._looked_at
        progress = Progress(iteration, touched, objective, gap, int(np.count_nonzero(w)))
        return _Look(progress, w, intercept, correlations, gap <= tol * self.null_objective)

    def _best_intercept(self, engine: DynamicEngine, z: NDArray[np.float64], coef: NDArray[np.float64]) -> float:
        """Fit the intercept to the predictor, here and on the nodes; a logistic predictor already includes it."""
        if not self.problem.fit_intercept or not np.isfinite(z).all():
            return 0.0
        change = float(datafits.fit_intercept(self.datafit, z))
        if self.quadratic:
            engine.each_node(on_node.set_offset, change)
            engine.each_worker(on_node.set_offset_of_rows, change)
            return change
        intercept = float(coef[-1]) + change
        engine.each_node(on_node.shift_intercept, change)
        engine.each_worker(on_node.shift_rows, change)
        z += change
        return intercept

    def update(self, engine: DynamicEngine, look: _Look) -> None:
        """Update coefficients until another full pass is worthwhile."""
        if self.schedule != "kkt_violation":
            self._update_times(engine, round(self.features * self._turns), self.features)
            self._turns = min(_GROWTH * self._turns, _MOST_TURNS)
            return
        violations = self.violations(look, max(4 * self.concurrency, _LEAST_DRAWN))
        engine.each_node(on_node.refresh_schedules, violations)
        drawn = int(np.count_nonzero(violations >= 0.0))
        enough = _SETTLED * sum(engine.each_node(on_node.expected_of))
        most = max(_TURNS * drawn, self.features // 2)
        self._update_times(engine, most, drawn, lambda: sum(engine.each_node(on_node.expected_of)) <= enough)

    def _update_times(
        self, engine: DynamicEngine, times: int, at_a_time: int, is_enough: Callable[[], bool] = lambda: False
    ) -> None:
        """Make a number of updates, in several runs: between two of them, Ctrl-C is handled."""
        while times > 0:
            done = engine.run(-(-min(times, at_a_time) // self.concurrency)).updates
            times = times - done if done > 0 and not is_enough() else 0

    def check(self, objective: float) -> None:
        """Raise an error if the objective diverges."""
        if self._limit == 0.0:
            self._limit = _DIVERGED * max(self.null_objective, objective)
        if objective <= self._limit:
            return
        raise InputError(
            f"coordinate descent diverges with {self.concurrency} updates at a time chosen by {self.schedule!r}: take "
            "a smaller concurrency, or a schedule that checks dependencies (Bradley et al. 2011: fewer than p / ρ + 1 "
            "of p standardized columns, with ρ the largest eigenvalue of XᵀX)"
        )

    def violations(self, look: _Look, least: int) -> NDArray[np.float64]:
        """Return the expected change of each coefficient; −1 for all but the support and the largest violations."""
        problem, w = self.problem, look.coef
        size = np.abs(look.correlations)
        support = w != 0.0
        excess = np.where(support, np.abs(look.correlations - np.sign(w) * problem.l1), size - problem.l1)
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
