"""Small SchMP programs for tests."""

import numpy as np
from numba import njit

from strads import schmp


class Mixing(schmp.Program):
    """Every update mixes the worker's number, its data and its shards, so that any other order gives other numbers."""

    def __init__(self, workers, k=1, synchronizations=1):
        self.workers, self.k, self.synchronizations = workers, k, synchronizations
        self.state, self.aggregated = 1, []

    def schedule(self, iteration):
        return schmp.static_rotation(self.workers, self.k, synchronizations=self.synchronizations)

    def update(self, job, data, *shards):
        for shard in shards:
            shard[0] += 1
            shard[1] = (shard[1] * 31 + job.worker * 7 + data[0] + self.state) % 1_000_003
        data[0] = (data[0] * 17 + sum(int(shard[1]) for shard in shards)) % 1_000_003
        return int(data[0])

    def aggregate(self, results):
        self.aggregated.append(list(results))
        for result in results:
            self.state = (self.state * 13 + result) % 1_000_003

    @staticmethod
    def run(workers=4, k=1, synchronizations=1, iterations=3, threads=None):
        """Return shards, data and state after some iterations."""
        program = Mixing(workers, k, synchronizations)
        shards = [[np.array([0, 10 * number + shard]) for shard in range(workers)] for number in range(k)]
        data = [np.array([worker]) for worker in range(workers)]
        with schmp.StaticEngine(program, data, shards, threads=threads) as engine:
            for _ in range(iterations):
                engine.iterate()
            ends = [[shard.tolist() for shard in engine.shards(number)] for number in range(k)]
            return ends, [part.tolist() for part in engine.data()], engine.program.state


def replay(workers, k, synchronizations, iterations=3):
    """Run the same program by plain loops, round by round."""
    program = Mixing(workers, k, synchronizations)
    shards = [[np.array([0, 10 * number + shard]) for shard in range(workers)] for number in range(k)]
    data = [np.array([worker]) for worker in range(workers)]
    sums = [0] * workers
    for iteration in range(iterations):
        rounds = list(program.schedule(iteration))
        for number, each in enumerate(rounds):
            for job in each.jobs:
                found = [shards[parameter_set][shard] for parameter_set, shard in job.shard_keys()]
                sums[job.worker] += program.update(job, data[job.worker], *found)
            if each.synchronize or number + 1 == len(rounds):
                program.aggregate(sums)
                sums = [0] * workers
    return [[s.tolist() for s in of_set] for of_set in shards], [part.tolist() for part in data], program.state


class LargestChange(schmp.DynamicSchedule):
    """Proposes what changed most when it was last updated, with some luck: plans depend on all feedback."""

    def __init__(self, parameters, concurrency, seed):
        self.parameters, self.concurrency = parameters, concurrency
        self.rng = np.random.default_rng(seed)
        self.change = np.full(len(parameters), np.inf)
        self.in_flight = np.zeros(len(parameters), bool)

    def propose(self):
        free = np.flatnonzero(~self.in_flight)
        score = self.change[free] * self.rng.uniform(0.1, 1, len(free))
        chosen = free[np.argsort(-score, kind="stable")][: self.concurrency]
        self.in_flight[chosen] = True
        return chosen + self.parameters.start, self.change[chosen]

    def feedback(self, parameters, changes):
        places = parameters - self.parameters.start
        assert self.in_flight[places].all()
        self.in_flight[places] = False
        self.change[places] = changes


@njit(nogil=True, cache=True)
def correlate(X, residual, columns):
    """x_jᵀr of some columns."""
    found = np.zeros(len(columns))
    for place, j in enumerate(columns):
        for i in range(len(residual)):
            found[place] += X[i, j] * residual[i]
    return found


class DenseLasso(schmp.DynamicProgram):
    """½‖y − Xw‖² + λ‖w‖₁ with rows over workers; a worker's data are X and its residual (algorithm 6)."""

    def __init__(self, square, threshold, workers, concurrency, seed=0):
        self.workers, self.parameters, self.concurrency, self.seed = workers, len(square), concurrency, seed
        self.square, self.threshold = square, threshold
        self.coef = np.zeros(len(square))
        self.grain = 4

    def schedule(self, instance, parameters):
        return LargestChange(parameters, self.concurrency, (self.seed, instance))

    def update(self, parameters, data):
        return correlate(*data, parameters)

    def aggregate(self, parameters, result):
        old = self.coef[parameters]
        z = self.square[parameters] * old + result
        new = np.sign(z) * np.maximum(np.abs(z) - self.threshold, 0) / self.square[parameters]
        self.coef[parameters] = new
        return new - old

    def commit(self, parameters, changes, data):
        X, residual = data
        for j, change in zip(parameters, changes, strict=True):
            residual -= X[:, j] * change


def lasso(workers=4, samples=60, features=50, concurrency=9, seed=0, kind=DenseLasso):
    """Make a small problem: the program, the workers' data, X, y and λ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features))
    y = X[:, :5] @ rng.normal(size=5) + 0.1 * rng.normal(size=samples)
    threshold = 0.1 * np.abs(X.T @ y).max()
    rows = [slice(worker * samples // workers, (worker + 1) * samples // workers) for worker in range(workers)]
    data = [(X[part].copy(), y[part].copy()) for part in rows]
    return kind(np.square(X).sum(0), threshold, workers, concurrency), data, X, y, threshold


def serial(program, data, rounds, instances=1, depth=3, reorder=True):
    """Run a dynamic program by plain loops, in the order that the Dynamic Engine promises."""
    count = program.parameters
    bounds = [range(i * count // instances, (i + 1) * count // instances) for i in range(instances)]
    schedules = [program.schedule(instance, bounds[instance]) for instance in range(instances)]
    ahead = 1 if instances < 4 else 2
    plans = [schedules[k % instances].propose() for k in range(min(ahead, rounds))]
    waiting = []  # changes of subplans that later updates do not see yet

    def commit():
        instance, parameters, changes = waiting.pop(0)
        for part in data:
            program.commit(parameters, changes, part)
        schedules[instance].feedback(parameters, np.abs(changes))

    for k in range(rounds):
        parameters, priorities = plans[k]
        order = np.argsort(-priorities, kind="stable") if reorder else np.arange(len(parameters))
        pieces = max(1, min(depth, len(order)))
        split = np.array_split(order, pieces) if reorder else [order[i::pieces] for i in range(pieces)]
        for number, part in enumerate(split):
            if len(waiting) == depth:
                commit()
            chosen = parameters[part]
            results = [program.update(chosen, of_worker) for of_worker in data]
            while len(results) > 1:  # a power of two
                results = [a + b for a, b in zip(results[::2], results[1::2], strict=True)]
            changes = program.aggregate(chosen, results[0])
            waiting.append((k % instances, chosen, changes))
            if number == 0 and k + ahead < rounds:
                plans.append(schedules[(k + ahead) % instances].propose())
    while waiting:
        commit()
    return program.coef, [residual for _, residual in data]
