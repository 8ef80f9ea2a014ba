"""Coordinate descent on a linear model as a dynamic SchMP program (thesis §5.1.2, algorithm 6)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.cluster import ThreadTeam
from strads.engine.dynamic.coordinate_rounds import CoordinateRounds
from strads.models.arrays import Array
from strads.models.kernels.columns import Columns
from strads.models.kernels.coordinate_model import (
    OFFSET,
    RATE,
    SAMPLES,
    Coefficients,
    CoordinateModel,
    Rows,
    add_changes,
    change_coefficients,
    fill_changes,
    fill_pulls,
    make_rows,
)
from strads.models.kernels.datafits import Datafit, SquaredNorm
from strads.models.regression.column_samples import cut_rows
from strads.partition import even_bounds
from strads.schedule.dynamic.schedules import CompiledSchedule, DynamicSchedule, ViolationSchedule
from strads.schmp.dynamic_engine import DynamicEngine
from strads.schmp.dynamic_program import DynamicProgram


@dataclass(eq=False)
class RowPart:
    """The rows of one worker.

    Attributes
    ----------
    rows
        The rows with their predictor.
    offset
        The offset as of the last commit here: it must reflect the same commits as u (`Coefficients`).
    leads
        Whether this worker adds the effect of the offset to the pulls; exactly one does.
    """

    rows: Rows
    offset: float
    leads: bool


class CoordinateProgram(DynamicProgram):
    """Minimizes over several coefficients at a time, each separately: x_jᵀu of all rows, then an exact or safe step.

    `update` returns x_jᵀu of a worker's rows (and the curvature, if it is not constant), `aggregate` takes the steps
    (Friedman et al. 2007; for the logistic loss `kernels.coordinate_model.logistic_change`), and `commit` updates the
    predictors of the rows.

    Parameters
    ----------
    coefficients : Coefficients
        Starting point, which the rows must match. On several nodes only the coordinator's copy is kept up to date.
    make_schedule : callable
        Takes the number of an instance and its parameters, and returns a schedule; sent to the nodes.
    quadratic : bool
        Whether the loss is quadratic.
    workers : int
        Number of workers, each with a `RowPart`.

    Attributes
    ----------
    parameters : int
        Number of parameters: the coefficients, and the intercept if it is one.
    """

    def __init__(
        self,
        coefficients: Coefficients,
        make_schedule: Callable[[int, range], DynamicSchedule],
        *,
        quadratic: bool,
        workers: int,
    ):
        self.workers = workers
        self.parameters = len(coefficients.coef)
        self.coefficients = coefficients
        self.schedules: list[DynamicSchedule] = []  # the schedules on this node
        self._make_schedule = make_schedule
        self._intercept = len(coefficients.squares)  # its parameter number, if it is one
        self._sums = 1 if quadratic else 2

    def schedule(self, instance: int, parameters: range) -> DynamicSchedule:
        """Return the schedule for some of the coefficients."""
        made = self._make_schedule(instance, parameters)
        self.schedules.append(made)
        return made

    def update(self, parameters: NDArray[np.int64], data: RowPart) -> Array:
        """Return x_jᵀu of the worker's rows, and the curvature along x_j, of shape (k, 1) or (k, 2)."""
        chosen = np.ascontiguousarray(parameters)
        pulls = np.empty((len(chosen), self._sums))
        fill_pulls(data.rows, chosen, self._intercept, pulls)
        if data.leads and data.offset != 0.0:
            pulls[:, 0] -= data.offset * self.coefficients.sums[chosen]
        return pulls

    def aggregate(self, parameters: NDArray[np.int64], result: Array) -> Array:
        """Take a step of each coefficient."""
        chosen = np.ascontiguousarray(parameters)
        changes = np.empty(len(chosen))
        fill_changes(self.coefficients, chosen, result, changes)
        change_coefficients(self.coefficients, chosen, changes, len(chosen))
        return changes

    def commit(self, parameters: NDArray[np.int64], changes: Array, data: RowPart) -> None:
        """Update the predictors of the worker's rows."""
        chosen = np.ascontiguousarray(parameters)
        add_changes(data.rows, chosen, changes, len(chosen), 0, len(data.rows.predictor), self._intercept)
        rate = float(self.coefficients.scalars[RATE])
        if rate != 0.0:
            data.offset += rate * float(self.coefficients.sums[chosen] @ changes)

    def compiled_rounds(
        self, schedule: DynamicSchedule, data: RowPart, team: ThreadTeam
    ) -> Callable[[int], int] | None:
        """Return compiled rounds, if the schedule can be compiled."""
        if not isinstance(schedule, CompiledSchedule):
            return None
        model = CoordinateModel(data.rows, self.coefficients)
        return CoordinateRounds(schedule.state, model, team, entries=float(self.coefficients.entries.mean())).run


def start_engine(
    coefficients: Coefficients,
    columns: Columns,
    datafit: Datafit | SquaredNorm,
    predictor: Array,
    make_schedule: Callable[[int, range], DynamicSchedule],
    **options: Any,
) -> DynamicEngine:
    """Start coordinate descent on the nodes of `strads.init`, with a worker for each of their threads.

    Parameters
    ----------
    coefficients
        Starting point.
    columns, datafit, predictor
        Data of all rows, which are partitioned over the workers; for a single worker only the predictor is copied.
    make_schedule
        As in `CoordinateProgram`.
    **options
        Options of `DynamicEngine`.
    """
    runtime, samples = cluster.current(), len(predictor)
    workers = 1 if runtime.is_local else runtime.cluster.size * runtime.cluster.threads
    bounds = even_bounds(samples, workers)
    parts = []
    for number, own_columns in enumerate(cut_rows(columns, samples, workers)):
        own = slice(bounds[number], bounds[number + 1])
        own_datafit = type(datafit)(*(np.ascontiguousarray(array[own]) for array in datafit))
        rows = make_rows(own_columns, own_datafit, predictor[own].copy())
        parts.append(RowPart(rows, float(coefficients.scalars[OFFSET]), leads=number == 0))
    program = CoordinateProgram(coefficients, make_schedule, quadratic=datafit.is_quadratic, workers=workers)
    return DynamicEngine(program, parts, **options)


# Queries of the driver to the nodes between runs, as functions of their program and data.


def state_of(program: CoordinateProgram) -> tuple[Array, float]:
    """Return the coefficients of the coordinator's program, and the number of entries touched so far."""
    return program.coefficients.coef, float(program.coefficients.scalars[SAMPLES])


def predictor_of(program: CoordinateProgram, data: RowPart) -> Array:
    """Return the predictor of a worker's rows, without the offset."""
    return data.rows.predictor


def set_offset(program: CoordinateProgram, offset: float) -> None:
    """Replace the offset, identically on every node."""
    program.coefficients.scalars[OFFSET] = offset


def set_offset_of_rows(program: CoordinateProgram, data: RowPart, offset: float) -> None:
    """Replace the offset, for a worker's rows."""
    data.offset = offset


def shift_intercept(program: CoordinateProgram, change: float) -> None:
    """Change the intercept, which is the last parameter, identically on every node."""
    program.coefficients.coef[-1] += change


def shift_rows(program: CoordinateProgram, data: RowPart, change: float) -> None:
    """Change the intercept, for a worker's rows."""
    one, size = np.array([program.parameters - 1]), len(data.rows.predictor)
    add_changes(data.rows, one, np.array([change]), 1, 0, size, program.parameters - 1)


def refresh_schedules(program: CoordinateProgram, violations: Array) -> None:
    """Pass the violations found by a full pass, of shape (parameters,), to the schedules of a node."""
    for schedule in program.schedules:
        if isinstance(schedule, ViolationSchedule):
            schedule.refresh(violations[schedule.parameters.start : schedule.parameters.stop])


def expected_of(program: CoordinateProgram) -> float:
    """Return the sum of the squared changes that the schedules of a node expect."""
    return sum(schedule.expected() for schedule in program.schedules if isinstance(schedule, ViolationSchedule))
