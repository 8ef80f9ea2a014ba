"""A dynamically scheduled SchMP program of one's own: Lasso, rows over the workers (thesis §5.1.2, algorithm 6)."""

import numpy as np
from numba import njit

from strads import schmp

WORKERS, ROWS, COLUMNS, THRESHOLD = 4, 500, 6_000, 150.0


@njit(nogil=True, fastmath=True)
def correlate(X, residual, columns):
    """Return x_jᵀr of some columns."""
    found = np.zeros(len(columns))
    for place, j in enumerate(columns):
        found[place] = np.dot(X[:, j], residual)
    return found


def rows_of(worker):
    """Make a worker's rows of X, in which three columns each resemble one another, and of y; on the worker's node."""
    rng = np.random.default_rng(worker)
    common = rng.normal(size=(ROWS, COLUMNS // 3))
    X = np.asfortranarray(0.9 * np.repeat(common, 3, axis=1) + 0.4 * rng.normal(size=(ROWS, COLUMNS)))
    return X, X[:, ::200] @ np.ones(COLUMNS // 200) + rng.normal(size=ROWS)


class Lasso(schmp.DynamicProgram):
    """½‖y − Xw‖² + λ‖w‖₁. A worker's data are its rows of X and their residual."""

    workers, parameters = WORKERS, COLUMNS

    def __init__(self, square):
        self.square, self.w = square, np.zeros(COLUMNS)

    def schedule(self, instance, parameters):
        sample = rows_of(0)[0][:, parameters.start : parameters.stop]
        dependencies = schmp.dense_dependencies(sample, 96, centre=False, all_rows=WORKERS * ROWS)
        return schmp.PrioritySchedule(parameters, 96, dependencies=dependencies)

    def update(self, parameters, data):
        return correlate(*data, parameters)

    def aggregate(self, parameters, result):
        old, square = self.w[parameters], self.square[parameters]
        z = square * old + result
        self.w[parameters] = np.sign(z) * np.maximum(np.abs(z) - THRESHOLD, 0) / square
        return self.w[parameters] - old

    def commit(self, parameters, changes, data):
        X, residual = data
        residual -= X[:, parameters] @ changes


def losses(program, data):
    """Return what a worker's rows add to the objective."""
    return data[1] @ data[1] / 2


if __name__ == "__main__":
    square = sum((rows_of(worker)[0] ** 2).sum(0) for worker in range(WORKERS))
    with schmp.DynamicEngine(Lasso(square), rows_of, instances=2) as engine:
        for _ in range(5):
            run = engine.run(100)
            w = engine.program.w
            objective = sum(engine.each_worker(losses)) + THRESHOLD * np.abs(w).sum()
            print(
                f"objective {objective:.3f}, {(w != 0).sum()} coefficients  ({run.updates / run.seconds:.0f} updates/s)"
            )
